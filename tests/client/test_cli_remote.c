/* The command-line tool against a gateway, one that means no good included. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "api/wire.h"
#include "tests/fakes/fake_gateway.h"
#include "tests/tool.h"

#define UUID "11111111-2222-3333-4444-555555555555"
/* Clears the screen, sets its title, turns the writing direction: all from a device's name. */
#define HOSTILE                                                                                    \
	"Card \033[2J\033]0;x\007 \xc2\x9b"                                                        \
	"1m \xe2\x80\xae end"

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define RUN(...) dg_test_tool_run(&(dg_test_tool_request){ .args = ARGS(__VA_ARGS__) })

/* Bodies, made once by the encoders that a gateway uses. */
typedef struct bodies {
	dg__device_entry entries[2];
	dg__json_text list, device[2], values;
} bodies;

static void make_card(dg__device_entry *card)
{
	dg_settings settings = { sizeof(settings), DG_F32, DG_I32, DG_BOOL_U8,
		DG_QUANT_PACKED_U32 };
	memset(card, 0, sizeof(*card));
	CU_ASSERT_EQUAL(dg_device_parse("cuda:0", &card->info.device, NULL), DG_OK);
	card->info.present = DG_HAS_DEVICE | DG_HAS_GATEWAY_INDEX | DG_HAS_UUID | DG_HAS_PCI |
			     DG_HAS_HARDWARE | DG_HAS_TOTAL;
	card->info.gateway_index = 4;
	snprintf(card->info.backend, sizeof(card->info.backend), "cuda");
	snprintf(card->info.name, sizeof(card->info.name), "%s", HOSTILE);
	snprintf(card->info.uuid, sizeof(card->info.uuid), "%s", UUID);
	snprintf(card->info.pci, sizeof(card->info.pci), "0000:17:00.0");
	snprintf(card->info.hardware, sizeof(card->info.hardware), "uuid:%s", UUID);
	snprintf(card->info.host, sizeof(card->info.host), "%032d", 7);
	card->info.total_bytes = 80000000000u;
	card->settings = settings;
}

static void make_processor(dg__device_entry *processor)
{
	make_card(processor);
	CU_ASSERT_EQUAL(dg_device_parse("cpu", &processor->info.device, NULL), DG_OK);
	processor->info.present &= ~(uint32_t)(DG_HAS_UUID | DG_HAS_PCI);
	processor->info.gateway_index = 0;
	snprintf(processor->info.backend, sizeof(processor->info.backend), "cpu");
	snprintf(processor->info.name, sizeof(processor->info.name), "Processor");
	snprintf(processor->info.hardware, sizeof(processor->info.hardware), "host:%032d", 7);
	processor->info.uuid[0] = processor->info.pci[0] = '\0';
}

static void make_bodies(bodies *all)
{
	dg_value value;
	dg__device_list list;
	dg__values values = { "cuda:0", 1, &value };
	memset(all, 0, sizeof(*all));
	memset(&value, 0, sizeof(value));
	memset(&list, 0, sizeof(list));
	make_processor(&all->entries[0]);
	make_card(&all->entries[1]);
	list.count = 2;
	list.entries = all->entries;
	value.key.mode = DG_MODE_LAUNCH;
	value.status = DG_STATUS_FAILED;
	value.code = DG_EFAILED;
	snprintf(value.reason, sizeof(value.reason), "%s", HOSTILE);
	CU_ASSERT_EQUAL(dg__wire_encode_devices(&list, &all->list), DG_OK);
	CU_ASSERT_EQUAL(dg__wire_encode_device(&all->entries[0], &all->device[0]), DG_OK);
	CU_ASSERT_EQUAL(dg__wire_encode_device(&all->entries[1], &all->device[1]), DG_OK);
	CU_ASSERT_EQUAL(dg__wire_encode_values(&values, &all->values), DG_OK);
}

static void free_bodies(bodies *all)
{
	free(all->list.text);
	free(all->device[0].text);
	free(all->device[1].text);
	free(all->values.text);
}

