/* Settings kept by id: one winner, whoever asks. */
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The unit is compiled in here with an allocator that can be told to fail. */
static atomic_int failing;

static void *test_malloc(size_t size)
{
	return atomic_load(&failing) ? NULL : malloc(size);
}

#define malloc test_malloc
#include "api/locked.c" /* NOLINT(bugprone-suspicious-include) */
#undef malloc

#define THREADS 8
#define IDS 500

static void test_configure__keeps_the_first_and_refuses_the_rest(void)
{
	dg_settings a = DG_SETTINGS_INIT, b = DG_SETTINGS_INIT, got = DG_SETTINGS_INIT;
	dg_id id = { 256, 3 };
	a.float_dtype = DG_BF16;
	CU_ASSERT_FALSE(dg__locked_get(id, &got));
	CU_ASSERT_EQUAL(dg__locked_configure(id, &a, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg__locked_configure(id, &b, NULL), DG_EINITIALIZED);
	CU_ASSERT_EQUAL(dg__locked_configure(id, &a, NULL), DG_EINITIALIZED);
	CU_ASSERT(dg__locked_get(id, &got));
	CU_ASSERT_EQUAL(got.float_dtype, DG_BF16);
	CU_ASSERT_EQUAL(dg__locked_first_read(id, &b, &got, NULL), DG_OK);
	CU_ASSERT_EQUAL(got.float_dtype, DG_BF16);
	CU_ASSERT_FALSE(dg__locked_get((dg_id){ 256, 4 }, &got));
}

static void test_first_read__locks(void)
{
	dg_settings a = DG_SETTINGS_INIT, got = DG_SETTINGS_INIT;
	dg_id id = { 512, 1 };
	dg_error error;
	a.int_dtype = DG_I64;
	CU_ASSERT_EQUAL(dg__locked_first_read(id, &a, &got, NULL), DG_OK);
	CU_ASSERT_EQUAL(got.int_dtype, DG_I64);
	CU_ASSERT_EQUAL(dg__locked_configure(id, &a, &error), DG_EINITIALIZED);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "512"));
}

static void test_keep__without_memory_nothing_is_locked(void)
{
	dg_settings a = DG_SETTINGS_INIT, got = { .size = 77 };
	dg_id id = { 768, 1 };
	atomic_store(&failing, 1);
	CU_ASSERT_EQUAL(dg__locked_configure(id, &a, NULL), DG_ENOMEM);
	CU_ASSERT_EQUAL(dg__locked_first_read(id, &a, &got, NULL), DG_ENOMEM);
	CU_ASSERT_EQUAL(got.size, 77);
	atomic_store(&failing, 0);
	CU_ASSERT_FALSE(dg__locked_get(id, &got));
	CU_ASSERT_EQUAL(dg__locked_configure(id, &a, NULL), DG_OK);
}

static atomic_uint winners[IDS];
static atomic_uint wrong;

/* Ids that fall into few buckets, so that threads meet in the same list. */
static dg_id contended(unsigned i)
{
	return (dg_id){ (uint16_t)(0x800 + i % 3), (uint16_t)i };
}

static void *compete(void *user)
{
	unsigned number = *(unsigned *)user;
	for (unsigned i = 0; i < IDS; i++) {
		dg_settings mine = DG_SETTINGS_INIT, got = DG_SETTINGS_INIT,
			    again = DG_SETTINGS_INIT;
		mine.size = 1000 + number;
		if (number % 2) {
			if (dg__locked_configure(contended(i), &mine, NULL) == DG_OK)
				atomic_fetch_add(&winners[i], 1);
		} else if (dg__locked_first_read(contended(i), &mine, &got, NULL)) {
			atomic_fetch_add(&wrong, 1);
		} else if (got.size == mine.size) {
			atomic_fetch_add(&winners[i], 1);
		}
		if (!dg__locked_get(contended(i), &got) || !dg__locked_get(contended(i), &again) ||
			got.size != again.size)
			atomic_fetch_add(&wrong, 1);
	}
	return NULL;
}

static void test_keep__exactly_one_of_many_threads_wins(void)
{
	pthread_t threads[THREADS];
	unsigned numbers[THREADS];
	for (unsigned t = 0; t < THREADS; t++) {
		numbers[t] = t;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[t], NULL, compete, &numbers[t]), 0);
	}
	for (unsigned t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	CU_ASSERT_EQUAL(atomic_load(&wrong), 0);
	for (unsigned i = 0; i < IDS; i++)
		CU_ASSERT_EQUAL(atomic_load(&winners[i]), 1);
}

static const dg_test_case cases[] = {
	DG_TEST(test_configure__keeps_the_first_and_refuses_the_rest),
	DG_TEST(test_first_read__locks),
	DG_TEST(test_keep__without_memory_nothing_is_locked),
	DG_TEST(test_keep__exactly_one_of_many_threads_wins),
};

DG_TEST_MAIN("api/locked", cases)
