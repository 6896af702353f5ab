#!/usr/bin/env bash
# Run test programs, some at a time, and sum up: run.sh LOG_FOLDER PROGRAM...
# A program passes with exit status 0 and is skipped with 77; each has DG_TEST_TIMEOUT seconds (300).
# DG_TEST_JOBS (2) run at once.
set -u

logs=$1
shift
mkdir -p "$logs"
rm -f "$logs"/*.log "$logs"/*.rc
limit=${DG_TEST_TIMEOUT:-300}

run_one() {
	local name=$1 log rc start
	log=$logs/$(echo "${name#*/tests/}" | tr / .)
	start=$(date +%s.%N)
	timeout --kill-after=5 "$limit" "$name" >"$log.log" 2>&1 </dev/null
	rc=$?
	echo "$rc" >"$log.rc"
	local took
	took=$(echo "$(date +%s.%N) $start" | awk '{ printf "%.1f s", $1 - $2 }')
	local ran
	ran=$(sed -n 's/^ *tests *\([0-9]*\) *\([0-9]*\).*/\2 cases/p' "$log.log" | tail -n 1)
	case $rc in
	0) echo "  pass  ${name#*/tests/} (${ran:-no cases?}, $took)" ;;
	77) echo "  skip  ${name#*/tests/}: $(grep -m1 'skipped' "$log.log")" ;;
	124 | 137) echo "  FAIL  ${name#*/tests/}: still running after $limit s"; tail -n 60 "$log.log" ;;
	*) echo "  FAIL  ${name#*/tests/} (status $rc, $took)"; cat "$log.log" ;;
	esac
	grep -hE '^ *skipped \(' "$log.log" | sed 's/^ */        /' | sort -u
}

running=0
for program in "$@"; do
	run_one "$program" &
	running=$((running + 1))
	if [ "$running" -ge "${DG_TEST_JOBS:-2}" ]; then
		wait -n
		running=$((running - 1))
	fi
done
wait

passed=0 failed=0 skipped=0
for rc in "$logs"/*.rc; do
	case $(cat "$rc") in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*) failed=$((failed + 1)) ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
