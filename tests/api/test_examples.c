/*
 * The golden examples of the contract: each is read, and written again to the same document, member
 * by member and figure by figure.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/wire.h"
#include "tests/test.h"

#define FOLDER "../../api/examples"

/* Reads a document and writes it again. */
typedef dg_err recode(const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr);

static dg_err recode_gateway(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__gateway gateway;
	dg_err err = dg__wire_decode_gateway(json, length, &gateway, reterr);
	return err ? err : dg__wire_encode_gateway(&gateway, ret_text);
}

static dg_err recode_device(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__device_entry entry;
	dg_err err = dg__wire_decode_device(json, length, &entry, reterr);
	return err ? err : dg__wire_encode_device(&entry, ret_text);
}

static dg_err recode_devices(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__device_list list;
	dg_err err = dg__wire_decode_devices(json, length, &list, reterr);
	if (err)
		return err;
	err = dg__wire_encode_devices(&list, ret_text);
	dg__device_list_finish(&list);
	return err;
}

static dg_err recode_measure_request(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__measure_request request = { .count = 0 };
	dg_err err = dg__wire_decode_measure_request(json, length, &request, reterr);
	return err ? err : dg__wire_encode_measure_request(&request, ret_text);
}

static dg_err recode_values(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__values values;
	dg_err err = dg__wire_decode_values(json, length, &values, reterr);
	if (err)
		return err;
	err = dg__wire_encode_values(&values, ret_text);
	dg__values_finish(&values);
	return err;
}

static dg_err recode_lease(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg_lease lease;
	dg_err err = dg__wire_decode_lease(json, length, &lease, reterr);
	return err ? err : dg__wire_encode_lease(&lease, ret_text);
}

static dg_err recode_lease_request(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	uint32_t ttl_s;
	dg_err err = dg__wire_decode_lease_request(json, length, &ttl_s, reterr);
	return err ? err : dg__wire_encode_lease_request(ttl_s, ret_text);
}

static dg_err recode_curve_request(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__curve_request request;
	dg_err err = dg__wire_decode_curve_request(json, length, &request, reterr);
	return err ? err : dg__wire_encode_curve_request(&request, ret_text);
}

static dg_err recode_curve(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__curve_reply reply;
	dg_err err = dg__wire_decode_curve(json, length, &reply, reterr);
	if (err)
		return err;
	err = dg__wire_encode_curve(&reply, ret_text);
	dg__curve_reply_finish(&reply);
	return err;
}

static dg_err recode_roofline_request(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__roofline_request request;
	dg_err err = dg__wire_decode_roofline_request(json, length, &request, reterr);
	return err ? err : dg__wire_encode_roofline_request(&request, ret_text);
}

static dg_err recode_roofline(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__roofline_reply reply;
	dg_err err = dg__wire_decode_roofline(json, length, &reply, reterr);
	return err ? err : dg__wire_encode_roofline(&reply, ret_text);
}

static dg_err recode_job(const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__job job;
	dg_err err = dg__wire_decode_job(json, length, &job, reterr);
	if (err)
		return err;
	err = dg__wire_encode_job(&job, ret_text);
	dg__job_finish(&job);
	return err;
}

static dg_err recode_texts(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	dg__text_list list;
	dg_err err = dg__wire_decode_texts(json, length, &list, reterr);
	if (err)
		return err;
	err = dg__wire_encode_texts(&list, ret_text);
	dg__text_list_finish(&list);
	return err;
}

static dg_err recode_ids(const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	static dg_id ids[DG__IDS_MAX];
	size_t count;
	dg_err err = dg__wire_decode_ids(json, length, ids, &count, reterr);
	return err ? err : dg__wire_encode_ids(ids, count, ret_text);
}

static dg_err recode_id_items(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	static dg__id_item items[DG__IDS_MAX];
	size_t count;
	dg_err err = dg__wire_decode_id_items(json, length, items, &count, reterr);
	return err ? err : dg__wire_encode_id_items(items, count, ret_text);
}

/* One item has no decoder of its own: it is read as a list of one. */
static dg_err recode_id_item(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	static dg__id_item items[DG__IDS_MAX];
	size_t count, room = length + 3;
	char *list = malloc(room);
	int written = snprintf(list, room, "[%.*s]", (int)length, json);
	dg_err err = dg__wire_decode_id_items(list, (size_t)written, items, &count, reterr);
	free(list);
	return err ? err : dg__wire_encode_id_item(&items[0], ret_text);
}

/* The status line says the same as the document, as it does in a reply. */
static dg_err recode_problem(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	json_t *root = json_loadb(json, length, 0, NULL);
	int status = (int)json_integer_value(json_object_get(root, "status"));
	json_decref(root);
	dg__wire_decode_problem(status, json, length, reterr);
	return dg__wire_encode_problem(reterr, ret_text);
}

static dg_err recode_health(
	const char *json, size_t length, dg__json_text *ret_text, dg_error *reterr)
{
	json_t *root = json_loadb(json, length, 0, NULL);
	const char *status = json_string_value(json_object_get(root, "status"));
	(void)reterr;
	dg_err err = dg__wire_encode_health(status ? status : "", ret_text);
	json_decref(root);
	return err;
}

