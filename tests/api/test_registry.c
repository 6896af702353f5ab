/* The registry of remote devices: places, threads, memory running out, being full, fork. */
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The unit is compiled in here with an allocator that can be told to fail. */
static atomic_int failing;

static void *test_malloc(size_t size)
{
	return atomic_load(&failing) ? NULL : malloc(size);
}

#define malloc test_malloc
#include "api/registry.c" /* NOLINT(bugprone-suspicious-include) */
#undef malloc

#define THREADS 8
#define EACH 400

static dg__address address_of(const char *host, uint16_t port)
{
	dg__address address = { .tls = true, .port = port };
	snprintf(address.host, sizeof(address.host), "%s", host);
	return address;
}

static dg_device added(const char *host, uint16_t port, uint32_t credential, uint32_t index)
{
	dg_device device = { 0 };
	dg__address address = address_of(host, port);
	CU_ASSERT_EQUAL(dg__registry_add(&address, credential, index, &device, NULL), DG_OK);
	return device;
}

static void test_add__equal_entries_have_one_place(void)
{
	dg_device a = added("one", 1, 0, 0);
	CU_ASSERT(dg_device_equal_strict(a, added("one", 1, 0, 0)));
	CU_ASSERT_FALSE(dg_device_equal(a, added("one", 1, 0, 1)));
	CU_ASSERT_FALSE(dg_device_equal(a, added("one", 1, 1, 0)));
	CU_ASSERT_FALSE(dg_device_equal(a, added("one", 2, 0, 0)));
	CU_ASSERT_FALSE(dg_device_equal(a, added("two", 1, 0, 0)));
	dg__address plain = address_of("one", 1);
	dg_device b = { 0 };
	plain.tls = false;
	CU_ASSERT_EQUAL(dg__registry_add(&plain, 0, 0, &b, NULL), DG_OK);
	CU_ASSERT_FALSE(dg_device_equal(a, b));
}

static void test_get__gives_what_was_added_and_null_elsewhere(void)
{
	dg_device device = added("three", 3, 7, 65535);
	const dg__remote *remote = dg__registry_get(device.index);
	CU_ASSERT_PTR_NOT_NULL_FATAL(remote);
	CU_ASSERT_STRING_EQUAL(remote->address.host, "three");
	CU_ASSERT(remote->credential == 7 && remote->index == 65535 && remote->address.port == 3);
	CU_ASSERT_PTR_NULL(dg__registry_get(65535));
	CU_ASSERT_PTR_NULL(dg__registry_get((uint16_t)dg__registry_count()));
}

static void test_add__an_index_above_65535_is_out_of_range(void)
{
	dg_device device = { .index = 9 };
	dg__address address = address_of("one", 1);
	CU_ASSERT_EQUAL(dg__registry_add(&address, 0, 65536, &device, NULL), DG_ERANGE);
	CU_ASSERT_EQUAL(device.index, 9);
}

static void test_add__without_memory_nothing_is_registered(void)
{
	dg_device device = { .index = 9 };
	dg__address address = address_of("nomem", 1);
	size_t before = dg__registry_count();
	atomic_store(&failing, 1);
	CU_ASSERT_EQUAL(dg__registry_add(&address, 0, 0, &device, NULL), DG_ENOMEM);
	CU_ASSERT_EQUAL(dg__registry_count(), before);
	CU_ASSERT_EQUAL(device.index, 9);
	(void)added("one", 1, 0, 0);
	atomic_store(&failing, 0);
	device = added("nomem", 1, 0, 0);
	CU_ASSERT_EQUAL(device.index, before);
}

typedef struct job {
	unsigned number;
	unsigned wrong;
	dg_device shared[EACH], own[EACH];
} job;

