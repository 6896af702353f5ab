/*
 * Requests made from the contract, valid ones and wrong ones of every kind: each gets an answer,
 * none a failure of the gateway's own, and the gateway stands afterwards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/gateway.h"
#include "tests/test.h"

#define HEADERS_MOST 8

static dg_test_gateway gateway;

/* What the contract says of a device that cannot, is not ready yet, or takes too long. */
static bool is_fault(int status)
{
	return status == 0 || (status >= 500 && status != 501 && status != 503 && status != 504);
}

static void send_one(const json_t *request)
{
	const char *headers[HEADERS_MOST + 1] = { NULL };
	const char *method = json_string_value(json_object_get(request, "method"));
	const char *path = json_string_value(json_object_get(request, "path"));
	const char *body = json_string_value(json_object_get(request, "body"));
	const json_t *list = json_object_get(request, "headers");
	for (size_t i = 0; i < json_array_size(list) && i < HEADERS_MOST; i++)
		headers[i] = json_string_value(json_array_get(list, i));
	dg_test_reply reply = dg_test_ask(&gateway, method, path, headers, body);
	if (is_fault(reply.status))
		printf("\n    %s %.100s %.200s: %d %.200s\n", method, path, body ? body : "",
			reply.status, reply.body);
	CU_ASSERT(!is_fault(reply.status));
	dg_test_reply_finish(&reply);
}

static void test_requests_of_the_contract__get_answers(void)
{
	FILE *lines = popen("python3 tests/tools/check_openapi.py --corpus", "r");
	char *line = NULL;
	size_t room = 0, count = 0;
	CU_ASSERT_PTR_NOT_NULL(lines);
	while (lines && getline(&line, &room, lines) > 0) {
		json_t *request = json_loads(line, 0, NULL);
		CU_ASSERT_PTR_NOT_NULL(request);
		if (request)
			send_one(request);
		json_decref(request);
		count++;
	}
	free(line);
	CU_ASSERT(lines && pclose(lines) == 0);
	CU_ASSERT(count > 1000);
}

static void test_gateway__stands_afterwards(void)
{
	dg_test_reply reply = dg_test_ask(&gateway, "GET", "/v1/devices", NULL, NULL);
	int status = -1;
	CU_ASSERT_EQUAL(reply.status, 200);
	dg_test_reply_finish(&reply);
	CU_ASSERT(dg_test_gateway_stop(&gateway, &status) < 2500);
	CU_ASSERT_EQUAL(status, 0);
}

static void test_start(void)
{
	gateway = dg_test_gateway_start(NULL, NULL);
}

static const dg_test_case cases[] = {
	DG_TEST(test_start),
	DG_TEST(test_requests_of_the_contract__get_answers),
	DG_TEST(test_gateway__stands_afterwards),
};

DG_TEST_MAIN("requests made from the contract", cases)
