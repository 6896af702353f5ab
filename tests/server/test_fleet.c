/* The devices of a host, found through scripted workers: numbers, health, loss and recovery. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/config_internal.h"
#include "server/fleet.h"
#include "server/log.h"
#include "tests/fakes/fake_worker.h"
#include "tests/test.h"

#define SOON_MS 20000 /* a limit that only a broken fleet meets */
#define GATEWAY_ID "11111111111111111111111111111111"
#define HOST_ID "22222222222222222222222222222222"

static dg_error why;
static dg__config config;
static dg__store *store;
static dg__fleet *fleet;
static const dg__snapshot *seen; /* the last one taken; held */
static uint32_t detect_ms = 10000; /* time limit of a detection */

static void start_store(void)
{
	CU_ASSERT_EQUAL_FATAL(dg__store_open(NULL, &store, &why), DG_OK);
}

/* A fleet of these backends (words separated by blanks) that do what the script says. */
static void start_fleet(const char *backends, const char *script)
{
	dg__config_defaults(&config);
	config.detect_timeout_ms = detect_ms;
	dg__log_set_level(DG__LOG_ERROR);
	for (const char *at = backends; *at; config.backend_count++) {
		int length = (int)strcspn(at, " ");
		snprintf(config.backends[config.backend_count], sizeof(config.backends[0]), "%.*s",
			length, at);
		at += length + (at[length] == ' ');
	}
	/* Made for the environment that it sets. */
	dg__worker_destroy(dg_fake_worker_create_changing(script, 0));
	setenv("DEVGATE_WORKER", dg_fake_worker_path(), 1);
	fleet = NULL;
	CU_ASSERT_EQUAL_FATAL(
		dg__fleet_create(&config, store, GATEWAY_ID, HOST_ID, &fleet, &why), DG_OK);
}

static void look(void)
{
	dg__snapshot_release(seen);
	seen = dg__fleet_snapshot(fleet);
}

static void end_fleet(void)
{
	dg__snapshot_release(seen);
	seen = NULL;
	dg__fleet_destroy(fleet);
	fleet = NULL;
}

static void end_all(void)
{
	end_fleet();
	dg__store_close(store);
}

static bool wait_until(bool (*holds)(void))
{
	long long end = dg_test_now_ms() + SOON_MS;
	for (look(); !holds() && dg_test_now_ms() < end; look())
		dg_test_sleep_ms(5);
	return holds();
}

static bool is_ready(void)
{
	return seen->ready;
}

static uint64_t old_version;

static bool is_newer(void)
{
	return seen->version > old_version;
}

/* Have a backend looked at again, and see what comes of it. */
static void look_again(const char *backend)
{
	dg_error error;
	dg_error_set(&error, DG_EWORKER, "a measurement saw its worker die");
	look();
	old_version = seen->version;
	dg__fleet_suspect(fleet, backend, &error);
	CU_ASSERT_FATAL(wait_until(is_newer));
}

static const dg__backend_status *status_of(const char *backend)
{
	for (size_t i = 0; i < seen->gateway.backend_count; i++)
		if (!strcmp(seen->gateway.backends[i].name, backend))
			return &seen->gateway.backends[i];
	CU_FAIL_FATAL("no such backend");
	return NULL;
}

static const dg__device_entry *device_at(uint32_t index)
{
	for (size_t i = 0; i < seen->list.count; i++)
		if (seen->list.entries[i].info.gateway_index == index)
			return &seen->list.entries[i];
	CU_FAIL_FATAL("no device has this index");
	return NULL;
}

/* "cuda:0=Fake B" where it is there, "-=Fake B" where no local program can name it. */
static void check_device(uint32_t index, const char *expected)
{
	char device[DG_DEVICE_TEXT_MAX] = "-", text[600];
	const dg_device_info *info = &device_at(index)->info;
	if (info->present & DG_HAS_DEVICE)
		dg_device_format(info->device, device, sizeof(device));
	snprintf(text, sizeof(text), "%s=%s", device, info->name);
	CU_ASSERT_STRING_EQUAL(text, expected);
}

