/*
 * Memory runs out at every allocation of every codec, for that one alone and for good: the call
 * must fail, leave its result alone and leak nothing; and say that memory ran out. Only where a
 * single allocation fails may a reader take the string that the JSON library could not hold for bad
 * JSON.
 *
 * Where the program may bring its own allocator all allocations are counted; under a sanitizer,
 * whose allocator must stay, those of the JSON library.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/wire.h"
#include "tests/test.h"

#include <devgate/json.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static bool armed, lasting;
static long until_failure, live;
static bool failed;

/*
 * The JSON library's reader does not look whether its buffer for one token could grow, and would
 * go on with half a token. That buffer doubles from 16 bytes on, so these sizes are let through
 * while it reads.
 */
static bool reading;

static bool is_token_buffer(size_t size)
{
	return reading && size >= 32 && (size & (size - 1)) == 0;
}

static bool fails(size_t size)
{
	if (!armed || is_token_buffer(size))
		return false;
	if (until_failure-- > 0 || (failed && !lasting))
		return false;
	failed = true;
	return true;
}

#if defined(__GLIBC__) && !defined(SANITIZED)
/* glibc only: what it calls its own allocator by. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void __libc_free(void *pointer);

void *malloc(size_t size)
{
	if (fails(size))
		return NULL;
	live += armed;
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	if (fails(count * size))
		return NULL;
	live += armed;
	return __libc_calloc(count, size);
}

void *realloc(void *pointer, size_t size)
{
	if (fails(size))
		return NULL;
	live += armed && !pointer;
	return __libc_realloc(pointer, size);
}

void free(void *pointer)
{
	live -= armed && pointer;
	__libc_free(pointer);
}

static void begin_counting(void)
{
}
#else
static void *take(size_t size)
{
	if (fails(size))
		return NULL;
	live += armed;
	return malloc(size);
}

static void give(void *pointer)
{
	live -= armed && pointer;
	free(pointer);
}

static void begin_counting(void)
{
	json_set_alloc_funcs(take, give);
}
#endif

/* One call; the bytes of its result must not have changed where it fails. */
typedef dg_err call(const char *json, size_t length);

static void arm(long at)
{
	until_failure = at;
	live = 0;
	failed = false;
	armed = true;
}

static void check_failure(const char *what, long at, dg_err err, bool may_mistake)
{
	/* One that found another way is no failure; its result has been compared. */
	if (err == DG_OK && !lasting)
		return;
	bool told = err == DG_ENOMEM || (may_mistake && !lasting && err == DG_EJSON);
	if (!told || live > 0)
		printf("\n    %s, allocation %ld: %s, %ld left\n", what, at, dg_err_code(err),
			live);
	CU_ASSERT(told);
	CU_ASSERT(live <= 0);
}

/* What an encoder gave first must be what it gives whenever it gives something. */
static char *result_text;

static void compare_result(const char *text)
{
	bool was_armed = armed;
	armed = false;
	if (text && !result_text)
		result_text = strdup(text);
	else if (text)
		CU_ASSERT_STRING_EQUAL(text, result_text);
	armed = was_armed;
}

static void forget_result(void)
{
	free(result_text);
	result_text = NULL;
}

/* @return how many allocations the call makes. */
static long fail_each(
	const char *what, call *one, const char *json, size_t length, bool may_mistake)
{
	for (long at = 0; at < 100000; at++) {
		arm(at);
		dg_err err = one(json, length);
		armed = false;
		if (!failed) {
			forget_result();
			CU_ASSERT_EQUAL(err, DG_OK);
			return at;
		}
		check_failure(what, at, err, may_mistake);
	}
	CU_FAIL("the call never ended without a failure");
	return 0;
}

static long fail_decoder(const char *what, call *one, const char *json, size_t length)
{
	lasting = false;
	(void)fail_each(what, one, json, length, true);
	lasting = true;
	return fail_each(what, one, json, length, true);
}

static long fail_encoder(const char *what, call *one)
{
	(void)one(NULL, 0); /* with memory, for what the others are compared with */
	lasting = true;
	(void)fail_each(what, one, NULL, 0, false);
	(void)one(NULL, 0);
	lasting = false;
	return fail_each(what, one, NULL, 0, false);
}

