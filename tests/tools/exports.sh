#!/usr/bin/env bash
# The shared library exports what the public headers declare and nothing else:
# exports.sh LIBRARY HEADER...
set -eu

library=$1
shift
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' | sort -u)
declared=$(grep -ohE '\bdg_[a-z0-9_]+\(' "$@" | tr -d '(' | sort -u)
difference=$(diff <(echo "$declared") <(echo "$exported")) || true
[ -z "$difference" ] || {
	echo "declared (<) and exported (>) differ:"
	echo "$difference"
	exit 1
}
echo "$(echo "$exported" | wc -l) exported functions, all declared, all of them dg_"
