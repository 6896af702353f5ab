#!/usr/bin/env bash
# The gateway beside nginx, in one run on the same cores: bench_server.sh BUILD [ROUNDS] [SECONDS]
# nginx serves from a file the very bytes that the gateway answers GET /v1/devices with (eight
# devices, scripted). Rounds alternate; what is printed are medians and the ratio of each pair.
set -u

build=$1 rounds=${2:-5} seconds=${3:-5}
threads=2 connections=64
work=$(mktemp -d)
pids=()
cleanup() {
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
	wait 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT

for tool in nginx wrk openssl curl; do
	PATH=$PATH:/usr/sbin command -v $tool >/dev/null ||
		{ echo "bench_server: $tool is missing; deploy/deps.sh bench installs it" >&2; exit 1; }
done

start_gateway() { # NAME OPTION...
	local name=$1
	shift
	DEVGATE_WORKER=$PWD/$build/tests/fakes/main_fake_worker DG_FAKE="gpus=A,B,C,D,E,F,G,H" DG_ENGINE_QUICK=1 \
		"$build/bin/devgated" --ephemeral --backend cuda --listen 127.0.0.1:0 --print-ready \
		--loopback-scopes read,measure "$@" >"$work/$name.ready" 2>"$work/$name.log" &
	pids+=($!)
	for _ in $(seq 100); do [ -s "$work/$name.ready" ] && return; sleep 0.1; done
	cat "$work/$name.log" >&2
	exit 1
}
port_of() { sed -n 's/.*127\.0\.0\.1:\([0-9]*\).*/\1/p' "$work/$1.ready"; }

start_gateway http --plain-http
http=$(port_of http)
start_gateway https
https=$(port_of https) https_pid=${pids[-1]}

mkdir -p "$work/www/v1"
curl -s "http://127.0.0.1:$http/v1/devices" >"$work/www/v1/devices"
echo '{"status":"ok"}' >"$work/www/healthz"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key.pem" \
	-out "$work/cert.pem" -days 2 -subj /CN=localhost 2>/dev/null
nginx_http=$((20000 + RANDOM % 10000)) nginx_https=$((30001 + RANDOM % 10000))
cat >"$work/nginx.conf" <<CONF
worker_processes 2;
pid $work/nginx.pid;
error_log $work/nginx.log;
daemon off;
worker_rlimit_nofile 20000;
events { worker_connections 9000; }
http {
	access_log off;
	default_type application/json;
	keepalive_requests 1000000000;
	open_file_cache max=100;
	client_body_temp_path $work/n1; proxy_temp_path $work/n2; fastcgi_temp_path $work/n3;
	uwsgi_temp_path $work/n4; scgi_temp_path $work/n5;
	server { listen 127.0.0.1:$nginx_http; root $work/www; }
	server {
		listen 127.0.0.1:$nginx_https ssl;
		ssl_certificate $work/cert.pem;
		ssl_certificate_key $work/key.pem;
		ssl_protocols TLSv1.2 TLSv1.3;
		root $work/www;
	}
}
CONF
chmod -R a+rX "$work"
PATH=$PATH:/usr/sbin nginx -c "$work/nginx.conf" 2>/dev/null &
pids+=($!)
sleep 0.5

requests() { # URL: requests a second
	wrk -t$threads -c$connections -d"${seconds}s" "$1" |
		awk '/Requests\/sec/ { rate = $2 } /Non-2xx|Socket errors/ { bad = 1 }
			END { print bad ? "errors" : rate }'
}
p99_of() { # URL: 99th percentile in microseconds, at a load that leaves room
	wrk -t1 -c8 -d"${seconds}s" --latency "$1" | awk '$1 == "99%" { v = $2 }
		END { u = v; sub(/[0-9.]+/, "", u); sub(/[a-z]+/, "", v)
			print v * (u == "us" ? 1 : u == "ms" ? 1000 : 1000000) }'
}
handshakes() { "$build/tests/bench/load_tls" "$1" "$2" "$seconds" 4 | cut -d' ' -f1; }
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# compare NAME OURS THEIRS: commands that print a figure, in turn
compare() {
	local name=$1 ours=$2 theirs=$3 a b
	: >"$work/a"; : >"$work/b"; : >"$work/r"
	for _ in $(seq "$rounds"); do
		a=$($ours) b=$($theirs)
		echo "$a" >>"$work/a"; echo "$b" >>"$work/b"
		awk -v a="$a" -v b="$b" 'BEGIN { print b ? a / b : 0 }' >>"$work/r"
	done
	printf '%-34s %10.0f %10.0f  %.2f  (%s)\n' "$name" "$(median <"$work/a")" \
		"$(median <"$work/b")" "$(median <"$work/r")" \
		"$(sort -g "$work/r" | awk '{ printf("%s%.2f", (NR > 1 ? " " : ""), $1) }')"
}

echo "$(nproc) cores, $(stat -c %s "$work/www/v1/devices") bytes, $connections connections," \
	"$rounds rounds of $seconds s; ratio is the median of the pairs' (all of them)"
printf '%-34s %10s %10s  %s\n' '' devgated nginx ratio
path=/v1/devices
compare 'HTTP requests/s' "requests http://127.0.0.1:$http$path" \
	"requests http://127.0.0.1:$nginx_http$path"
compare 'HTTPS requests/s' "requests https://127.0.0.1:$https$path" \
	"requests https://127.0.0.1:$nginx_https$path"
compare 'full handshakes/s' "handshakes full $https" "handshakes full $nginx_https"
compare 'resumed handshakes/s' "handshakes resumed $https" "handshakes resumed $nginx_https"

echo
quiet=$(p99_of "https://127.0.0.1:$https$path")
curl -sk -o /dev/null -X POST -H 'Content-Type: application/json' -H 'Prefer: respond-async' \
	-d '{"keys":["compute:f32"],"refresh":true}' "https://127.0.0.1:$https/v1/devices/0/throughput"
busy=$(p99_of "https://127.0.0.1:$https$path")
echo "p99 $quiet us; while a measurement runs $busy us"
count=10000
[ "$(ulimit -Hn)" -gt 10300 ] || count=$(($(ulimit -Hn) - 300))
idle_rss=$(awk '/VmRSS/ { print $2 }' "/proc/$https_pid/status")
read -r each made alive after < <("$build/tests/bench/load_tls" idle "$https" "$count" "$https_pid")
echo "$made idle TLS connections: $each bytes each (of the first 100, $alive answered again);" \
	"RSS $idle_rss KiB before, $((after / 1024)) KiB with them"
