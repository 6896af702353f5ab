/* Leases: of hardware, exclusive, with an end, kept over restarts. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/CUnit.h>

#include "backends/core/clock.h"
#include "server/leases.h"
#include "tests/test.h"

static dg__store *store;
static dg__leases *leases;
static const dg__principal alice = { "token:alice", DG__SCOPE_LEASE };
static const dg__principal bob = { "token:bob", DG__SCOPE_LEASE };

static void open_state(const char *directory)
{
	dg_error why;
	CU_ASSERT_EQUAL_FATAL(dg__store_open(directory, &store, &why), DG_OK);
	CU_ASSERT_EQUAL_FATAL(dg__leases_create(store, &leases, &why), DG_OK);
}

static void close_state(void)
{
	dg__leases_destroy(leases);
	dg__store_close(store);
}

static dg__device_entry device(const char *backend, const char *uuid, const char *parent)
{
	dg__device_entry entry;
	memset(&entry, 0, sizeof(entry));
	snprintf(entry.info.backend, sizeof(entry.info.backend), "%s", backend);
	snprintf(entry.info.hardware, sizeof(entry.info.hardware), "gpu:%s", uuid);
	entry.info.present = DG_HAS_HARDWARE;
	if (parent) {
		snprintf(entry.info.parent, sizeof(entry.info.parent), "%s", parent);
		entry.info.present |= DG_HAS_PARENT;
	}
	return entry;
}

static bool never(void *user, const dg__device_entry *entry)
{
	(void)user;
	(void)entry;
	return false;
}

static bool always(void *user, const dg__device_entry *entry)
{
	(void)user;
	(void)entry;
	return true;
}

static dg_err take(const dg__device_entry *entry, const dg__principal *who, uint32_t ttl_s,
	dg_lease *ret_lease)
{
	dg_error why;
	return dg__leases_take(leases, entry, who, ttl_s, never, NULL, ret_lease, &why);
}

static void test_lease__is_of_one_at_a_time(void)
{
	dg__device_entry card = device("cuda", "a", NULL);
	dg_lease mine, other;
	dg_error why;
	open_state(NULL);
	CU_ASSERT_EQUAL(take(&card, &alice, 60, &mine), DG_OK);
	CU_ASSERT_EQUAL(strlen(mine.id), 32);
	CU_ASSERT_STRING_EQUAL(mine.holder, "token:alice");
	CU_ASSERT_EQUAL(mine.expires_at_ms - mine.taken_at_ms, 60000);
	CU_ASSERT_EQUAL(
		dg__leases_take(leases, &card, &bob, 60, never, NULL, &other, &why), DG_ELEASED);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "token:alice"));
	CU_ASSERT_PTR_NULL(strstr(why.text, mine.id));
	/* Not by the same holder either: it is who presents the id. */
	CU_ASSERT_EQUAL(take(&card, &alice, 60, &other), DG_ELEASED);
	CU_ASSERT_EQUAL(dg__leases_check(leases, &card, mine.id, &why), DG_OK);
	CU_ASSERT_EQUAL(dg__leases_check(leases, &card, "", &why), DG_ELEASED);
	CU_ASSERT_EQUAL(dg__leases_get(leases, &card, &other, &why), DG_OK);
	CU_ASSERT_STRING_EQUAL(other.id, "");
	CU_ASSERT_STRING_EQUAL(other.holder, "token:alice");
	CU_ASSERT_EQUAL(dg__leases_release(leases, &card, mine.id, &other, &why), DG_OK);
	CU_ASSERT_EQUAL(dg__leases_get(leases, &card, &other, &why), DG_ENOLEASE);
	CU_ASSERT_EQUAL(take(&card, &bob, 60, &other), DG_OK);
	CU_ASSERT(other.fencing_token > mine.fencing_token);
	close_state();
}