static const struct {
	const char *file;
	recode *recode;
} examples[] = {
	{ "curve.json", recode_curve },
	{ "curve-request.json", recode_curve_request },
	{ "device.json", recode_device },
	{ "device-flex.json", recode_device },
	{ "devices.json", recode_devices },
	{ "devices-detecting.json", recode_devices },
	{ "gateway.json", recode_gateway },
	{ "health.json", recode_health },
	{ "id-item.json", recode_id_item },
	{ "id-items.json", recode_id_items },
	{ "ids.json", recode_ids },
	{ "job-cancelled.json", recode_job },
	{ "job-done.json", recode_job },
	{ "job-failed.json", recode_job },
	{ "job-running.json", recode_job },
	{ "measure-request.json", recode_measure_request },
	{ "problem.json", recode_problem },
	{ "problem-driver.json", recode_problem },
	{ "ready.json", recode_health },
	{ "roofline.json", recode_roofline },
	{ "lease.json", recode_lease },
	{ "lease-shown.json", recode_lease },
	{ "lease-request.json", recode_lease_request },
	{ "roofline-request.json", recode_roofline_request },
	{ "texts.json", recode_texts },
	{ "values.json", recode_values },
	{ "values-empty.json", recode_values },
};

#define EXAMPLES (sizeof(examples) / sizeof(examples[0]))

/* The spelling that a document is compared in: its members in their order, without blanks. */
static char *compact(const char *json, size_t length)
{
	json_error_t why;
	json_t *root = json_loadb(json, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	char *text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	json_decref(root);
	return text ? text : strdup("");
}

static char *read_example(const char *file, size_t *ret_length)
{
	char path[256];
	snprintf(path, sizeof(path), FOLDER "/%s", file);
	return dg_test_read_file(dg_test_fixture(path), ret_length);
}

static void check_example(const char *file, recode *again)
{
	size_t length;
	char *json = read_example(file, &length);
	char *expected = compact(json, length);
	dg__json_text text = { NULL, 0 };
	dg_error error = { .code = DG_OK };
	dg_err err = again(json, length, &text, &error);
	bool same = err == DG_OK && strcmp(text.text, expected) == 0;
	if (!same)
		printf("\n    %s: %s%s\n    is  %s\n", file, dg_err_code(err), error.text,
			text.text ? text.text : "-");
	CU_ASSERT(length > 0);
	CU_ASSERT_EQUAL(err, DG_OK);
	CU_ASSERT(same);
	CU_ASSERT(!text.text || strlen(text.text) == text.length);
	free(text.text);
	free(expected);
	free(json);
}

static void test_examples__are_read_and_written_to_the_same_document(void)
{
	for (size_t i = 0; i < EXAMPLES; i++)
		check_example(examples[i].file, examples[i].recode);
}

/* Short texts are read, and written as the reference's objects. */
static void test_examples__short_keys_mean_the_same_as_objects(void)
{
	size_t length;
	char *json = read_example("measure-request-short.json", &length);
	char *objects = read_example("measure-request.json", &(size_t){ 0 });
	char *expected = compact(objects, strlen(objects));
	dg__json_text text = { NULL, 0 };
	dg_error error;
	CU_ASSERT_EQUAL(recode_measure_request(json, length, &text, &error), DG_OK);
	CU_ASSERT_STRING_EQUAL(text.text ? text.text : "", expected);
	free(text.text);
	free(expected);
	free(objects);
	free(json);
}

static bool is_listed(const char *file)
{
	for (size_t i = 0; i < EXAMPLES; i++)
		if (strcmp(examples[i].file, file) == 0)
			return true;
	return strcmp(file, "measure-request-short.json") == 0;
}

static void test_examples__none_is_left_out(void)
{
	DIR *folder = opendir(dg_test_fixture(FOLDER));
	CU_ASSERT_PTR_NOT_NULL(folder);
	if (!folder)
		return;
	for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
		if (!strstr(entry->d_name, ".json"))
			continue;
		if (!is_listed(entry->d_name))
			printf("\n    %s is not tested\n", entry->d_name);
		CU_ASSERT(is_listed(entry->d_name));
	}
	closedir(folder);
}

/* A newer gateway may say more than we know: that must not stop an older client. */
static void test_examples__unknown_members_change_nothing(void)
{
	for (size_t i = 0; i < EXAMPLES; i++) {
		size_t length;
		char *json = read_example(examples[i].file, &length);
		json_t *root = json_loadb(json, length, 0, NULL);
		char *expected = compact(json, length);
		if (json_is_object(root) && examples[i].recode != recode_health) {
			dg__json_text text = { NULL, 0 };
			dg_error error;
			json_object_set_new(root, "later", json_pack("{s:[i]}", "more", 1));
			char *more = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
			CU_ASSERT_EQUAL(
				examples[i].recode(more, strlen(more), &text, &error), DG_OK);
			CU_ASSERT_STRING_EQUAL(text.text ? text.text : "", expected);
			free(text.text);
			free(more);
		}
		free(expected);
		free(json);
		json_decref(root);
	}
}

static const dg_test_case cases[] = {
	DG_TEST(test_examples__are_read_and_written_to_the_same_document),
	DG_TEST(test_examples__short_keys_mean_the_same_as_objects),
	DG_TEST(test_examples__none_is_left_out),
	DG_TEST(test_examples__unknown_members_change_nothing),
};

DG_TEST_MAIN("golden examples", cases)
