#!/bin/sh
# Start a gateway with embedded defaults on a free loopback port, and show through the client what it
# has and how fast that is. Leaves nothing running and nothing behind. demo.sh BUILD_FOLDER
set -eu

bin=$1/bin
work=$(mktemp -d)
gateway=
stop() {
	[ -z "$gateway" ] || { kill "$gateway" 2>/dev/null && wait "$gateway" 2>/dev/null; } || true
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

"$bin/devgated" --ephemeral --listen 127.0.0.1:0 --print-ready \
	>"$work/ready" 2>"$work/log" </dev/null &
gateway=$!
tries=0
until [ -s "$work/ready" ]; do
	kill -0 "$gateway" 2>/dev/null && [ "$tries" -lt 600 ] || {
		echo "The gateway did not start:" >&2
		cat "$work/log" >&2
		exit 1
	}
	tries=$((tries + 1))
	sleep 0.05
done
url=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$work/ready")
pin=$(sed -n 's/.*"pin":"\([^"]*\)".*/\1/p' "$work/ready")
export DEVGATE_PIN="$pin"

echo "A gateway listens at $url; its key's pin is $pin."
echo
echo "\$ devgate devices --gateway $url"
"$bin/devgate" devices --gateway "$url"
echo
echo "\$ devgate throughput cpu --gateway $url"
"$bin/devgate" throughput cpu --gateway "$url"
echo
echo "\$ devgate curve cpu read --gateway $url"
"$bin/devgate" curve cpu read --gateway "$url"
echo
cat <<TEXT
The gateway has ended. To try next:
  $bin/devgate doctor                       what was looked for on this machine, and what was found
  $bin/devgate throughput cpu compute:f32   the same figures without a gateway
  $bin/devgated --ephemeral                 a gateway that stays, and says its address and pin
  make check                                the tests
TEXT
