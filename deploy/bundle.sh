#!/usr/bin/env bash
# Make build/devgate-VERSION-ARCH.tar.gz: programs, library, tests and fixtures with the shared
# libraries that a machine with glibc alone lacks. ./run-conformance in it runs the tests from there;
# bin/devgate, bin/devgated run from wherever it is unpacked.
set -eu

version=$(cat VERSION)
name=devgate-$version-$(uname -m)
flavour=bundle
# DT_RPATH, since DT_RUNPATH is not used for libraries of libraries.
make -s --no-print-directory -j2 FLAVOUR=$flavour FLAVOUR_bundle='-O2 -g1' \
	LDFLAGS="-Wl,--disable-new-dtags -Wl,-rpath,'\$\$ORIGIN/../lib:\$\$ORIGIN/../../lib:\$\$ORIGIN/../../../lib'" \
	all tests benches examples

built=build/$flavour
out=build/$name
rm -rf "$out"
mkdir -p "$out"/{bin,lib,libexec/devgate,tests}
cp $built/bin/* "$out/bin"
cp $built/libexec/devgate/* "$out/libexec/devgate"
cp -a $built/lib/libdevgate.so* "$out/lib"
for folder in api backends client e2e fakes bench; do
	mkdir -p "$out/tests/$folder"
	find $built/tests/$folder -maxdepth 1 -type f -perm -u+x -exec cp {} "$out/tests/$folder" \; \
		2>/dev/null || true
done
mkdir -p "$out/examples"
find $built/client/examples -maxdepth 1 -type f -perm -u+x -exec cp {} "$out/examples" \;
mkdir -p "$out/fixtures" && cp -r tests/fixtures/. "$out/fixtures"
strip --strip-debug "$out"/bin/* "$out"/libexec/devgate/* "$out"/lib/*.so "$out"/tests/*/* 2>/dev/null || true

# Everything but glibc and the loader.
ldd "$out"/bin/* "$out"/tests/*/* "$out"/libexec/devgate/* 2>/dev/null |
	sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u |
	grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' |
	while read -r library; do cp -L "$library" "$out/lib/$(basename "$library")"; done

cat >"$out/run-conformance" <<'RUN'
#!/bin/sh
# Run the tests of this bundle against the devices of this machine. DG_REQUIRE=cuda makes a missing
# device a failure; arguments name the programs to run ("backends/test_conformance").
set -u
cd "$(dirname "$0")"
export DG_BUILD="$PWD" DG_FIXTURES="$PWD/fixtures"
[ $# -gt 0 ] || set -- $(find tests/api tests/backends tests/client tests/e2e -type f -name 'test_*' |
	sed 's|^tests/||' | sort)
passed=0 failed=0 skipped=0
for test in "$@"; do
	log=${TMPDIR:-/tmp}/devgate-conformance.$$
	timeout 300 "tests/$test" >"$log" 2>&1 </dev/null
	case $? in
	0) passed=$((passed + 1)); echo "pass $test" ;;
	77) skipped=$((skipped + 1)); echo "skip $test"; grep skipped "$log" | head -n 3 ;;
	*) failed=$((failed + 1)); echo "FAIL $test"; tail -n 40 "$log" ;;
	esac
	rm -f "$log"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
RUN
chmod +x "$out/run-conformance"
tar -C build -czf "build/$name.tar.gz" "$name"
echo "build/$name.tar.gz ($(du -h "build/$name.tar.gz" | cut -f1))"
