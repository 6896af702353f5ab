/*
 * What every test program shares: registering cases with CUnit, fixtures, skipping with a reason.
 */
#ifndef DEVGATE_TESTS_TEST_H
#define DEVGATE_TESTS_TEST_H

#include <stddef.h>

#include <CUnit/CUnit.h>

typedef struct dg_test_case {
	const char *name;
	void (*run)(void);
} dg_test_case;

/**
 * Run cases as one suite; DG_TEST_ONLY=substring picks some. Prints each case's outcome and CUnit's
 * summary.
 *
 * @return 0 all passed, 1 some failed, 77 all that ran were skipped (see dg_test_skip()).
 */
int dg_test_run(const char *suite, const dg_test_case *cases, size_t count);

/** Say why the running case cannot run here; return from it afterwards. With DG_REQUIRE naming what
 * is missing ("cuda", "netns", …; comma list) it fails instead. */
void dg_test_skip(const char *what, const char *reason);

/** As dg_test_skip(), where a part of the case is left out and the rest of it runs. */
void dg_test_without(const char *what, const char *reason);

/** Path of a fixture; static buffer of the calling thread, good until its next call. */
const char *dg_test_fixture(const char *relative);
/** Whole content of a file, NUL-terminated; owned, free(). Fails the case and gives "" if
 * unreadable. */
char *dg_test_read_file(const char *path, size_t *ret_length);
/** A new empty directory; owned, free(); removed with its content when the program ends. */
char *dg_test_temp_dir(void);
/** Monotonic milliseconds. */
long long dg_test_now_ms(void);
/** Sleep. */
void dg_test_sleep_ms(unsigned ms);

#define DG_TEST(function) \
	{ \
#function, function \
	}
#define DG_TEST_MAIN(suite, cases) \
	int main(void) \
	{ \
		return dg_test_run(suite, cases, sizeof(cases) / sizeof((cases)[0])); \
	}

#endif