static void *add_many(void *user)
{
	job *j = user;
	char host[32];
	for (unsigned i = 0; i < EACH; i++) {
		dg__address shared = address_of("shared", (uint16_t)(1 + i));
		snprintf(host, sizeof(host), "own%u", j->number);
		dg__address own = address_of(host, (uint16_t)(1 + i));
		j->wrong += dg__registry_add(&shared, 0, i, &j->shared[i], NULL) != DG_OK;
		j->wrong += dg__registry_add(&own, 0, i, &j->own[i], NULL) != DG_OK;
		const dg__remote *remote = dg__registry_get(j->own[i].index);
		j->wrong +=
			!remote || remote->index != i || strcmp(remote->address.host, host) != 0;
		/* Ids that others are making at this moment resolve, or do not yet. */
		dg_device other;
		dg_err err = dg_device_from_id(
			(dg_id){ DG_REMOTE << 8, (uint16_t)(j->own[i].index + 1) }, &other, NULL);
		j->wrong += err != DG_OK && err != DG_EUNREGISTERED;
	}
	return NULL;
}

static void test_add__many_threads_agree_on_every_place(void)
{
	static job jobs[THREADS];
	pthread_t threads[THREADS];
	size_t before = dg__registry_count();
	for (unsigned t = 0; t < THREADS; t++) {
		jobs[t].number = t;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[t], NULL, add_many, &jobs[t]), 0);
	}
	for (unsigned t = 0; t < THREADS; t++) {
		pthread_join(threads[t], NULL);
		CU_ASSERT_EQUAL(jobs[t].wrong, 0);
		CU_ASSERT_EQUAL(memcmp(jobs[t].shared, jobs[0].shared, sizeof(jobs[0].shared)), 0);
	}
	CU_ASSERT_EQUAL(dg__registry_count(), before + EACH + THREADS * EACH);
}

static atomic_int stop;

static void *add_until_stopped(void *user)
{
	(void)user;
	for (unsigned i = 0; i < 20000 && !atomic_load(&stop); i++) {
		dg__address address = address_of("forking", (uint16_t)(1 + i));
		dg_device device;
		if (dg__registry_add(&address, 0, 0, &device, NULL))
			break;
	}
	return NULL;
}

static void test_add__works_in_a_child_of_fork(void)
{
	pthread_t thread;
	unsigned good = 0;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, add_until_stopped, NULL), 0);
	for (unsigned i = 0; i < 20; i++) {
		pid_t child = fork();
		if (child == 0) {
			dg_device device;
			dg__address address = address_of("child", (uint16_t)(1 + i));
			alarm(20); /* a lock that is held for ever must not hang the test */
			_exit(dg__registry_add(&address, 0, 0, &device, NULL) == DG_OK ? 0 : 1);
		}
		int status = 1;
		CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
		good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(good, 20);
}

/* Last, because nothing can be added after it. */
static void test_add__is_out_of_range_when_65536_places_are_taken(void)
{
	dg__address address = address_of("full", 1);
	dg_device device = { 0 };
	dg_error error;
	dg_err err = DG_OK;
	for (uint32_t i = 0; i < 65536 && !err; i++)
		err = dg__registry_add(&address, 5, i, &device, &error);
	CU_ASSERT_EQUAL(err, DG_ERANGE);
	CU_ASSERT_EQUAL(dg__registry_count(), 65536);
	CU_ASSERT_PTR_NOT_NULL(dg__registry_get(65535));
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "65536"));
	CU_ASSERT_EQUAL(added("full", 1, 5, 0).variant, DG_REMOTE);
	CU_ASSERT_EQUAL(dg_device_parse("https://one:1#0", &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_device_parse("https://unmet:1#0", &device, NULL), DG_ERANGE);
}

static const dg_test_case cases[] = {
	DG_TEST(test_add__equal_entries_have_one_place),
	DG_TEST(test_get__gives_what_was_added_and_null_elsewhere),
	DG_TEST(test_add__an_index_above_65535_is_out_of_range),
	DG_TEST(test_add__without_memory_nothing_is_registered),
	DG_TEST(test_add__many_threads_agree_on_every_place),
	DG_TEST(test_add__works_in_a_child_of_fork),
	DG_TEST(test_add__is_out_of_range_when_65536_places_are_taken),
};

DG_TEST_MAIN("api/registry", cases)
