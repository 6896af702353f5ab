#!/usr/bin/env bash
# Man pages render without a warning, and every flag a program knows is on its page: docs.sh PAGE...
set -u

failed=0
for page in "$@"; do
	warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" \
		2>&1 >/dev/null)
	[ -z "$warnings" ] || { printf '%s:\n%s\n' "$page" "$warnings" >&2; failed=1; }
done

on_page() {
	local page=$1 flag
	shift
	for flag in $("$@" 2>&1 | grep -oE -- '--[a-z][a-z-]+' | sort -u); do
		LC_ALL=C MANWIDTH=1000 man -l "$page" | col -b | grep -qe "$flag\\b" ||
			{ echo "$page does not mention $flag" >&2; failed=1; }
	done
}
bin=${DG_BUILD:-build/release}/bin
[ -x "$bin/devgated" ] && on_page server/devgated.8 "$bin/devgated" --help
[ -x "$bin/devgate" ] && on_page client/cli/devgate.1 "$bin/devgate" --help
exit $failed