static size_t found_at; /* place of the device that find_it() found */

static dg_err find_it(const char *text)
{
	dg_device identity;
	found_at = SIZE_MAX;
	why = (dg_error){ .code = DG_OK };
	return dg__fleet_find(seen, text, &found_at, &identity, &why);
}

static uint32_t index_of(const char *text)
{
	CU_ASSERT_EQUAL_FATAL(find_it(text), DG_OK);
	return seen->list.entries[found_at].info.gateway_index;
}

static bool is_enabled(dg_variant variant)
{
	return (seen->enabled & DG_VARIANT_BIT(variant)) != 0;
}

/* Numbers. */

static void test_numbers__follow_the_default_order_of_backends(void)
{
	start_store();
	start_fleet("cpu vulkan cuda",
		"[cuda]\ninit_ms=200\ngpus=B,A\n[vulkan]\ngpus=A,b\n[cpu]\ninit_ms=1\n");
	CU_ASSERT_FATAL(wait_until(is_ready));
	CU_ASSERT_EQUAL_FATAL(seen->list.count, 5);
	check_device(0, "cuda:0=Fake B");
	check_device(1, "cuda:1=Fake A");
	check_device(2, "vulkan:discrete:0=Fake A");
	check_device(3, "vulkan:cpu=Fake B");
	check_device(4, "cpu=Fake A");
	end_all();
}

static void test_numbers__stay_with_the_hardware_over_a_restart_in_another_order(void)
{
	start_store();
	start_fleet("cuda", "gpus=A,B,C");
	CU_ASSERT_FATAL(wait_until(is_ready));
	check_device(1, "cuda:1=Fake B");
	end_fleet();
	start_fleet("cuda", "gpus=C,D,A");
	CU_ASSERT_FATAL(wait_until(is_ready));
	CU_ASSERT_EQUAL_FATAL(seen->list.count, 4);
	check_device(0, "cuda:2=Fake A");
	check_device(1, "-=Fake B");
	check_device(2, "cuda:0=Fake C");
	check_device(3, "cuda:1=Fake D");
	CU_ASSERT_EQUAL(device_at(0)->driver_index, 2);
	CU_ASSERT_EQUAL(device_at(2)->driver_index, 0);
	CU_ASSERT_EQUAL(device_at(1)->info.state, DG_STATE_LOST);
	CU_ASSERT_EQUAL(index_of("cuda:0"), 2);
	CU_ASSERT_EQUAL(find_it("1"), DG_ELOST);
	end_fleet();
	start_fleet("cuda", "gpus=B");
	CU_ASSERT_FATAL(wait_until(is_ready));
	check_device(1, "cuda:0=Fake B");
	CU_ASSERT_EQUAL(device_at(1)->info.state, DG_STATE_OK);
	end_all();
}

static void test_numbers__are_two_for_two_devices_with_one_identity(void)
{
	start_store();
	start_fleet("cuda", "gpus=A,A,B");
	CU_ASSERT_FATAL(wait_until(is_ready));
	CU_ASSERT_EQUAL_FATAL(seen->list.count, 3);
	check_device(0, "cuda:0=Fake A");
	check_device(1, "cuda:1=Fake A");
	check_device(2, "cuda:2=Fake B");
	end_all();
}

static void test_numbers__of_devices_found_late_come_last(void)
{
	start_store();
	start_fleet("cuda vulkan", "[cuda]\nenumerate=failed\n");
	CU_ASSERT_FATAL(wait_until(is_ready));
	check_device(0, "vulkan:discrete:0=Fake A");
	dg_fake_worker_change("");
	look_again("cuda");
	check_device(0, "vulkan:discrete:0=Fake A");
	check_device(1, "cuda:0=Fake A");
	end_all();
}

/* Backends that fail. */

static bool has_first_device(void)
{
	return seen->list.count > 0;
}

