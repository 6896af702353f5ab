# devgate: `make help` lists the targets. Sources are found by wildcard; a new backend needs no line here.

VERSION := $(shell cat VERSION)
FLAVOUR ?= release
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
LIBEXECDIR ?= $(PREFIX)/libexec
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
PKG_CONFIG ?= pkg-config
SHELL := /bin/bash
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

ifeq ($(V),1)
Q :=
else
Q := @
endif

B := build/$(FLAVOUR)
UNAME := $(shell uname -s)

WARN := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wundef
FLAVOUR_release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong
FLAVOUR_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FLAVOUR_tsan := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
FLAVOUR_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
ifeq ($(FLAVOUR),fuzz)
CC := clang
endif
ifeq ($(CI),true)
WERROR := -Werror
endif

# User flags come last, so that they win.
DG_CPPFLAGS = -I. -Ibuild/include -D_GNU_SOURCE -DDG_VERSION='"$(VERSION)"' $(CPPFLAGS)
DG_CFLAGS = -std=c11 -fPIC -pthread $(WARN) $(WERROR) $(FLAVOUR_$(FLAVOUR)) $(CFLAGS)
DG_LDFLAGS = -pthread $(filter -fsanitize=%,$(FLAVOUR_$(FLAVOUR))) $(LDFLAGS)
ifeq ($(UNAME),Linux)
DG_LDFLAGS += -Wl,-z,relro,-z,now
endif

pkg = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)
LIBS_API = $(call pkg,jansson libcrypto) -lm -ldl
LIBS_CLIENT = $(call pkg,libcurl libcrypto) $(LIBS_API)
LIBS_SERVER = $(call pkg,libevent_core libssl libcrypto sqlite3 inih) $(LIBS_API)
LIBS_TEST = $(call pkg,cunit)

PUBLIC := $(addprefix api/,error.h errors.def variants.def dtypes.def device.h default.h settings.h \
	throughput.h info.h json.h) client/devgate.h
PUBLIC_LINKS := $(addprefix build/include/devgate/,$(notdir $(PUBLIC)))

