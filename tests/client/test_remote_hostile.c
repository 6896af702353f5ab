/* Gateways that lie, and that die in the middle of any reply. */
#include "client/devgate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/registry.h"
#include "tests/fakes/fake_scene.h"
#include "tests/test.h"

static const dg_key KEYS[3] = {
	{ .mode = DG_MODE_COMPUTE, .dtype = DG_F32 },
	{ .mode = DG_MODE_MEMORY, .access = DG_READ },
	{ .mode = DG_MODE_LAUNCH },
};

static dg_err measure(dg_fake_scene *s, dg_value values[3], size_t *ret_count)
{
	memset(&s->error, 0, sizeof(s->error));
	dg_err err =
		dg_performance_stats(s->device, KEYS, 3, &s->call, values, ret_count, &s->error);
	CU_ASSERT_EQUAL(s->error.code, err);
	return err;
}

/* Lies about values. */

static void test_stats__values_that_do_not_match_the_keys_are_refused(void)
{
	static const struct {
		const char *from, *to;
	} lies[] = {
		{ "\"F32\"", "\"F64\"" },
		{ "\"MemoryRead\"", "\"MemoryWrite\"" },
		{ "\"Launch\"", "\"Lunch\"" },
		{ "\"ops_count\":1000,", "\"ops_count\":-1000," },
		{ "\"ops_count\":1000,", "\"ops_count\":\"1000\"," },
		{ "\"status\":\"ok\"", "\"status\":\"splendid\"" },
		{ "\"values\":[", "\"values\":[{}," },
		{ "\"values\":[", "\"values\":[[" },
		{ "\"values\"", "\"volumes\"" },
	};
	dg_fake_scene s;
	dg_fake_lie l;
	dg_value values[3];
	size_t count = 99;
	dg_fake_scene_init(&s, DG_FAKE_PLAIN);
	s.model.twist = dg_fake_lie_twist;
	s.model.user = &l;
	s.model.at_once = true;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		l.from = lies[i].from;
		l.to = lies[i].to;
		l.body[0] = '\0';
		dg_err err = measure(&s, values, &count);
		if (err != DG_EPROTOCOL || !l.body[0])
			printf("\n    lie %zu: %s %s", i, dg_err_code(err), s.error.text);
		CU_ASSERT_EQUAL(err, DG_EPROTOCOL);
		CU_ASSERT(l.body[0] != '\0');
	}
	CU_ASSERT_EQUAL(count, 99);
	dg_fake_scene_finish(&s);
}

static void test_stats__lies_about_the_job_are_refused(void)
{
	static const struct {
		const char *from, *to;
	} lies[] = {
		{ "\"id\":\"0000", "\"id\":\"../../" },
		{ "\"id\":\"0000", "\"id\":\"0001" },
		{ "\"state\":\"done\"", "\"state\":\"sleeping\"" },
		{ "\"state\":\"done\"", "\"state\":\"failed\"" },
		{ "\"result\":{", "\"result\":null,\"x\":{" },
	};
	dg_fake_scene s;
	dg_fake_lie l;
	dg_value values[3];
	size_t count = 99;
	dg_fake_scene_init(&s, DG_FAKE_PLAIN);
	s.model.twist = dg_fake_lie_twist;
	s.model.user = &l;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		l.from = lies[i].from;
		l.to = lies[i].to;
		l.body[0] = '\0';
		dg_err err = measure(&s, values, &count);
		if (!(err == DG_EPROTOCOL || err == DG_ENOJOB))
			printf("\n    lie %zu: %s %s", i, dg_err_code(err), s.error.text);
		CU_ASSERT(err == DG_EPROTOCOL || err == DG_ENOJOB);
		CU_ASSERT(l.body[0] != '\0');
	}
	CU_ASSERT_EQUAL(count, 99);
	dg_fake_scene_finish(&s);
}

/* Dying in the middle of any reply. */

typedef struct breakage {
	const char *path; /* of the replies to break: a beginning */
	size_t byte;
	unsigned char mask; /* 0: cut at byte */
	size_t longest; /* seen */
} breakage;

static void twist_broken(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	breakage *b = user;
	if (strncmp(request->path, b->path, strlen(b->path)) != 0)
		return;
	size_t length = (reply->body_length   ? reply->body_length
				: reply->body ? strlen(reply->body)
					      : 0) +
			80;
	if (length > b->longest)
		b->longest = length;
	if (b->mask) {
		reply->flip_byte = b->byte;
		reply->flip_mask = b->mask;
		reply->close = true;
	} else {
		reply->cut = b->byte;
		reply->cut_at_once = b->byte == 0;
	}
}

static void break_everywhere(
	dg_fake_mode mode, const char *path, size_t step, unsigned char mask, unsigned *ret_fine)
{
	dg_fake_scene s;
	breakage b = { .path = path, .longest = 200 };
	dg_value values[3];
	dg_device_info info;
	unsigned fine = 0;
	dg_fake_scene_init(&s, mode);
	s.model.twist = twist_broken;
	s.model.user = &b;
	s.call.timeout_ms = 3000;
	for (b.byte = 0; b.byte + (mask ? 0 : 2) < b.longest; b.byte += step) {
		size_t count = 99;
		bool describes = strcmp(path, "/v1/devices/0") == 0;
		b.mask = (unsigned char)(mask ? 1u << (b.byte * 3 % 8) : 0u);
		dg_err err = describes ? dg_describe(s.device, &s.call, &info, &s.error)
				       : measure(&s, values, &count);
		dg_fake_gateway_forget_requests(s.model.gateway);
		if (!err)
			fine++;
		else
			CU_ASSERT(s.error.code == err && err != DG_EINTERNAL && s.error.text[0]);
	}
	*ret_fine = fine;
	dg_fake_scene_finish(&s);
}

static void test_broken__describe_cut_at_every_byte(void)
{
	unsigned fine;
	break_everywhere(DG_FAKE_PLAIN, "/v1/devices/0", 1, 0, &fine);
	/* The estimate of the longest reply is generous: cuts beyond its end cut nothing. */
	CU_ASSERT(fine < 60);
	break_everywhere(DG_FAKE_TLS, "/v1/devices/0", 17, 0, &fine);
	CU_ASSERT(fine < 10);
}

static void test_broken__measurement_cut_at_every_byte(void)
{
	unsigned fine;
	break_everywhere(DG_FAKE_PLAIN, "/v1/devices/0/", 1, 0, &fine);
	CU_ASSERT(fine < 60);
	break_everywhere(DG_FAKE_PLAIN, "/v1/jobs/", 7, 0, &fine);
	CU_ASSERT(fine < 60);
	break_everywhere(DG_FAKE_TLS, "/v1/jobs/", 101, 0, &fine);
	CU_ASSERT(fine < 10);
}

static void test_broken__flipped_bits(void)
{
	unsigned fine;
	break_everywhere(DG_FAKE_PLAIN, "/v1/devices/0", 1, 1, &fine);
	break_everywhere(DG_FAKE_PLAIN, "/v1/jobs/", 11, 1, &fine);
}

static const dg_test_case cases[] = {
	DG_TEST(test_stats__values_that_do_not_match_the_keys_are_refused),
	DG_TEST(test_stats__lies_about_the_job_are_refused),
	DG_TEST(test_broken__describe_cut_at_every_byte),
	DG_TEST(test_broken__measurement_cut_at_every_byte),
	DG_TEST(test_broken__flipped_bits),
};

DG_TEST_MAIN("client/remote hostile", cases)