static void test_lease__cannot_be_stolen(void)
{
	dg__device_entry card = device("cuda", "a", NULL);
	static const char *const wrong[] = { "", "0", "00000000000000000000000000000000",
		"0000000000000000000000000000000000000000000" };
	dg_lease mine, other;
	dg_error why;
	open_state(NULL);
	CU_ASSERT_EQUAL(take(&card, &alice, 60, &mine), DG_OK);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CU_ASSERT_EQUAL(
			dg__leases_renew(leases, &card, wrong[i], 5, &other, &why), DG_ENOLEASE);
		CU_ASSERT_EQUAL(
			dg__leases_release(leases, &card, wrong[i], &other, &why), DG_ENOLEASE);
	}
	/* Nor with a good id of another device. */
	dg__device_entry second = device("cuda", "b", NULL);
	CU_ASSERT_EQUAL(take(&second, &bob, 60, &other), DG_OK);
	CU_ASSERT_EQUAL(dg__leases_release(leases, &card, other.id, &other, &why), DG_ENOLEASE);
	CU_ASSERT_EQUAL(dg__leases_check(leases, &card, mine.id, &why), DG_OK);
	close_state();
}

static void test_lease__ends_and_can_be_renewed_before(void)
{
	dg__device_entry card = device("cuda", "a", NULL);
	dg_lease mine, renewed, other;
	dg_error why;
	open_state(NULL);
	CU_ASSERT_EQUAL(take(&card, &alice, 1, &mine), DG_OK);
	CU_ASSERT_EQUAL(dg__leases_renew(leases, &card, mine.id, 2, &renewed, &why), DG_OK);
	CU_ASSERT_EQUAL(renewed.fencing_token, mine.fencing_token);
	CU_ASSERT_EQUAL(renewed.taken_at_ms, mine.taken_at_ms);
	dg_test_sleep_ms(1300);
	CU_ASSERT_EQUAL(take(&card, &bob, 1, &other), DG_ELEASED);
	dg_test_sleep_ms(900);
	CU_ASSERT_EQUAL(dg__leases_check(leases, &card, "", &why), DG_OK);
	CU_ASSERT_EQUAL(take(&card, &bob, 1, &other), DG_OK);
	/* Too late for the first: it is told, and the second keeps it. */
	CU_ASSERT_EQUAL(dg__leases_renew(leases, &card, mine.id, 60, &renewed, &why), DG_ENOLEASE);
	CU_ASSERT_EQUAL(dg__leases_check(leases, &card, mine.id, &why), DG_ELEASED);
	close_state();
}

static void test_hardware__is_one_through_all_apis(void)
{
	dg__device_entry cuda = device("cuda", "a", NULL), vulkan = device("vulkan", "a", NULL);
	dg_lease mine, other;
	dg_error why;
	open_state(NULL);
	CU_ASSERT_EQUAL(take(&cuda, &alice, 60, &mine), DG_OK);
	CU_ASSERT_EQUAL(take(&vulkan, &bob, 60, &other), DG_ELEASED);
	CU_ASSERT_EQUAL(dg__leases_check(leases, &vulkan, mine.id, &why), DG_OK);
	CU_ASSERT_EQUAL(dg__leases_release(leases, &vulkan, mine.id, &other, &why), DG_OK);
	CU_ASSERT_EQUAL(take(&vulkan, &bob, 60, &other), DG_OK);
	CU_ASSERT_EQUAL(take(&cuda, &alice, 60, &mine), DG_ELEASED);
	close_state();
}

static void test_partition__and_what_it_is_of_exclude_each_other(void)
{
	dg__device_entry whole = device("cuda", "p", NULL);
	dg__device_entry first = device("cuda", "s1", "p"), second = device("cuda", "s2", "p");
	dg_lease one, two, other;
	dg_error why;
	open_state(NULL);
	CU_ASSERT_EQUAL(take(&first, &alice, 60, &one), DG_OK);
	CU_ASSERT_EQUAL(take(&whole, &bob, 60, &other), DG_ELEASED);
	CU_ASSERT_EQUAL(take(&second, &bob, 60, &two), DG_OK);
	/* The whole is used by who holds all of its leases, so by nobody here. */
	CU_ASSERT_EQUAL(dg__leases_check(leases, &whole, one.id, &why), DG_ELEASED);
	CU_ASSERT_EQUAL(dg__leases_release(leases, &first, one.id, &other, &why), DG_OK);
	CU_ASSERT_EQUAL(dg__leases_release(leases, &second, two.id, &other, &why), DG_OK);
	CU_ASSERT_EQUAL(take(&whole, &bob, 60, &other), DG_OK);
	CU_ASSERT_EQUAL(take(&first, &alice, 60, &one), DG_ELEASED);
	close_state();
}