static void test_detection__under_way_is_told_and_delays_no_one(void)
{
	start_store();
	long long start = dg_test_now_ms();
	start_fleet("cuda vulkan", "[cuda]\nignore_term=1\ndo=hang@enumerate\n");
	CU_ASSERT_TRUE(dg_test_now_ms() - start < 1000);
	look();
	CU_ASSERT_FALSE(seen->ready);
	CU_ASSERT_EQUAL(find_it("cuda:0"), DG_EDETECTING);
	CU_ASSERT_EQUAL(find_it("0"), DG_EDETECTING);
	end_fleet();
	CU_ASSERT_TRUE(dg_test_now_ms() - start < 5000);
	dg__store_close(store);
}

static void test_detection__that_hangs_ends_by_its_deadline_and_others_go_on(void)
{
	start_store();
	start_fleet("vulkan", "");
	CU_ASSERT_FATAL(wait_until(is_ready));
	end_fleet();
	detect_ms = SANITIZED ? 3000 : 1000;
	/* The first numbering is over, so that what is known need not wait for the other one. */
	start_fleet("cuda vulkan", "[cuda]\nignore_term=1\ndo=hang@enumerate\n");
	detect_ms = 10000;
	CU_ASSERT_FATAL(wait_until(has_first_device));
	CU_ASSERT_FALSE(seen->ready);
	CU_ASSERT_STRING_EQUAL(seen->list.detecting[0], "cuda");
	check_device(0, "vulkan:discrete:0=Fake A");
	CU_ASSERT_FATAL(wait_until(is_ready));
	CU_ASSERT_EQUAL(status_of("cuda")->state, DG__BACKEND_FAILED);
	CU_ASSERT_TRUE(*status_of("cuda")->reason);
	CU_ASSERT_TRUE(status_of("cuda")->has_init_ms);
	CU_ASSERT_EQUAL(status_of("vulkan")->state, DG__BACKEND_READY);
	CU_ASSERT_EQUAL(find_it("cuda:0"), DG_ENODEVICE);
	CU_ASSERT_FALSE(is_enabled(DG_CUDA));
	end_all();
}

static void test_detection__tells_missing_failed_and_empty_apart(void)
{
	start_store();
	start_fleet("cuda rocm vulkan",
		"[cuda]\nenumerate=missing\n[rocm]\nenumerate=failed\n[vulkan]\ngpus=\n");
	CU_ASSERT_FATAL(wait_until(is_ready));
	CU_ASSERT_EQUAL(status_of("cuda")->state, DG__BACKEND_MISSING);
	CU_ASSERT_EQUAL(status_of("rocm")->state, DG__BACKEND_FAILED);
	CU_ASSERT_EQUAL(status_of("vulkan")->state, DG__BACKEND_EMPTY);
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_TRUE(*seen->gateway.backends[i].reason);
	CU_ASSERT_EQUAL(seen->list.count, 0);
	CU_ASSERT_EQUAL(seen->list.detecting_count, 0);
	end_all();
}

static bool cuda_is_back(void)
{
	return status_of("cuda")->state == DG__BACKEND_READY;
}

static void test_crash__makes_devices_unhealthy_until_the_backend_recovers(void)
{
	start_store();
	start_fleet("cuda vulkan", "");
	CU_ASSERT_FATAL(wait_until(is_ready));
	CU_ASSERT_TRUE(is_enabled(DG_CUDA));
	CU_ASSERT_EQUAL(status_of("cuda")->recovered_at_ms, 0);
	dg_fake_worker_change("[cuda]\ndo=segv@enumerate\n");
	look_again("cuda");
	CU_ASSERT_EQUAL(status_of("cuda")->state, DG__BACKEND_FAILED);
	CU_ASSERT_EQUAL(device_at(0)->info.state, DG_STATE_UNHEALTHY);
	CU_ASSERT_TRUE(*device_at(0)->info.reason);
	CU_ASSERT_STRING_EQUAL(device_at(0)->info.reason, status_of("cuda")->reason);
	CU_ASSERT_EQUAL(device_at(1)->info.state, DG_STATE_OK);
	CU_ASSERT_FALSE(is_enabled(DG_CUDA));
	CU_ASSERT_TRUE(is_enabled(DG_VULKAN));
	dg_fake_worker_change("");
	/* Nobody asks: the fleet looks again by itself. */
	CU_ASSERT_FATAL(wait_until(cuda_is_back));
	CU_ASSERT_TRUE(status_of("cuda")->recovered_at_ms > 0);
	check_device(0, "cuda:0=Fake A");
	CU_ASSERT_EQUAL(device_at(0)->info.state, DG_STATE_OK);
	CU_ASSERT_STRING_EQUAL(device_at(0)->info.reason, "");
	CU_ASSERT_TRUE(is_enabled(DG_CUDA));
	end_all();
}

