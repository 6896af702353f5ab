/* Health, the contract, the gateway. See routes.h. */
#include "server/routes.h"

#include <stdio.h>
#include <string.h>

/* The contract is part of the program: the assembler takes it in, from the root of the sources. */
#ifdef __APPLE__
#define SECTION ".section __TEXT,__const\n"
#define SYMBOL(name) "_" name
#else
#define SECTION ".section .rodata\n"
#define SYMBOL(name) name
#endif
/* clang-format off */
__asm__(SECTION
	".globl " SYMBOL("dg__openapi_start") "\n"
	".globl " SYMBOL("dg__openapi_end") "\n"
	SYMBOL("dg__openapi_start") ":\n"
	".incbin \"api/openapi.yaml\"\n"
	SYMBOL("dg__openapi_end") ":\n"
	".byte 0\n"
	".text\n");
/* clang-format on */
extern const char dg__openapi_start[], dg__openapi_end[];

void dg__answer_health(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	dg__json_text text = { NULL, 0 };
	(void)context;
	(void)request;
	(void)resumed;
	dg__respond(response, dg__wire_encode_health("ok", &text), &text);
}

void dg__answer_ready(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	(void)request;
	(void)resumed;
	const dg__snapshot *snapshot = dg__fleet_snapshot(context->fleet);
	bool ready = snapshot->ready;
	dg__snapshot_release(snapshot);
	dg__json_text text = { NULL, 0 };
	if (ready)
		dg__respond(response, dg__wire_encode_health("ready", &text), &text);
	else
		dg__respond_error(response, DG_EDETECTING, "devices are still being looked for");
}

void dg__answer_openapi(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	(void)context;
	(void)request;
	(void)resumed;
	response->status = 200;
	response->content_type = "application/yaml";
	response->body.text = (char *)(uintptr_t)dg__openapi_start;
	/* Both are labels of one section. */
	// cppcheck-suppress comparePointers
	response->body.length = (size_t)(dg__openapi_end - dg__openapi_start);
	response->borrowed = true;
}

/* What is prepared says that the state can be written. */
static void respond_problem(
	const dg__snapshot *snapshot, const char *problem, dg__response *response)
{
	dg__json_text text = { NULL, 0 };
	dg__gateway gateway = snapshot->gateway;
	snprintf(gateway.state_problem, sizeof(gateway.state_problem), "%s", problem);
	dg__respond(response, dg__wire_encode_gateway(&gateway, &text), &text);
}

void dg__answer_gateway(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	(void)request;
	(void)resumed;
	const dg__snapshot *snapshot = dg__fleet_snapshot(context->fleet);
	char problem[200];
	if (dg__store_problem(context->store, problem, sizeof(problem))) {
		respond_problem(snapshot, problem, response);
		dg__snapshot_release(snapshot);
		return;
	}
	response->status = 200;
	response->snapshot = snapshot;
	response->body = snapshot->gateway_json;
	dg__response_header(response, "Cache-Control", "no-store");
}