static bool are_same(const void *a, const void *b, size_t size)
{
	return memcmp(a, b, size) == 0;
}

#define DECODE_AND_FINISH(name, type, finish) \
	static dg_err name(const char *json, size_t length) \
	{ \
		static type result, untouched; \
		dg_error error; \
		memset(&result, 0, sizeof(result)); \
		reading = true; \
		dg_err err = dg__wire_decode_##name(json, length, &result, &error); \
		reading = false; \
		if (err == DG_OK) \
			finish(&result); \
		else \
			CU_ASSERT(are_same(&result, &untouched, sizeof(result))); \
		return err; \
	}

#define DECODE(name, type) \
	static void name##_finish(const type *result) \
	{ \
		(void)result; \
	} \
	DECODE_AND_FINISH(name, type, name##_finish)

DECODE(gateway, dg__gateway)
DECODE(device, dg__device_entry)
DECODE(measure_request, dg__measure_request)
DECODE(curve_request, dg__curve_request)
DECODE(roofline_request, dg__roofline_request)
DECODE(roofline, dg__roofline_reply)
DECODE_AND_FINISH(devices, dg__device_list, dg__device_list_finish)
DECODE_AND_FINISH(values, dg__values, dg__values_finish)
DECODE_AND_FINISH(curve, dg__curve_reply, dg__curve_reply_finish)
DECODE_AND_FINISH(job, dg__job, dg__job_finish)
DECODE_AND_FINISH(texts, dg__text_list, dg__text_list_finish)
DECODE_AND_FINISH(frame, dg__frame, dg__frame_finish)

static const struct {
	const char *file;
	call *decode;
} decoders[] = {
	{ "gateway.json", gateway },
	{ "device.json", device },
	{ "devices.json", devices },
	{ "measure-request.json", measure_request },
	{ "measure-request-short.json", measure_request },
	{ "curve-request.json", curve_request },
	{ "curve.json", curve },
	{ "roofline-request.json", roofline_request },
	{ "roofline.json", roofline },
	{ "values.json", values },
	{ "job-done.json", job },
	{ "job-failed.json", job },
	{ "texts.json", texts },
};

static char *read_example(const char *file, size_t *ret_length)
{
	char path[256];
	snprintf(path, sizeof(path), "../../api/examples/%s", file);
	return dg_test_read_file(dg_test_fixture(path), ret_length);
}

static void test_decoders__every_allocation_can_fail(void)
{
	for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++) {
		size_t length;
		char *json = read_example(decoders[i].file, &length);
		CU_ASSERT(fail_decoder(decoders[i].file, decoders[i].decode, json, length) > 3);
		free(json);
	}
}

/* What is encoded, read once with memory to spare. */
static dg__gateway the_gateway;
static dg__device_list the_devices;
static dg__values the_values;
static dg__curve_reply the_curve;
static dg__job the_job;
static dg__measure_request the_request;
static dg_error the_error;

static void load(void)
{
	size_t length;
	char *json = read_example("gateway.json", &length);
	CU_ASSERT_EQUAL(dg__wire_decode_gateway(json, length, &the_gateway, NULL), DG_OK);
	free(json);
	json = read_example("devices.json", &length);
	CU_ASSERT_EQUAL(dg__wire_decode_devices(json, length, &the_devices, NULL), DG_OK);
	free(json);
	json = read_example("values.json", &length);
	CU_ASSERT_EQUAL(dg__wire_decode_values(json, length, &the_values, NULL), DG_OK);
	free(json);
	json = read_example("curve.json", &length);
	CU_ASSERT_EQUAL(dg__wire_decode_curve(json, length, &the_curve, NULL), DG_OK);
	free(json);
	json = read_example("job-done.json", &length);
	CU_ASSERT_EQUAL(dg__wire_decode_job(json, length, &the_job, NULL), DG_OK);
	free(json);
	json = read_example("measure-request.json", &length);
	CU_ASSERT_EQUAL(dg__wire_decode_measure_request(json, length, &the_request, NULL), DG_OK);
	free(json);
	dg_error_native(&the_error, DG_EDRIVER, "cpu", 3, "bytes that are no UTF-8: \xff\xfe");
}