static void test_crash__at_the_start_does_not_say_that_the_driver_lists_nothing(void)
{
	start_store();
	start_fleet("cuda", "");
	CU_ASSERT_FATAL(wait_until(is_ready));
	end_fleet();
	start_fleet("cuda", "do=abort@enumerate");
	CU_ASSERT_FATAL(wait_until(is_ready));
	CU_ASSERT_EQUAL(seen->list.count, 1);
	CU_ASSERT_NOT_EQUAL(device_at(0)->info.state, DG_STATE_OK);
	CU_ASSERT_STRING_EQUAL(device_at(0)->info.reason, status_of("cuda")->reason);
	CU_ASSERT_NOT_EQUAL(find_it("0"), DG_OK);
	CU_ASSERT_FALSE(is_enabled(DG_CUDA));
	dg_fake_worker_change("");
	look_again("cuda");
	CU_ASSERT_EQUAL(status_of("cuda")->state, DG__BACKEND_READY);
	check_device(0, "cuda:0=Fake A");
	CU_ASSERT_EQUAL(device_at(0)->info.state, DG_STATE_OK);
	end_all();
}

static bool has_two_devices(void)
{
	return seen->list.count == 2;
}

static void test_suspicion__while_a_look_is_under_way_asks_for_another(void)
{
	dg_error error;
	dg_error_set(&error, DG_EWORKER, "a measurement saw its worker die");
	start_store();
	start_fleet("cuda", "");
	CU_ASSERT_FATAL(wait_until(is_ready));
	dg_fake_worker_change("init_ms=300");
	dg__fleet_suspect(fleet, "cuda", &error);
	dg_test_sleep_ms(100);
	dg_fake_worker_change("gpus=A,B");
	dg__fleet_suspect(fleet, "cuda", &error);
	CU_ASSERT_TRUE(wait_until(has_two_devices));
	end_all();
}

static void test_confirmation__has_a_failed_backend_looked_at_again_and_no_other(void)
{
	dg_error error;
	dg_error_set(&error, DG_EWORKER, "a measurement saw its worker die");
	start_store();
	start_fleet("cuda vulkan", "[cuda]\ndo=fail@enumerate\n");
	CU_ASSERT_FATAL(wait_until(is_ready));
	/* After the third failure in a row the fleet by itself waits four seconds. */
	look_again("cuda");
	look_again("cuda");
	dg_fake_worker_change("");
	dg_test_sleep_ms(50);
	look();
	CU_ASSERT_EQUAL(status_of("cuda")->state, DG__BACKEND_FAILED);
	old_version = seen->version;
	long long start = dg_test_now_ms();
	dg__fleet_confirm(fleet, "vulkan");
	dg__fleet_confirm(fleet, "webgpu"); /* not of this fleet */
	dg__fleet_suspect(fleet, "webgpu", &error);
	dg__fleet_confirm(fleet, "cuda");
	CU_ASSERT_FATAL(wait_until(cuda_is_back));
	CU_ASSERT_TRUE(dg_test_now_ms() - start < 3000);
	CU_ASSERT_EQUAL(seen->version, old_version + 1);
	end_all();
}

static bool cuda_has_failed(void)
{
	return status_of("cuda")->state == DG__BACKEND_FAILED;
}