static void test_use__keeps_hardware_from_being_leased(void)
{
	dg__device_entry card = device("cuda", "a", NULL);
	dg_lease lease;
	dg_error why;
	open_state(NULL);
	CU_ASSERT_EQUAL(
		dg__leases_take(leases, &card, &alice, 60, always, NULL, &lease, &why), DG_EBUSY);
	CU_ASSERT_EQUAL(dg__leases_check(leases, &card, "", &why), DG_OK);
	CU_ASSERT_EQUAL(take(&card, &alice, 60, &lease), DG_OK);
	close_state();
}

static void test_restart__keeps_leases_and_their_order(void)
{
	char *directory = dg_test_temp_dir();
	dg__device_entry card = device("cuda", "a", NULL), second = device("cuda", "b", NULL);
	dg__device_entry third = device("cuda", "c", NULL);
	dg_lease kept, given, brief, other;
	dg_error why;
	open_state(directory);
	CU_ASSERT_EQUAL(take(&card, &alice, 60, &kept), DG_OK);
	CU_ASSERT_EQUAL(take(&second, &alice, 60, &given), DG_OK);
	CU_ASSERT_EQUAL(take(&third, &alice, 1, &brief), DG_OK);
	CU_ASSERT_EQUAL(dg__leases_release(leases, &second, given.id, &other, &why), DG_OK);
	close_state();
	dg_test_sleep_ms(1100);
	open_state(directory);
	CU_ASSERT_EQUAL(take(&card, &bob, 60, &other), DG_ELEASED);
	CU_ASSERT_EQUAL(dg__leases_renew(leases, &card, kept.id, 60, &other, &why), DG_OK);
	CU_ASSERT_EQUAL(other.fencing_token, kept.fencing_token);
	CU_ASSERT_EQUAL(take(&third, &bob, 60, &other), DG_OK);
	CU_ASSERT(other.fencing_token > brief.fencing_token);
	close_state();
	free(directory);
}

/* Eight devices, and who is in each: two at a time would be seen. */
#define RACED 8
/* Instrumented, SQLite's memory is slow. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TURNS 4000
#else
#define TURNS 50000
#endif
static atomic_int inside[RACED];
static atomic_uint collisions, taken;
static atomic_ullong last_token[RACED];

static void *race(void *user)
{
	const dg__principal *who = user;
	unsigned seed = who == &alice ? 1 : 2;
	for (unsigned i = 0; i < TURNS; i++) {
		char uuid[8];
		dg_lease lease, back;
		dg_error why;
		seed = seed * 1103515245 + 12345;
		unsigned n = seed >> 16 & (RACED - 1);
		snprintf(uuid, sizeof(uuid), "%u", n);
		dg__device_entry card = device(seed & 1 << 20 ? "cuda" : "vulkan", uuid, NULL);
		if (take(&card, who, 60, &lease) != DG_OK)
			continue;
		atomic_fetch_add(&taken, 1);
		if (atomic_fetch_add(&inside[n], 1) != 0 ||
			lease.fencing_token <= atomic_exchange(&last_token[n], lease.fencing_token))
			atomic_fetch_add(&collisions, 1);
		atomic_fetch_sub(&inside[n], 1);
		if (dg__leases_release(leases, &card, lease.id, &back, &why) != DG_OK)
			atomic_fetch_add(&collisions, 1);
	}
	return NULL;
}

static void test_race__never_gives_one_device_to_two(void)
{
	pthread_t threads[2];
	open_state(NULL);
	pthread_create(&threads[0], NULL, race, (void *)(uintptr_t)&alice);
	pthread_create(&threads[1], NULL, race, (void *)(uintptr_t)&bob);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	CU_ASSERT_EQUAL(atomic_load(&collisions), 0);
	CU_ASSERT(atomic_load(&taken) > TURNS);
	close_state();
}

static const dg_test_case cases[] = {
	DG_TEST(test_lease__is_of_one_at_a_time),
	DG_TEST(test_lease__cannot_be_stolen),
	DG_TEST(test_lease__ends_and_can_be_renewed_before),
	DG_TEST(test_hardware__is_one_through_all_apis),
	DG_TEST(test_partition__and_what_it_is_of_exclude_each_other),
	DG_TEST(test_use__keeps_hardware_from_being_leased),
	DG_TEST(test_restart__keeps_leases_and_their_order),
	DG_TEST(test_race__never_gives_one_device_to_two),
};

DG_TEST_MAIN("leases", cases)
