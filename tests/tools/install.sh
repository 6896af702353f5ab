#!/usr/bin/env bash
# Install to a fresh prefix, use it from there with no variable set, build a program against it with
# pkg-config, uninstall, and see that nothing is left.
set -eu

prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
make -s --no-print-directory install PREFIX="$prefix/usr"
run() { env -i PATH=/usr/bin:/bin "$@"; }

run "$prefix/usr/bin/devgate" describe cuda:1 --json >/dev/null
run "$prefix/usr/bin/devgate" throughput cpu launch --json >"$prefix/value.json"
python3 - "$prefix/value.json" <<'PY'
import json, sys
value = json.load(open(sys.argv[1]))["values"][0]
assert value["status"] == "ok", value
PY
run "$prefix/usr/bin/devgated" --version >/dev/null
run "$prefix/usr/libexec/devgate/devgate-worker" --version >/dev/null

flags=$(PKG_CONFIG_PATH="$prefix/usr/lib/pkgconfig" pkg-config --cflags --libs devgate)
cc -std=c11 client/examples/fastest.c -o "$prefix/fastest" $flags
LD_LIBRARY_PATH=$prefix/usr/lib "$prefix/fastest" >/dev/null
# The library itself static, what it stands on shared, as distributions ship it.
cc -std=c11 client/examples/fastest.c -o "$prefix/fastest-static" "-I$prefix/usr/include" \
	"$prefix/usr/lib/libdevgate.a" $(pkg-config --libs libcurl libcrypto jansson) -lm -ldl -pthread
env -i PATH=/usr/bin:/bin DEVGATE_WORKER="$prefix/usr/libexec/devgate/devgate-worker" \
	"$prefix/fastest-static" >/dev/null

make -s --no-print-directory uninstall PREFIX="$prefix/usr"
left=$(find "$prefix/usr" -type f -o -type l 2>/dev/null || true)
[ -z "$left" ] || { echo "left behind:"; echo "$left"; exit 1; }
echo "installed, used, built against, uninstalled"