static void test_crash__while_other_backends_are_awaited_is_not_forgotten(void)
{
	static const char crash[] = "[cuda]\ndo=abort@enumerate\n[vulkan]\ninit_ms=400\n";
	dg_error error;
	dg_error_set(&error, DG_EWORKER, "a measurement saw its worker die");
	start_store();
	start_fleet("cuda vulkan", "[vulkan]\ninit_ms=400\n");
	CU_ASSERT_FATAL(wait_until(cuda_is_back));
	dg_fake_worker_change(crash);
	dg__fleet_suspect(fleet, "cuda", &error);
	CU_ASSERT_FATAL(wait_until(cuda_has_failed));
	CU_ASSERT_FATAL(wait_until(is_ready));
	CU_ASSERT_EQUAL(device_at(0)->info.state, DG_STATE_UNHEALTHY);
	CU_ASSERT_STRING_EQUAL(device_at(0)->info.reason, status_of("cuda")->reason);
	CU_ASSERT_FALSE(is_enabled(DG_CUDA));
	end_all();
}

static void test_crash__does_not_bring_a_lost_device_back(void)
{
	start_store();
	start_fleet("cuda", "gpus=A,B");
	CU_ASSERT_FATAL(wait_until(is_ready));
	dg_fake_worker_change("gpus=B");
	look_again("cuda");
	dg_fake_worker_change("gpus=B;do=abort@enumerate");
	look_again("cuda");
	CU_ASSERT_EQUAL(device_at(0)->info.state, DG_STATE_LOST);
	CU_ASSERT_EQUAL(device_at(1)->info.state, DG_STATE_UNHEALTHY);
	CU_ASSERT_EQUAL(find_it("0"), DG_ELOST);
	CU_ASSERT_EQUAL(find_it("1"), DG_OK);
	end_all();
}

/* Loss. */

static void test_loss__is_gone_and_keeps_its_number_for_its_return(void)
{
	start_store();
	start_fleet("cuda", "gpus=A,B");
	CU_ASSERT_FATAL(wait_until(is_ready));
	dg_fake_worker_change("gpus=B");
	look_again("cuda");
	CU_ASSERT_EQUAL(device_at(0)->info.state, DG_STATE_LOST);
	CU_ASSERT_TRUE(*device_at(0)->info.reason);
	check_device(0, "-=Fake A");
	CU_ASSERT_EQUAL(find_it("0"), DG_ELOST);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "Fake A"));
	CU_ASSERT_EQUAL(dg_err_status(DG_ELOST), 410);
	check_device(1, "cuda:0=Fake B");
	/* The name goes to who has it now; the last holder of the other one is told of. */
	CU_ASSERT_EQUAL(index_of("cuda:0"), 1);
	CU_ASSERT_TRUE(is_enabled(DG_CUDA));
	dg_fake_worker_change("gpus=C,B,A");
	look_again("cuda");
	check_device(0, "cuda:2=Fake A");
	check_device(2, "cuda:0=Fake C");
	CU_ASSERT_EQUAL(device_at(0)->info.state, DG_STATE_OK);
	CU_ASSERT_EQUAL(find_it("0"), DG_OK);
	end_all();
}

static void test_loss__of_the_driver_loses_its_devices(void)
{
	start_store();
	start_fleet("cuda", "");
	CU_ASSERT_FATAL(wait_until(is_ready));
	dg_fake_worker_change("enumerate=missing");
	look_again("cuda");
	CU_ASSERT_EQUAL(status_of("cuda")->state, DG__BACKEND_MISSING);
	CU_ASSERT_EQUAL(status_of("cuda")->devices, 0);
	CU_ASSERT_EQUAL(find_it("0"), DG_ELOST);
	CU_ASSERT_EQUAL(find_it("cuda:0"), DG_ELOST);
	CU_ASSERT_FALSE(is_enabled(DG_CUDA));
	end_all();
}

/* Software adapters. */