LIB_C := $(wildcard api/*.c) $(filter-out backends/worker/main.c,$(wildcard backends/*/*.c \
	backends/*/kernels/*.c)) $(wildcard client/*.c)
SERVER_C := $(filter-out server/main.c,$(wildcard server/*.c))
CLI_C := $(wildcard client/cli/*.c)
TEST_C := $(wildcard tests/*/test_*.c)
TEST_LIB_C := $(wildcard tests/*.c) $(filter-out tests/fakes/main_%.c tests/fakes/lib_%.c,\
	$(wildcard tests/fakes/*.c))
FAKE_MAIN_C := $(wildcard tests/fakes/main_*.c)
# Fake drivers: shared libraries, opened as the real ones are.
FAKE_LIB_C := $(wildcard tests/fakes/lib_*.c)
FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_C := $(wildcard tests/bench/bench_*.c)
LOAD_C := $(wildcard tests/bench/load_*.c)
EXAMPLE_C := $(wildcard client/examples/*.c)
ALL_C := $(LIB_C) backends/worker/main.c $(SERVER_C) server/main.c $(CLI_C) $(TEST_C) $(TEST_LIB_C) \
	$(FAKE_MAIN_C) $(FAKE_LIB_C) $(FUZZ_C) $(BENCH_C) $(LOAD_C) $(EXAMPLE_C)

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
bin = $(patsubst %.c,$(B)/%,$(1))

INTERNAL := $(B)/lib/libdevgate-internal.a
SERVER_A := $(B)/lib/libserver.a
CLI_A := $(B)/lib/libcli.a
TEST_A := $(B)/lib/libtest.a
TESTS := $(call bin,$(TEST_C))
FAKE_LIBS := $(patsubst tests/fakes/lib_%.c,$(B)/tests/fakes/lib%.so,$(FAKE_LIB_C))
FAKES := $(call bin,$(FAKE_MAIN_C)) $(FAKE_LIBS)
BENCHES := $(call bin,$(BENCH_C))
FUZZERS := $(call bin,$(FUZZ_C))
EXAMPLES := $(call bin,$(EXAMPLE_C))

.PHONY: all
all: $(B)/bin/devgate $(if $(wildcard server/main.c),$(B)/bin/devgated) $(B)/libexec/devgate/devgate-worker $(B)/lib/libdevgate.a \
	$(B)/lib/libdevgate.so ## build programs and library

build/include/devgate/%: | build/include/devgate
	$(Q)ln -sf ../../../$(filter %/$*,$(PUBLIC)) $@
build/include/devgate:
	$(Q)mkdir -p $@

# Flags and tool versions are part of what an object was made from.
$(B)/flags: FORCE
	$(Q)mkdir -p $(@D); echo '$(CC) $(DG_CPPFLAGS) $(DG_CFLAGS)' | cmp -s - $@ || \
		echo '$(CC) $(DG_CPPFLAGS) $(DG_CFLAGS)' > $@
FORCE:

$(B)/obj/%.o: %.c $(B)/flags | $(PUBLIC_LINKS)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(DG_CPPFLAGS) $(DG_CFLAGS) -MMD -MP -c $< -o $@

# What the assembler takes into the program, which -MMD does not see.
$(B)/obj/server/routes_gateway.o: api/openapi.yaml
$(B)/obj/backends/gpu/gpu_text.o: $(wildcard backends/gpu/kernels/*.cu*)

define archive
$(Q)mkdir -p $(@D); rm -f $@
$(Q)$(AR) rcs $@ $^
endef

$(INTERNAL) $(B)/lib/libdevgate.a: $(call obj,$(LIB_C))
	$(archive)
$(SERVER_A): $(call obj,$(SERVER_C))
	$(archive)
$(TEST_A): $(call obj,$(TEST_LIB_C))
	$(archive)
$(CLI_A): $(call obj,$(filter-out client/cli/main.c,$(CLI_C)))
	$(archive)

$(B)/lib/libdevgate.so: $(call obj,$(LIB_C)) client/devgate.map
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(DG_LDFLAGS) -Wl,-soname,libdevgate.so.0 -Wl,--version-script=client/devgate.map \
		-o $@ $(filter %.o,$^) $(LIBS_CLIENT)
	$(Q)ln -sf libdevgate.so $(@D)/libdevgate.so.0

define link
$(Q)mkdir -p $(@D)
$(Q)$(CC) $(DG_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(1)
endef

$(B)/bin/devgate: $(call obj,$(CLI_C)) $(B)/lib/libdevgate.a
	$(call link,$(LIBS_CLIENT))
$(B)/bin/devgated: $(B)/obj/server/main.o $(SERVER_A) $(INTERNAL)
	$(call link,$(LIBS_SERVER))
$(B)/libexec/devgate/devgate-worker: $(B)/obj/backends/worker/main.o $(INTERNAL)
	$(call link,$(LIBS_API))
$(TESTS): $(B)/tests/%: $(B)/obj/tests/%.o $(TEST_A) $(SERVER_A) $(CLI_A) $(INTERNAL)
	$(call link,$(LIBS_SERVER) $(LIBS_CLIENT) $(LIBS_TEST))
$(FAKE_LIBS): $(B)/tests/fakes/lib%.so: $(B)/obj/tests/fakes/lib_%.o
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(DG_LDFLAGS) -o $@ $^ -lm
$(call bin,$(FAKE_MAIN_C)): $(B)/tests/%: $(B)/obj/tests/%.o $(TEST_A) $(INTERNAL)
	$(call link,$(LIBS_API) $(LIBS_TEST))
$(BENCHES): $(B)/tests/%: $(B)/obj/tests/%.o $(SERVER_A) $(INTERNAL)
	$(call link,$(LIBS_SERVER) $(LIBS_CLIENT))
$(call bin,$(LOAD_C)): $(B)/tests/%: $(B)/obj/tests/%.o
	$(call link,$(call pkg,libssl libcrypto))
$(FUZZERS): $(B)/tests/%: $(B)/obj/tests/%.o $(SERVER_A) $(INTERNAL)
	$(call link,-fsanitize=fuzzer $(LIBS_SERVER) $(LIBS_CLIENT))
$(EXAMPLES): $(B)/client/%: $(B)/obj/client/%.o $(B)/lib/libdevgate.a
	$(call link,$(LIBS_CLIENT))

.PHONY: headers tests fakes
headers: $(PUBLIC_LINKS)
tests: $(TESTS) fakes
fakes: $(FAKES)

# ---- for users

.PHONY: deps deps-build demo
deps: ## install what building, testing and linting need (Debian, Ubuntu)
	$(Q)deploy/deps.sh build test lint image
deps-build:
	$(Q)deploy/deps.sh build

# The packages must be there before make looks for their flags, hence the second make.
demo: deps-build ## build, start a gateway, show its devices with measured figures
	$(Q)echo 'Building devgate $(VERSION)...'
	$(Q)$(MAKE) -s --no-print-directory -j2 all
	$(Q)deploy/demo.sh $(B)

.PHONY: check check-tests deps-test
deps-test:
	$(Q)deploy/deps.sh test
check: deps-test ## run the tests
	$(Q)echo 'Building devgate $(VERSION) and its tests...'
	$(Q)$(MAKE) -s --no-print-directory -j2 all tests examples
	$(Q)$(MAKE) -s --no-print-directory check-tests
check-tests:
	$(Q)rm -f $(B)/exchanges.jsonl
	$(Q)DG_BUILD=$(B) DG_RECORD=$(abspath $(B))/exchanges.jsonl DG_CORPORA=tests/fuzz/corpora \
		$(TEST_ENV_$(FLAVOUR)) tests/tools/run.sh $(B)/test-logs $(TESTS)
	$(Q)python3 tests/tools/check_openapi.py $(wildcard $(B)/exchanges.jsonl)

TEST_ENV_asan := ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 \
	DG_ENGINE_QUICK=1 DG_TEST_TIMEOUT=600
TEST_ENV_tsan := TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 DG_ENGINE_QUICK=1 \
	DG_TEST_TIMEOUT=600

.PHONY: examples install uninstall
examples: $(EXAMPLES)
MAN := $(wildcard client/cli/*.[1-8] client/*.[1-8] server/*.[1-8] backends/worker/*.[1-8])
install: all ## install below PREFIX (DESTDIR is honoured)
	$(Q)install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBEXECDIR)/devgate $(DESTDIR)$(LIBDIR)/pkgconfig \
		$(DESTDIR)$(INCLUDEDIR)/devgate
	$(Q)install -m 755 $(B)/bin/devgate $(B)/bin/devgated $(DESTDIR)$(BINDIR)
	$(Q)install -m 755 $(B)/libexec/devgate/devgate-worker $(DESTDIR)$(LIBEXECDIR)/devgate
	$(Q)install -m 644 $(B)/lib/libdevgate.a $(DESTDIR)$(LIBDIR)
	$(Q)install -m 755 $(B)/lib/libdevgate.so $(DESTDIR)$(LIBDIR)/libdevgate.so.0
	$(Q)ln -sf libdevgate.so.0 $(DESTDIR)$(LIBDIR)/libdevgate.so
	$(Q)install -m 644 $(PUBLIC) $(DESTDIR)$(INCLUDEDIR)/devgate
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' client/devgate.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/devgate.pc
	$(Q)for page in $(MAN); do section=$${page##*.}; \
		install -d $(DESTDIR)$(MANDIR)/man$$section && \
		install -m 644 $$page $(DESTDIR)$(MANDIR)/man$$section || exit 1; done
uninstall: ## remove what install put there
	$(Q)rm -f $(addprefix $(DESTDIR)$(BINDIR)/,devgate devgated) \
		$(DESTDIR)$(LIBEXECDIR)/devgate/devgate-worker \
		$(addprefix $(DESTDIR)$(LIBDIR)/,libdevgate.a libdevgate.so libdevgate.so.0 pkgconfig/devgate.pc) \
		$(addprefix $(DESTDIR)$(INCLUDEDIR)/devgate/,$(notdir $(PUBLIC)))
	$(Q)for page in $(MAN); do rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$$(basename $$page); done
	$(Q)rmdir -p --ignore-fail-on-non-empty $(DESTDIR)$(LIBEXECDIR)/devgate \
		$(DESTDIR)$(INCLUDEDIR)/devgate $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(BINDIR) \
		$(addprefix $(DESTDIR)$(MANDIR)/man,1 3 5 8) 2>/dev/null || true

# ---- for developers

.PHONY: check-all check-asan check-tsan fuzz bench bench-server soak lint format format-check docs check-exports \
	check-headers check-install check-image check-clang bundle dist distcheck clean help
check-all: ## everything that CI checks, after `make check`
	$(Q)deploy/deps.sh lint image
	$(Q)$(MAKE) --no-print-directory check-clang lint docs check-exports check-headers check-install
	$(Q)$(MAKE) --no-print-directory check-asan
	$(Q)$(MAKE) --no-print-directory check-tsan
	$(Q)$(MAKE) --no-print-directory fuzz
	$(Q)$(MAKE) --no-print-directory distcheck check-image
check-asan check-tsan: check-%: ## the tests under sanitizers
	$(Q)$(MAKE) -s --no-print-directory -j2 FLAVOUR=$* all tests
	$(Q)$(MAKE) -s --no-print-directory FLAVOUR=$* check-tests
check-clang: ## the other compiler, warnings fatal
	$(Q)$(MAKE) -s --no-print-directory -j2 FLAVOUR=clang CC=clang WERROR=-Werror \
		FLAVOUR_clang='$(FLAVOUR_release)' all tests examples
FUZZ_SECONDS ?= 60
fuzz: ## libFuzzer on every target, FUZZ_SECONDS each
	$(Q)$(MAKE) -s --no-print-directory -j2 FLAVOUR=fuzz fuzzers
	$(Q)tests/tools/fuzz.sh build/fuzz/tests/fuzz $(FUZZ_SECONDS)
.PHONY: fuzzers benches
fuzzers: $(FUZZERS)
benches: $(BENCHES)
bench: ## figures beside peers, on this machine
	$(Q)$(MAKE) -s --no-print-directory -j2 all benches
	$(Q)for b in $(BENCHES); do echo "== $${b##*/}"; DG_BUILD=$(B) $$b $(BENCH_ARGS) || exit 1; done
