/* Configuration files, scopes, and request targets: whatever they hold, a value or an error. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/config_internal.h"
#include "server/http_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static void try_config(const char *text, size_t size)
{
	static dg__config config;
	dg_error why = { .code = DG_OK };
	dg__config_defaults(&config);
	dg_err err = dg__config_parse(text, size, "input", &config, &why);
	expect(err == DG_OK || (err == DG_ECONFIG && strstr(why.text, "line")));
	expect(config.listen_count <= DG__LISTEN_MAX && config.name_count <= DG__NAMES_MAX);
	expect(config.backend_count <= DG__BACKENDS_MAX && config.http_threads >= 1);
}

static void try_scopes(const char *text)
{
	unsigned scopes = 0, again = 0;
	char written[64];
	dg_error why;
	if (dg__scopes_parse(text, &scopes, &why) != DG_OK)
		return;
	dg__scopes_format(scopes, written, sizeof(written));
	expect(dg__scopes_parse(written, &again, &why) == DG_OK && again == scopes);
}

static void try_target(char *text)
{
	dg__request request;
	dg_error why;
	memset(&request, 0, sizeof(request));
	if (dg__target_parse(text, &request, &why) != DG_OK)
		return;
	expect(request.segment_count <= DG__SEGMENTS_MAX && request.query_count <= DG__QUERIES_MAX);
	for (size_t i = 0; i < request.segment_count; i++)
		expect(strlen(request.segments[i]) <= DG__TARGET_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 65536)
		return 0;
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	try_config(text, size);
	try_scopes(text);
	try_target(text);
	free(text);
	return 0;
}
