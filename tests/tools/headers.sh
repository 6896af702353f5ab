#!/usr/bin/env bash
# Each public header compiles alone, as C11 and as C++17: headers.sh INCLUDE_FOLDER HEADER...
set -eu

include=$1
shift
strict='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror -fsyntax-only'
for header in "$@"; do
	line="#include <devgate/$(basename "$header")>"
	for compiler in "gcc -std=c11 -x c -Wstrict-prototypes" "clang -std=c11 -x c" \
		"g++ -std=c++17 -x c++" "clang++ -std=c++17 -x c++"; do
		command -v "${compiler%% *}" >/dev/null || continue
		echo "$line" | $compiler $strict "-I$include" - || { echo "$header: $compiler" >&2; exit 1; }
	done
done
echo "$# headers compile alone as C11 and C++17"
