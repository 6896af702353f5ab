#!/usr/bin/env bash
# The rules of CONTRIBUTING.md that a program can check. Prints every breach; fails where there is one.
set -u

bad=0
breach() {
	[ -z "$2" ] && return
	printf 'lint: %s\n%s\n' "$1" "$2" >&2
	bad=1
}
tracked() {
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard -- "$@"
	else
		find . -path ./build -prune -o -type f -print | sed 's|^\./||' |
			grep -E "$(printf '%s|' "$@" | sed 's/\*/.*/g; s/|$//')"
	fi
}

mapfile -t code < <(tracked '*.c' '*.h' | sort)
mapfile -t sources < <(printf '%s\n' "${code[@]}" | grep '\.c$')
mapfile -t product < <(printf '%s\n' "${code[@]}" | grep -v '^tests/')
without() { printf '%s\n' "${product[@]}" | grep -vE "$1"; }

# One owner for each library and each effect.
owner() {
	breach "only $1 may include $2" "$(without "$3" | xargs grep -nE "#include <$2" /dev/null)"
}
owner 'server/http*' 'event2/' '^server/http'
owner 'server/http*' 'openssl/ssl\.h' '^server/http'
owner 'client/transport*' 'curl/' '^client/transport'
owner 'api/wire* and server/config*' 'jansson\.h' '^(api/wire|server/config)'
owner 'server/store*' 'sqlite3\.h' '^server/store'
breach 'only a main file ends the process' \
	"$(without '(^|/)main\.c$' | xargs grep -nE '\b(exit|_exit|abort|quick_exit|_Exit)\(' /dev/null |
		grep -vE 'worker/(spawn|host)[a-z_]*\.c|^\S+:\s*(/?\*|//)' | grep -vE ':\s*/?\*')"
breach 'only server/ and the tool print' \
	"$(without '^(server/|client/cli/|client/examples/|backends/worker/main\.c)' |
		xargs grep -nE '\b(printf|puts|putchar|perror|vprintf)\(|\b(stdout|stderr)\b' /dev/null |
		grep -vE ':\s*/?\*')"
breach 'vendors are named in their backend, backends/gpu and api/variants.def only' \
	"$(without '^backends/(gpu|cuda|rocm|vulkan|metal|webgpu)/' |
		grep -vE '^(client/devgate\.h|client/cli/|api/(device|throughput)[a-z_]*\.[ch])' |
		xargs grep -niE '\b(nvidia|amdgpu|radeon|nvml|hipMalloc|cuInit|rocm_smi)\b' /dev/null)"
breach 'arrows point one way: api includes neither backends, client nor server' \
	"$(grep -nE '#include "(backends|client|server)/' api/*.[ch])"
breach 'arrows point one way: backends include neither client nor server' \
	"$(grep -rnE '#include "(client|server)/' --include='*.[ch]' backends)"
breach 'arrows point one way: client does not include server' \
	"$(grep -rnE '#include "server/' --include='*.[ch]' client)"
breach 'the tool stands on the public headers alone' \
	"$(grep -rnE '#include "(api|backends|server|client/[a-z_]+\.h)' --include='*.[ch]' client/cli)"
breach 'measuring is the engine'\''s alone' \
	"$(find backends -mindepth 2 -name '*.[ch]' ! -path 'backends/core/*' ! -path 'backends/worker/*' \
		-print | xargs grep -niE 'flops|gbps|warm_?up|median' /dev/null)"
breach 'banned functions' \
	"$(printf '%s\n' "${code[@]}" | xargs grep -nE \
		'\b(sprintf|vsprintf|strcat|strcpy|gets|strtok|atoi|atol|atoll|atof|alloca|tmpnam)\(' /dev/null)"
breach 'unfinished' "$(without '^$' | xargs grep -nE '\b(TODO|FIXME|XXX|HACK)\b' /dev/null)"

# Sizes.
breach 'files longer than 800 lines' \
	"$(wc -l "${code[@]}" | awk '$2 != "total" && $1 > 800')"
breach 'lines longer than 100 columns' \
	"$(for f in "${code[@]}"; do expand -t 8 "$f" | awk -v f="$f" \
		'{ gsub(/[\200-\277]/, "") } length($0) > 100 { print f ":" NR ": " length($0) }'; done)"
sizes=$(printf '%s\n' "${sources[@]}" | grep -v '^tests/' |
	xargs ctags -x --fields=+ne --c-kinds=f --_xformat='%{name} %{line} %{end} %{input}' 2>/dev/null |
	awk '$3 ~ /^[0-9]+$/ { print $3 - $2 + 1, $1, $4 }' | sort -n)
breach 'functions longer than 100 lines' "$(echo "$sizes" | awk '$1 > 100')"
echo "$sizes" | awk '{ n[NR] = $1 } END {
	printf "lint: %d functions, median %d lines, p90 %d, longest %d\n", NR, n[int((NR + 1) / 2)],
		n[int(NR * 0.9)], n[NR]
	exit n[int((NR + 1) / 2)] > 15 || n[int(NR * 0.9)] > 50 }' ||
	breach 'functions too long: median at most 15, p90 at most 50' "$(echo "$sizes" | tail -n 30)"

# Every header's guard names it.
for h in $(printf '%s\n' "${code[@]}" | grep '\.h$'); do
	guard=DEVGATE_$(echo "$h" | tr a-z/.- A-Z___)
	public=DEVGATE_$(basename "$h" | tr a-z/.- A-Z___)
	grep -qE "#ifndef ($guard|$public)\$" "$h" || breach "guard is not $guard" "$h"
done

if [ "${1:-}" != quick ]; then
	flags=(-std=c11 -D_GNU_SOURCE -I. -Ibuild/include '-DDG_VERSION="0"')
	# One file a process: with more, clang 14 takes initialised va_lists of later ones for uninitialised.
	tidy() {
		xargs -P 2 -n 1 sh -c 'clang-tidy --quiet "$@" -- '"$(printf "'%s' " "${flags[@]}")"' \
			2>/dev/null || exit 1' sh "$@" >>build/clang-tidy.log
	}
	: >build/clang-tidy.log
	printf '%s\n' "${sources[@]}" | grep -v '^tests/' | tidy &&
		printf '%s\n' "${sources[@]}" | grep '^tests/' | tidy --checks="-*,readability-function-size,
			bugprone-infinite-loop,bugprone-sizeof-expression,bugprone-suspicious-semicolon,
			bugprone-use-after-move,bugprone-posix-return,misc-redundant-expression" ||
		breach 'clang-tidy' "$(cat build/clang-tidy.log)"
	cppcheck --quiet --std=c11 --language=c -j 2 --enable=warning,performance,portability \
		--inline-suppr --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches \
		--suppress=unknownMacro --error-exitcode=1 -D_GNU_SOURCE -DDG_VERSION='"0"' -D__x86_64__ \
		-D__linux__ -I. -Ibuild/include "${sources[@]}" 2>build/cppcheck.log ||
		breach 'cppcheck' "$(cat build/cppcheck.log)"
fi
exit $bad