static void test_software__is_never_enabled_and_found_by_its_name_alone(void)
{
	start_store();
	start_fleet("vulkan", "gpus=a");
	CU_ASSERT_FATAL(wait_until(is_ready));
	CU_ASSERT_EQUAL_FATAL(seen->list.count, 1);
	CU_ASSERT_TRUE(device_at(0)->info.software);
	CU_ASSERT_FALSE(is_enabled(DG_VULKAN));
	CU_ASSERT_EQUAL(index_of("vulkan:cpu"), 0);
	CU_ASSERT_EQUAL(find_it("vulkan"), DG_ENODEVICE);
	CU_ASSERT_EQUAL(find_it("vulkan:discrete:0"), DG_ENODEVICE);
	dg_fake_worker_change("gpus=a,B");
	look_again("vulkan");
	CU_ASSERT_TRUE(is_enabled(DG_VULKAN));
	CU_ASSERT_EQUAL(index_of("vulkan"), 1);
	end_all();
}

static void test_enabled__holds_what_needs_no_hardware(void)
{
	start_store();
	start_fleet("none", "");
	look();
	CU_ASSERT_TRUE(seen->ready);
	CU_ASSERT_EQUAL(seen->enabled, DG_ALWAYS_ENABLED);
	CU_ASSERT_EQUAL(seen->list.count, 0);
	end_all();
}

/* Names. */

static void test_find__tells_what_is_wrong_with_a_name(void)
{
	start_store();
	start_fleet("cuda", "");
	CU_ASSERT_FATAL(wait_until(is_ready));
	CU_ASSERT_EQUAL(index_of("cuda:0"), 0);
	CU_ASSERT_EQUAL(index_of("CUDA"), 0);
	CU_ASSERT_EQUAL(index_of("autodiff(cuda:0)"), 0);
	CU_ASSERT_EQUAL(index_of("0"), 0);
	CU_ASSERT_EQUAL(find_it("zuse"), DG_EDEVICE);
	CU_ASSERT_EQUAL(find_it(""), DG_EDEVICE);
	CU_ASSERT_EQUAL(find_it("65536"), DG_ERANGE);
	CU_ASSERT_EQUAL(find_it("99999999999999999999"), DG_ERANGE);
	CU_ASSERT_EQUAL(find_it("remote:https://127.0.0.1:1#0"), DG_ENOTLOCAL);
	CU_ASSERT_EQUAL(find_it("capture:0"), DG_ENOTLOCAL);
	CU_ASSERT_EQUAL(find_it("1"), DG_ENODEVICE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "cuda:0"));
	CU_ASSERT_EQUAL(find_it("cuda:1"), DG_ENODEVICE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "cuda:0"));
	dg_device identity = { .variant = DG_CUDA };
	CU_ASSERT_EQUAL(dg__fleet_find(seen, "flex", &found_at, &identity, &why), DG_ENODEVICE);
	CU_ASSERT_EQUAL(identity.variant, DG_FLEX);
	end_all();
}

/* Snapshots. */

static void test_snapshot__its_tag_changes_when_anything_does_and_only_then(void)
{
	static const char *const scripts[] = { "gpus=A", "gpus=A;name=Other", "gpus=A;driver=2",
		"gpus=A,B", "gpus=B,A", "gpus=B", "gpus=B;do=fail@enumerate",
		"gpus=B;do=segv@enumerate", "gpus=b;variant=vulkan" };
	enum { COUNT = sizeof(scripts) / sizeof(scripts[0]) };
	char tags[COUNT][40];
	start_store();
	start_fleet("cuda", scripts[0]);
	CU_ASSERT_FATAL(wait_until(is_ready));
	for (size_t i = 0; i < COUNT; i++) {
		dg_fake_worker_change(scripts[i]);
		look_again("cuda");
		snprintf(tags[i], sizeof(tags[i]), "%s", seen->etag);
		CU_ASSERT_EQUAL(tags[i][0], '"');
		CU_ASSERT_EQUAL(tags[i][strlen(tags[i]) - 1], '"');
		for (size_t before = 0; before < i; before++)
			CU_ASSERT_STRING_NOT_EQUAL(tags[i], tags[before]);
		if (strstr(scripts[i], "enumerate"))
			continue; /* such a backend is looked at again without being asked */
		look_again("cuda");
		CU_ASSERT_STRING_EQUAL(tags[i], seen->etag);
	}
	end_all();
}