bench-server: ## the gateway beside nginx, with wrk
	$(Q)deploy/deps.sh build bench
	$(Q)$(MAKE) -s --no-print-directory -j2 all fakes $(call bin,$(LOAD_C))
	$(Q)tests/bench/bench_server.sh $(B) $(BENCH_ARGS)
soak: ## a million requests, workers killed and certificates swapped meanwhile
	$(Q)deploy/deps.sh build bench
	$(Q)$(MAKE) -s --no-print-directory -j2 all fakes $(call bin,$(LOAD_C))
	$(Q)tests/bench/soak.sh $(B) $(BENCH_ARGS)
lint: headers ## clang-tidy, cppcheck, size limits, single owners, banned functions
	$(Q)tests/tools/lint.sh
format: ## reformat with clang-format
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format -i
format-check:
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror
docs: ## check man pages and the contract; warnings are fatal
	$(Q)tests/tools/docs.sh $(MAN)
	$(Q)python3 tests/tools/check_openapi.py
check-exports: all ## the shared library exports dg_ names, and just those the headers declare
	$(Q)tests/tools/exports.sh $(B)/lib/libdevgate.so $(PUBLIC)
check-headers: headers ## public headers compile alone as C11 and C++17, warnings fatal
	$(Q)tests/tools/headers.sh build/include $(filter %.h,$(PUBLIC))
