#!/usr/bin/env bash
# Run every fuzz target for some seconds, two at a time: fuzz.sh FOLDER SECONDS
# New inputs go to build/fuzz/corpora; the seeds are read from tests/fuzz/corpora.
set -u

folder=$1 seconds=$2
run_one() {
	local target=$1 name corpus log
	name=${target##*/fuzz_}
	corpus=build/fuzz/corpora/$name
	log=build/fuzz/$name.log
	mkdir -p "$corpus"
	if (cd build/fuzz && "$OLDPWD/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix="$name-" "$OLDPWD/$corpus" \
		"$OLDPWD/tests/fuzz/corpora/$name") >"$log" 2>&1; then
		echo "  clean $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs," \
			"$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)"
	else
		echo "  FOUND $name"
		tail -n 60 "$log"
		return 1
	fi
}

failed=0
pids=()
for target in "$folder"/fuzz_*; do
	case $target in *.d | *.o) continue ;; esac
	run_one "$target" &
	pids+=($!)
	if [ ${#pids[@]} -ge 2 ]; then
		wait "${pids[0]}" || failed=1
		pids=("${pids[@]:1}")
	fi
done
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit $failed
