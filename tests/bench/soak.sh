#!/usr/bin/env bash
# Hours of use in minutes: soak.sh BUILD [REQUESTS]. Requests of many kinds, each with the status it
# must have; every 10,000 a worker is killed in the middle of a measurement, every 100,000 the
# certificate is swapped. Fails where one request was answered otherwise or memory or descriptors grew.
set -u

build=$1 requests=${2:-1000000}
work=$(mktemp -d)
gateway=
cleanup() {
	[ -n "$gateway" ] && kill "$gateway" 2>/dev/null
	wait 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT

for name in a b; do
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$name.key" \
		-out "$work/$name.pem" -days 2 -subj /CN=localhost 2>/dev/null
done
use() { # in one step for each file, so that no half is read
	cp "$work/$1.key" "$work/new.key" && mv "$work/new.key" "$work/key.pem"
	cp "$work/$1.pem" "$work/new.pem" && mv "$work/new.pem" "$work/cert.pem"
}
use a
echo 'gpus=A,B,C,D' >"$work/script"
DEVGATE_WORKER=$PWD/$build/tests/fakes/main_fake_worker DG_FAKE="@$work/script" DG_ENGINE_QUICK=1 \
	"$build/bin/devgated" --state-dir "$work/state" --backend cuda --listen 127.0.0.1:0 \
	--cert "$work/cert.pem" --key "$work/key.pem" --loopback-scopes read,measure,lease \
	--print-ready >"$work/ready" 2>"$work/log" &
gateway=$!
for _ in $(seq 100); do [ -s "$work/ready" ] && break; sleep 0.1; done
port=$(sed -n 's/.*127\.0\.0\.1:\([0-9]*\).*/\1/p' "$work/ready")
[ -n "$port" ] || { cat "$work/log" >&2; exit 1; }
url=https://127.0.0.1:$port
rss() { awk '/VmRSS/ { print $2 }' "/proc/$gateway/status"; }
descriptors() { find "/proc/$gateway/fd" -mindepth 1 2>/dev/null | wc -l; }

measure() { # the second device; PREFERENCE
	curl -sk -o /dev/null -X POST -H 'Content-Type: application/json' -H "Prefer: $1" -d '{"keys":["compute:f32","launch"],"refresh":true}' \
		"$url/v1/devices/1/throughput"
}
curl -sk -o /dev/null -X POST -H 'Content-Type: application/json' -d '{"keys":["launch"]}' \
	"$url/v1/devices/0/throughput"

# From now on measuring takes its time, so that there is somebody to kill.
echo 'gpus=A,B,C,D;launch_ms=20' >"$work/script"

kills=0 swaps=0 first_rss= first_fds=
while read -r n; do
	case $n in bad*) bad=${n#bad }; break ;; esac
	measure respond-async
	sleep 0.1
	victim=$(pgrep -P "$gateway" | tail -n 1)
	[ -n "$victim" ] && kill -9 "$victim" 2>/dev/null && kills=$((kills + 1))
	# One that works in between, or the gateway would give the device a pause.
	measure wait=20
	if [ $((n % 100000)) -eq 0 ]; then
		swaps=$((swaps + 1))
		use "$([ $((swaps % 2)) -eq 1 ] && echo b || echo a)"
		kill -HUP "$gateway"
	fi
	if [ -z "$first_rss" ] && [ "$n" -ge $((requests / 5)) ]; then
		first_rss=$(rss) first_fds=$(descriptors)
	fi
done < <("$build/tests/bench/load_tls" soak "$port" "$requests" 4)
sleep 1
last_rss=$(rss) last_fds=$(descriptors)
echo "$requests requests, ${bad:-all} answered otherwise; $kills workers killed, $swaps certificates" \
	"swapped; RSS $first_rss KiB after a fifth, $last_rss KiB at the end; descriptors $first_fds," \
	"$last_fds; log:"
sed 's/[0-9]\{2,\}/N/g' "$work/log" | sort | uniq -c | sort -rn | head -n 12
[ "${bad:-1}" = 0 ] && [ $((last_rss - first_rss)) -lt 4096 ] && [ $((last_fds - first_fds)) -le 8 ]