static void answer(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	const bodies *all = user;
	if (strncmp(request->path, "/healthz", 8) == 0)
		reply->body = "{\"status\":\"ok\"}";
	else if (strncmp(request->path, "/readyz", 7) == 0)
		reply->body = "{\"status\":\"ready\"}";
	else if (strstr(request->path, "/throughput"))
		reply->body = all->values.text;
	else if (strcmp(request->path, "/v1/devices/0") == 0)
		reply->body = all->device[0].text;
	else if (strcmp(request->path, "/v1/devices/4") == 0)
		reply->body = all->device[1].text;
	else if (strncmp(request->path, "/v1/devices", 11) == 0 && request->path[11] != '/')
		reply->body = all->list.text;
	else
		reply->status = 404;
}

typedef struct scene {
	bodies all;
	dg_fake_gateway *gateway;
	const char *url, *pin;
} scene;

static void start(scene *s)
{
	make_bodies(&s->all);
	s->gateway = dg_fake_gateway_create(DG_FAKE_TLS, answer, &s->all);
	s->url = dg_fake_gateway_url(s->gateway);
	s->pin = dg_fake_gateway_pin(s->gateway);
}

static void stop(scene *s)
{
	dg_fake_gateway_destroy(s->gateway);
	free_bodies(&s->all);
}

static void expect_harmless(const char *text)
{
	CU_ASSERT_PTR_NULL(strchr(text, '\033'));
	CU_ASSERT_PTR_NULL(strchr(text, '\007'));
	CU_ASSERT_PTR_NULL(strstr(text, "\xc2\x9b"));
	CU_ASSERT_PTR_NULL(strstr(text, "\xe2\x80\xae"));
}

/* The device that a text means at the gateway is the one with the index. */
static void expect_selected(const scene *s, const char *text, unsigned index)
{
	char device[128];
	dg_test_tool tool = RUN("describe", "--gateway", s->url, "--pin", s->pin, text, "--json");
	json_t *document = json_loads(tool.out, 0, NULL);
	const char *found = json_string_value(json_object_get(document, "device"));
	snprintf(device, sizeof(device), "remote:%s#%u", s->url, index);
	CU_ASSERT_EQUAL(tool.status, 0);
	CU_ASSERT_STRING_EQUAL(found ? found : tool.err, device);
	CU_ASSERT(json_is_object(json_object_get(document, "settings")));
	json_decref(document);
	dg_test_tool_finish(&tool);
}

static void test_select__every_name_of_a_gateways_device(void)
{
	scene s;
	char url[128];
	start(&s);
	expect_selected(&s, "4", 4);
	expect_selected(&s, "0", 0);
	expect_selected(&s, "CUDA", 4);
	expect_selected(&s, "cpu", 0);
	expect_selected(&s, "GPU-" UUID, 4);
	expect_selected(&s, UUID, 4);
	expect_selected(&s, "00000000:17:00.0", 4);
	expect_selected(&s, "processor", 0);
	snprintf(url, sizeof(url), "%s#4", s.url);
	expect_selected(&s, url, 4);
	stop(&s);
}

static void test_select__tells_candidates_where_none_fits(void)
{
	scene s;
	start(&s);
	dg_test_tool tool = RUN("describe", "--gateway", s.url, "--pin", s.pin, "cuda:1");
	CU_ASSERT_EQUAL(tool.status, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.err, "no_such_device"));
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.err, "0 cpu (Processor)"));
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.err, "4 cuda:0 (Card"));
	expect_harmless(tool.err);
	dg_test_tool_finish(&tool);
	stop(&s);
}

static void test_select__configured_gateways_are_searched_for_a_uuid(void)
{
	scene s;
	char content[256], variable[600], expected[128];
	char *folder = dg_test_temp_dir();
	start(&s);
	snprintf(content, sizeof(content), "%s/gateways", folder);
	FILE *file = fopen(content, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	snprintf(variable, sizeof(variable), "DEVGATE_GATEWAYS=%s", content);
	fprintf(file, "%s %s\n", s.url, s.pin);
	fclose(file);
	dg_test_tool tool = dg_test_tool_run(&(dg_test_tool_request){
		.args = ARGS("describe", UUID, "--json"), .env = ARGS(variable) });
	snprintf(expected, sizeof(expected), "\"remote:%s#4\"", s.url);
	CU_ASSERT_EQUAL(tool.status, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.out, expected));
	dg_test_tool_finish(&tool);
	stop(&s);
	free(folder);
}