static void test_snapshot__is_the_same_as_long_as_it_is_held(void)
{
	start_store();
	start_fleet("cuda", "gpus=A,B");
	CU_ASSERT_FATAL(wait_until(is_ready));
	const dg__snapshot *held = dg__fleet_snapshot(fleet);
	char *before = strdup(held->devices_json.text);
	dg_fake_worker_change("gpus=C");
	look_again("cuda");
	CU_ASSERT_STRING_NOT_EQUAL(seen->devices_json.text, before);
	end_fleet();
	CU_ASSERT_STRING_EQUAL(held->devices_json.text, before);
	CU_ASSERT_EQUAL(held->list.count, 2);
	dg__snapshot_release(held);
	free(before);
	dg__store_close(store);
}

static void count_change(void *user)
{
	atomic_fetch_add((atomic_uint *)user, 1);
}

static void test_change__is_told(void)
{
	atomic_uint changes;
	atomic_init(&changes, 0);
	start_store();
	start_fleet("cuda", "init_ms=100");
	dg__fleet_on_change(fleet, count_change, &changes);
	look();
	/* On a slow machine the first one may have come before anyone could be told. */
	unsigned least = seen->ready ? 1 : 2;
	CU_ASSERT_FATAL(wait_until(is_ready));
	look_again("cuda");
	end_fleet();
	CU_ASSERT_TRUE(atomic_load(&changes) >= least && atomic_load(&changes) <= 2);
	dg__store_close(store);
}

static void test_destroy__ends_soon_whatever_the_workers_do(void)
{
	start_store();
	start_fleet("cuda rocm vulkan cpu", "ignore_term=1\ndo=hang@enumerate\n");
	dg_test_sleep_ms(100);
	long long start = dg_test_now_ms();
	end_fleet();
	CU_ASSERT_TRUE(dg_test_now_ms() - start < (SANITIZED ? 5000 : 2500));
	dg__store_close(store);
}

static const dg_test_case cases[] = {
	DG_TEST(test_numbers__follow_the_default_order_of_backends),
	DG_TEST(test_numbers__stay_with_the_hardware_over_a_restart_in_another_order),
	DG_TEST(test_numbers__are_two_for_two_devices_with_one_identity),
	DG_TEST(test_numbers__of_devices_found_late_come_last),
	DG_TEST(test_detection__under_way_is_told_and_delays_no_one),
	DG_TEST(test_detection__that_hangs_ends_by_its_deadline_and_others_go_on),
	DG_TEST(test_detection__tells_missing_failed_and_empty_apart),
	DG_TEST(test_crash__makes_devices_unhealthy_until_the_backend_recovers),
	DG_TEST(test_crash__at_the_start_does_not_say_that_the_driver_lists_nothing),
	DG_TEST(test_suspicion__while_a_look_is_under_way_asks_for_another),
	DG_TEST(test_confirmation__has_a_failed_backend_looked_at_again_and_no_other),
	DG_TEST(test_crash__while_other_backends_are_awaited_is_not_forgotten),
	DG_TEST(test_crash__does_not_bring_a_lost_device_back),
	DG_TEST(test_loss__is_gone_and_keeps_its_number_for_its_return),
	DG_TEST(test_loss__of_the_driver_loses_its_devices),
	DG_TEST(test_software__is_never_enabled_and_found_by_its_name_alone),
	DG_TEST(test_enabled__holds_what_needs_no_hardware),
	DG_TEST(test_find__tells_what_is_wrong_with_a_name),
	DG_TEST(test_snapshot__its_tag_changes_when_anything_does_and_only_then),
	DG_TEST(test_snapshot__is_the_same_as_long_as_it_is_held),
	DG_TEST(test_change__is_told),
	DG_TEST(test_destroy__ends_soon_whatever_the_workers_do),
};

DG_TEST_MAIN("fleet", cases)
