#!/bin/sh
# Install what is missing on Debian or Ubuntu: deps.sh build|test|lint|image|bench [...]
# Asks for root (sudo) only where something is missing. Elsewhere it names what is needed.
set -eu

build="gcc make pkg-config libc6-dev libevent-dev libjansson-dev
	libcurl4-openssl-dev libssl-dev libsqlite3-dev libinih-dev"
# The tests drive the gateway with curl and openssl as strangers would, and check the contract.
test="$build libcunit1-dev curl openssl python3 python3-yaml python3-jsonschema iproute2 procps
	ca-certificates"
lint="$build libcunit1-dev clang clang-tidy clang-format cppcheck universal-ctags g++ man-db git"
image="mmdebstrap buildah podman runc"
bench="nginx-light wrk curl openssl"

wanted=
for set in "$@"; do
	case $set in
	build) wanted="$wanted $build" ;;
	test) wanted="$wanted $test" ;;
	lint) wanted="$wanted $lint" ;;
	image) wanted="$wanted $image" ;;
	bench) wanted="$wanted $bench" ;;
	*) echo "deps.sh: unknown set '$set'; expected build, test, lint, image or bench" >&2; exit 2 ;;
	esac
done

if ! command -v apt-get >/dev/null 2>&1; then
	echo "deps.sh: no apt-get here; make sure these are installed (Debian's names):" $wanted >&2
	exit 0
fi

# The sanitizers' and the fuzzer's runtime is a package of its own, named by clang's version.
case $* in *lint*)
	runtime() {
		apt-cache depends clang 2>/dev/null |
			sed -n 's/.*Depends: clang-\([0-9]*\)$/libclang-rt-\1-dev/p' | head -n 1
	}
	[ -n "$(runtime)" ] || { [ "$(id -u)" -ne 0 ] || apt-get update -qq; }
	wanted="$wanted $(runtime)"
	;;
esac

missing=
for package in $wanted; do
	dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
		missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null 2>&1 ||
		{ echo "deps.sh: as root, run: apt-get install$missing" >&2; exit 1; }
	as_root=sudo
fi
echo "Installing:$missing"
# A fresh machine has no package lists; an old one has stale ones.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { $as_root apt-get update -qq &&
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		$missing; } >"$log" 2>&1 </dev/null; then
	cat "$log" >&2
	exit 1
fi
