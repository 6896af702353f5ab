/* A state folder that cannot be written: from the start, or since the disk filled up. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CUnit/CUnit.h>

#include "tests/gateway.h"
#include "tests/test.h"

#define LEASE "/v1/devices/cpu/lease"
#define MEASURE "/v1/devices/cpu/throughput"
#define KEY "{\"keys\":[\"launch\"],\"refresh\":true}"

static const char *const quick[] = { "DG_ENGINE_QUICK=1", NULL };

/* Mounts of this program and its children alone, gone with it. */
static bool own_mounts(void)
{
	static int had = -1;
	if (had < 0)
		had = unshare(CLONE_NEWNS) == 0 &&
		      mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	if (!had)
		dg_test_skip("mounts", "mounts of one's own are not allowed here");
	return had == 1;
}

static bool make_read_only(const char *folder)
{
	if (geteuid() != 0)
		return chmod(folder, 0500) == 0;
	return own_mounts() && mount(folder, folder, NULL, MS_BIND, NULL) == 0 &&
	       mount(NULL, folder, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0;
}

static void make_writable(const char *folder)
{
	CU_ASSERT_EQUAL(geteuid() != 0 ? chmod(folder, 0700) : umount(folder), 0);
}

static dg_test_gateway start_at(const char *folder)
{
	const char *const args[] = { "bare", "--state-dir", folder, "--listen", "127.0.0.1:0",
		"--print-ready", "--plain-http", "--backend", "cpu", "--loopback-scopes",
		"read,measure,lease", NULL };
	return dg_test_gateway_start(args, quick);
}

static void stop(dg_test_gateway *g)
{
	int status = -1;
	(void)dg_test_gateway_stop(g, &status);
	CU_ASSERT_EQUAL(status, 0);
}

/* The status, and whether the reply has the phrase. */
static void expect(const dg_test_gateway *g, const char *method, const char *path, const char *body,
	int status, const char *phrase)
{
	static const char *const headers[] = { "Content-Type: application/json", NULL };
	dg_test_reply reply = dg_test_ask(g, method, path, headers, body);
	if (reply.status != status || !strstr(reply.body, phrase))
		printf("\n    %s %s: %d, expected %d with '%s': %s\n", method, path, reply.status,
			status, phrase, reply.body);
	CU_ASSERT_EQUAL(reply.status, status);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply.body, phrase));
	dg_test_reply_finish(&reply);
}

static void expect_log(const dg_test_gateway *g, const char *phrase)
{
	char *log = dg_test_read_file(g->log, NULL);
	if (!strstr(log, phrase))
		printf("\n    expected '%s' in: %s\n", phrase, log);
	CU_ASSERT_PTR_NOT_NULL(strstr(log, phrase));
	free(log);
}

static void test_read_only__what_is_known_is_served_and_leases_are_refused(void)
{
	char *folder = dg_test_temp_dir(), said[4096];
	dg_test_gateway g = start_at(folder);
	expect(&g, "POST", MEASURE, KEY, 200, "\"launch\"");
	expect(&g, "POST", LEASE, "{\"ttl_s\":3600}", 201, "\"fencing_token\":1");
	stop(&g);
	if (make_read_only(folder)) {
		g = start_at(folder);
		expect_log(&g, "in memory only until the next start, and without new leases");
		expect(&g, "GET", "/v1/devices", NULL, 200, "\"cpu\"");
		expect(&g, "GET", MEASURE, NULL, 200, "\"launch\"");
		expect(&g, "GET", LEASE, NULL, 200, "\"loopback\"");
		expect(&g, "POST", LEASE, NULL, 409, "leased");
		expect(&g, "POST", MEASURE, KEY, 409, "leased");
		expect(&g, "GET", "/readyz", NULL, 200, "");
		/* Another one of the same folder is refused, as ever; the audit can be read. */
		const char *const second[] = { "bare", "--state-dir", folder, "--listen",
			"127.0.0.1:0", NULL };
		CU_ASSERT_EQUAL(dg_test_gateway_run(second, NULL, said, sizeof(said)), 2);
		CU_ASSERT_PTR_NOT_NULL(strstr(said, "another devgated"));
		const char *const audit[] = { "bare", "audit", "--state-dir", folder, NULL };
		CU_ASSERT_EQUAL(dg_test_gateway_run(audit, NULL, said, sizeof(said)), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(said, "take lease"));
		stop(&g);
		make_writable(folder);
	}
	free(folder);
}