check-install: ## install, use from there, uninstall
	$(Q)tests/tools/install.sh
check-image: ## build the container image and run it (root, buildah, podman)
	$(Q)tests/tools/image.sh
bundle: ## a tarball that runs on a machine with glibc alone: build/devgate-VERSION-ARCH.tar.gz
	$(Q)deploy/bundle.sh
dist: ## source tarball
	$(Q)mkdir -p build && git archive --format=tar.gz --prefix=devgate-$(VERSION)/ \
		-o build/devgate-$(VERSION).tar.gz HEAD
distcheck: dist ## build from the tarball alone
	$(Q)rm -rf build/distcheck && mkdir -p build/distcheck && \
		tar -xzf build/devgate-$(VERSION).tar.gz -C build/distcheck
	$(Q)$(MAKE) -s --no-print-directory -j2 -C build/distcheck/devgate-$(VERSION) all
	$(Q)build/distcheck/devgate-$(VERSION)/build/release/bin/devgate version
	$(Q)rm -rf build/distcheck
clean: ## remove build/
	$(Q)rm -rf build
help: ## this list
	$(Q)sed -n 's/^\([a-z][a-z-]*\)[a-z -]*:.*## \(.*\)/\1\t\2/p' Makefile | expand -t 16

-include $(patsubst %.c,$(B)/obj/%.d,$(ALL_C))