static void unload(void)
{
	dg__device_list_finish(&the_devices);
	dg__values_finish(&the_values);
	dg__curve_reply_finish(&the_curve);
	dg__job_finish(&the_job);
}

#define ENCODE(name, call) \
	static dg_err name(const char *json, size_t length) \
	{ \
		dg__json_text text = { NULL, 0 }; \
		(void)json; \
		(void)length; \
		dg_err err = call; \
		CU_ASSERT_EQUAL(err == DG_OK, text.text != NULL); \
		compare_result(text.text); \
		free(text.text); \
		return err; \
	}

ENCODE(put_gateway, dg__wire_encode_gateway(&the_gateway, &text))
ENCODE(put_devices, dg__wire_encode_devices(&the_devices, &text))
ENCODE(put_values, dg__wire_encode_values(&the_values, &text))
ENCODE(put_curve, dg__wire_encode_curve(&the_curve, &text))
ENCODE(put_job, dg__wire_encode_job(&the_job, &text))
ENCODE(put_request, dg__wire_encode_measure_request(&the_request, &text))
ENCODE(put_problem, dg__wire_encode_problem(&the_error, &text))
ENCODE(put_health, dg__wire_encode_health("ok", &text))

static void test_encoders__every_allocation_can_fail(void)
{
	load();
	CU_ASSERT(fail_encoder("gateway", put_gateway) > 3);
	CU_ASSERT(fail_encoder("devices", put_devices) > 3);
	CU_ASSERT(fail_encoder("values", put_values) > 3);
	CU_ASSERT(fail_encoder("curve", put_curve) > 3);
	CU_ASSERT(fail_encoder("request", put_request) > 3);
	CU_ASSERT(fail_encoder("problem", put_problem) > 3);
	CU_ASSERT(fail_encoder("health", put_health) > 3);
	reading = true; /* a job holds a document that is read again */
	CU_ASSERT(fail_encoder("job", put_job) > 3);
	reading = false;
	unload();
}

static dg_err public_device(const char *json, size_t length)
{
	(void)json;
	(void)length;
	char *text = dg_json_device(&the_devices.entries[0].info, &the_devices.entries[0].settings,
		true, "https://h:1");
	compare_result(text);
	dg_free(text);
	return text ? DG_OK : DG_ENOMEM;
}

static dg_err public_string(const char *json, size_t length)
{
	(void)json;
	(void)length;
	char *text = dg_json_string("a text that is longer than some buffers are \xff");
	compare_result(text);
	dg_free(text);
	return text ? DG_OK : DG_ENOMEM;
}

static void test_public_calls__give_null(void)
{
	load();
	CU_ASSERT(fail_encoder("dg_json_device", public_device) > 3);
	CU_ASSERT(fail_encoder("dg_json_string", public_string) > 1);
	unload();
}

static const char *const frames[] = {
	"{\"frame\":\"detect\",\"request\":1,\"timeout_ms\":1000}",
	("{\"frame\":\"measure\",\"request\":2,\"device\":0,\"timeout_ms\":1,"
	 "\"sustained\":true,\"keys\":[\"launch\",\"memory:read\"]}"),
	"{\"frame\":\"end\",\"request\":2}",
	"{\"frame\":\"error\",\"request\":2,\"problem\":{\"code\":\"driver_failed\"}}",
};

static void test_frames__every_allocation_can_fail(void)
{
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		CU_ASSERT(fail_decoder(frames[i], frame, frames[i], strlen(frames[i])) > 3);
}

static void test_start(void)
{
	begin_counting();
}

static const dg_test_case cases[] = {
	DG_TEST(test_start),
	DG_TEST(test_decoders__every_allocation_can_fail),
	DG_TEST(test_encoders__every_allocation_can_fail),
	DG_TEST(test_public_calls__give_null),
	DG_TEST(test_frames__every_allocation_can_fail),
};

DG_TEST_MAIN("codec without memory", cases)
