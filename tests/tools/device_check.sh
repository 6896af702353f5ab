#!/usr/bin/env bash
# From an unpacked bundle, on a machine with a GPU: conformance against the real driver, then the
# tool and a gateway as a user would use them. device_check.sh BUNDLE OUT
set -u
bundle=$1 out=$2
export DG_REQUIRE=cuda TMPDIR=${TMPDIR:-/tmp}
cd "$bundle" || exit 1
nvidia-smi --query-gpu=name,driver_version,memory.used,clocks.sm --format=csv,noheader
step() { echo "== $*"; }
step conformance
time ./run-conformance backends/test_conformance backends/test_gpu api/test_device e2e/test_same_device \
	>"$out/conformance.txt" 2>&1
tail -n 30 "$out/conformance.txt"
step doctor
bin/devgate doctor
step devices
bin/devgate devices
bin/devgate describe cuda:0 --json >"$out/describe.json"
step throughput
time bin/devgate throughput cuda:0
bin/devgate throughput cuda:0 --json >"$out/throughput.json"
step curve
time bin/devgate curve cuda:0 read
step gateway
bin/devgated --ephemeral --listen 127.0.0.1:0 --print-ready >"$out/ready" 2>"$out/gateway.log" &
gateway=$!
for _ in $(seq 100); do [ -s "$out/ready" ] && break; sleep 0.1; done
url=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$out/ready")
export DEVGATE_PIN=$(sed -n 's/.*"pin":"\([^"]*\)".*/\1/p' "$out/ready")
bin/devgate devices --gateway "$url"
time bin/devgate throughput "$url#1" compute:f32 memory:read launch
nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader
echo "apps that hold the GPU while idle: $(nvidia-smi --query-compute-apps=pid --format=csv,noheader | wc -l)"
bin/devgate throughput "$url#1" compute:f64 memory:copy >/dev/null 2>&1 &
sleep 1.5
kill -TERM $gateway
time wait $gateway
echo "gateway ended with $?"
sleep 1
bin/devgate throughput cuda:0 compute:f32 launch
nvidia-smi --query-gpu=memory.used,utilization.gpu --format=csv,noheader
