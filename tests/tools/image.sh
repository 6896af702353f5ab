#!/usr/bin/env bash
# Build the container image from a base made here, run it as operators would (non-root, read-only, no
# capabilities), and see it healthy, measuring, and ending on SIGTERM. Needs root, and Debian's
# buildah, podman, runc and mmdebstrap.
set -euo pipefail

if [ "$(id -u)" -ne 0 ]; then
	echo "skipped: the image is built as root"
	exit 0
fi
work=$(mktemp -d)
# There is no systemd here to run health checks on time; the check runs them itself.
export DISABLE_HC_SYSTEMD=true
store=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs)
podman=(podman "${store[@]}" --cgroup-manager cgroupfs --runtime runc)
container=
cleanup() {
	[ -z "$container" ] || "${podman[@]}" rm -f -t 2 "$container" >/dev/null 2>&1 || true
	umount -R "$work"/storage/vfs 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

echo "base image from Debian's packages..."
base=docker.io/library/debian:bookworm-slim
mmdebstrap --variant=minbase --quiet bookworm "$work/rootfs.tar" >"$work/base.log" 2>&1 ||
	{ cat "$work/base.log"; exit 1; }
printf 'FROM scratch\nADD rootfs.tar /\n' >"$work/Dockerfile"
buildah "${store[@]}" bud --isolation chroot --format docker --quiet -t "$base" "$work" >/dev/null

echo "image from the Dockerfile..."
buildah "${store[@]}" bud --isolation chroot --pull-never --format docker -t devgate:check \
	-f Dockerfile . >"$work/build.log" 2>&1 || { tail -n 60 "$work/build.log"; exit 1; }

run=("${podman[@]}" run --network none --read-only --cap-drop all
	--security-opt no-new-privileges --ulimit nofile=20000:20000 --ulimit nproc=1000:1000)
echo "it refuses to listen beyond loopback without authentication..."
rc=0
"${run[@]}" --rm -v devgate-state:/var/lib/devgate devgate:check >"$work/refused.log" 2>&1 || rc=$?
[ "$rc" -eq 2 ] || { echo "expected exit status 2, got $rc"; cat "$work/refused.log"; exit 1; }

echo "it runs..."
container=$("${run[@]}" -d -v devgate-state:/var/lib/devgate devgate:check \
	--listen 127.0.0.1:8443 --loopback-scopes read,measure)
inside() { "${podman[@]}" exec "$container" "$@"; }
for _ in $(seq 100); do
	inside sh -c 'DEVGATE_PIN=$(cat /var/lib/devgate/pin) devgate health https://127.0.0.1:8443' \
		>"$work/health.log" 2>&1 && break
	sleep 0.2
done
cat "$work/health.log"
[ "$(inside id -u)" = 10001 ] || { echo "it does not run as uid 10001"; exit 1; }
"${podman[@]}" healthcheck run "$container" || { echo "the health check fails"; exit 1; }
inside sh -c 'DEVGATE_PIN=$(cat /var/lib/devgate/pin) devgate throughput cpu launch \
	--gateway https://127.0.0.1:8443 --json' | grep -q '"status":"ok"' ||
	{ echo "it does not measure"; "${podman[@]}" logs "$container"; exit 1; }

started=$(date +%s%N)
"${podman[@]}" stop -t 5 "$container" >/dev/null
took=$((($(date +%s%N) - started) / 1000000))
rc=$("${podman[@]}" inspect -f '{{.State.ExitCode}}' "$container")
[ "$rc" -eq 0 ] || { echo "SIGTERM: exit status $rc"; "${podman[@]}" logs "$container"; exit 1; }
echo "ended on SIGTERM after $took ms with status 0"