static void test_output__nothing_hostile_reaches_the_reader(void)
{
	scene s;
	start(&s);
	dg_test_tool table = RUN("devices", "--gateway", s.url, "--pin", s.pin);
	dg_test_tool document = RUN("devices", "--gateway", s.url, "--pin", s.pin, "--json");
	dg_test_tool figures = RUN("throughput", "--gateway", s.url, "--pin", s.pin, "4", "launch");
	CU_ASSERT_EQUAL(table.status, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(table.out, "Card "));
	CU_ASSERT_EQUAL(document.status, 0);
	json_t *parsed = json_loads(document.out, 0, NULL);
	const json_t *card = json_array_get(json_object_get(parsed, "devices"), 1);
	const char *name = json_string_value(json_object_get(card, "name"));
	/* The document is shown safely and yet says exactly what was sent. */
	CU_ASSERT_STRING_EQUAL(name ? name : "", HOSTILE);
	expect_harmless(table.out);
	expect_harmless(document.out);
	expect_harmless(figures.out);
	expect_harmless(figures.err);
	json_decref(parsed);
	dg_test_tool_finish(&table);
	dg_test_tool_finish(&document);
	dg_test_tool_finish(&figures);
	stop(&s);
}

static void test_throughput__failed_value_is_exit_1_after_all_are_printed(void)
{
	scene s;
	char device[128];
	start(&s);
	snprintf(device, sizeof(device), "%s#4", s.url);
	dg_test_tool tool = RUN("throughput", device, "launch", "--pin", s.pin);
	CU_ASSERT_EQUAL(tool.status, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.out, "failed: Card"));
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.err, "1 of 1 keys failed: launch"));
	dg_test_tool_finish(&tool);
	stop(&s);
}

static void test_health__is_for_container_checks(void)
{
	scene s;
	start(&s);
	dg_test_tool lines = RUN("health", s.url, "--pin", s.pin);
	dg_test_tool document = RUN("health", s.url, "--pin", s.pin, "--json");
	json_t *parsed = json_loads(document.out, 0, NULL);
	CU_ASSERT_EQUAL(lines.status, 0);
	CU_ASSERT_EQUAL(strncmp(lines.out, "alive, ready, ", 14), 0);
	CU_ASSERT_EQUAL(document.status, 0);
	CU_ASSERT(json_is_true(json_object_get(parsed, "ready")));
	json_decref(parsed);
	dg_test_tool_finish(&lines);
	dg_test_tool_finish(&document);
	stop(&s);
}

static void test_health__wrong_pin_is_told(void)
{
	scene s;
	start(&s);
	dg_test_tool tool = RUN(
		"health", s.url, "--pin", "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
	CU_ASSERT_EQUAL(tool.status, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.err, "devgate: pin_mismatch: "));
	dg_test_tool_finish(&tool);
	stop(&s);
}

/* Whom to trust comes from the option, who to be from the variable. */
static void test_credentials__option_and_variable_complete_each_other(void)
{
	scene s;
	dg_fake_request request;
	char path[300], variable[400], header[64] = "";
	char *folder = dg_test_temp_dir();
	start(&s);
	snprintf(path, sizeof(path), "%s/token", folder);
	FILE *file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs("a-token\n", file);
	fclose(file);
	snprintf(variable, sizeof(variable), "DEVGATE_TOKEN_FILE=%s", path);
	dg_test_tool tool = dg_test_tool_run(&(dg_test_tool_request){
		.args = ARGS("devices", "--gateway", s.url, "--pin", s.pin),
		.env = ARGS(variable) });
	CU_ASSERT_EQUAL(tool.status, 0);
	CU_ASSERT(dg_fake_gateway_request(s.gateway, 0, &request));
	CU_ASSERT(dg_fake_request_header(&request, "Authorization", header, sizeof(header)));
	CU_ASSERT_STRING_EQUAL(header, "Bearer a-token");
	dg_test_tool_finish(&tool);
	stop(&s);
	free(folder);
}

static const dg_test_case cases[] = {
	DG_TEST(test_select__every_name_of_a_gateways_device),
	DG_TEST(test_select__tells_candidates_where_none_fits),
	DG_TEST(test_select__configured_gateways_are_searched_for_a_uuid),
	DG_TEST(test_output__nothing_hostile_reaches_the_reader),
	DG_TEST(test_throughput__failed_value_is_exit_1_after_all_are_printed),
	DG_TEST(test_health__is_for_container_checks),
	DG_TEST(test_health__wrong_pin_is_told),
	DG_TEST(test_credentials__option_and_variable_complete_each_other),
};

DG_TEST_MAIN("cli remote", cases)