static void test_read_only__measures_and_forgets(void)
{
	char *folder = dg_test_temp_dir();
	dg_test_gateway g = start_at(folder);
	stop(&g);
	if (make_read_only(folder)) {
		g = start_at(folder);
		expect(&g, "POST", MEASURE, KEY, 200, "\"launch\"");
		expect(&g, "GET", MEASURE, NULL, 200, "\"launch\"");
		expect(&g, "POST", LEASE, NULL, 500, "no lease is given or renewed");
		stop(&g);
		make_writable(folder);
		g = start_at(folder);
		expect(&g, "GET", MEASURE, NULL, 200, "\"values\":[]");
		stop(&g);
	}
	free(folder);
}

static void test_read_only__an_empty_folder_is_refused(void)
{
	char *folder = dg_test_temp_dir(), said[4096];
	const char *const args[] = { "bare", "--state-dir", folder, "--listen", "127.0.0.1:0",
		NULL };
	if (make_read_only(folder)) {
		CU_ASSERT_EQUAL(dg_test_gateway_run(args, NULL, said, sizeof(said)), 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(said, folder));
		make_writable(folder);
	}
	free(folder);
}

static void fill(const char *path)
{
	static const char block[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CU_ASSERT_FATAL(fd >= 0);
	size_t size = sizeof(block);
	while (size > 0)
		if (write(fd, block, size) <= 0)
			size /= 2;
	CU_ASSERT_EQUAL(errno, ENOSPC);
	close(fd);
}

static void test_full_disk__costs_leases_only_and_passes(void)
{
	char *folder = dg_test_temp_dir(), filler[600];
	snprintf(filler, sizeof(filler), "%s/filler", folder);
	if (own_mounts() && mount("tmpfs", folder, "tmpfs", 0, "size=2m,mode=0700") == 0) {
		dg_test_gateway g = start_at(folder);
		fill(filler);
		expect(&g, "POST", MEASURE, KEY, 200, "\"launch\"");
		expect(&g, "GET", MEASURE, NULL, 200, "\"launch\"");
		expect(&g, "POST", LEASE, NULL, 500, "full");
		expect(&g, "GET", LEASE, NULL, 404, "");
		expect(&g, "GET", "/v1/devices", NULL, 200, "\"cpu\"");
		expect_log(&g, "the state cannot be written");
		CU_ASSERT_EQUAL(unlink(filler), 0);
		expect(&g, "POST", LEASE, NULL, 201, "\"fencing_token\"");
		stop(&g);
		g = start_at(folder);
		expect(&g, "GET", MEASURE, NULL, 200, "\"launch\"");
		expect(&g, "GET", LEASE, NULL, 200, "\"loopback\"");
		stop(&g);
		CU_ASSERT_EQUAL(umount(folder), 0);
	}
	free(folder);
}

static void test_full_disk__at_the_start_serves_what_is_known(void)
{
	char *folder = dg_test_temp_dir(), filler[600];
	snprintf(filler, sizeof(filler), "%s/filler", folder);
	if (own_mounts() && mount("tmpfs", folder, "tmpfs", 0, "size=2m,mode=0700") == 0) {
		dg_test_gateway g = start_at(folder);
		expect(&g, "POST", MEASURE, KEY, 200, "\"launch\"");
		stop(&g);
		fill(filler);
		g = start_at(folder);
		expect(&g, "GET", MEASURE, NULL, 200, "\"launch\"");
		expect(&g, "POST", LEASE, NULL, 500, "");
		stop(&g);
		CU_ASSERT_EQUAL(umount(folder), 0);
	}
	free(folder);
}

static const dg_test_case cases[] = {
	DG_TEST(test_read_only__what_is_known_is_served_and_leases_are_refused),
	DG_TEST(test_read_only__measures_and_forgets),
	DG_TEST(test_read_only__an_empty_folder_is_refused),
	DG_TEST(test_full_disk__costs_leases_only_and_passes),
	DG_TEST(test_full_disk__at_the_start_serves_what_is_known),
};

DG_TEST_MAIN("a state folder that cannot be written", cases)
