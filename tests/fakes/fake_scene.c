/* See fake_scene.h. */
#include "tests/fakes/fake_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

void dg_fake_scene_init(dg_fake_scene *scene, dg_fake_mode mode)
{
	memset(scene, 0, sizeof(*scene));
	dg_fake_model_init(&scene->model, mode);
	scene->call = (dg_call)DG_CALL_INIT;
	scene->call.timeout_ms = 20000;
	if (mode == DG_FAKE_TLS)
		scene->call.pin = dg_fake_gateway_pin(scene->model.gateway);
	CU_ASSERT_EQUAL_FATAL(dg_device_remote(dg_fake_gateway_url(scene->model.gateway), 0,
				      &scene->call, &scene->device, &scene->error),
		DG_OK);
}

void dg_fake_scene_finish(dg_fake_scene *scene)
{
	dg_fake_model_finish(&scene->model);
}

char *dg_fake_token_file(void)
{
	char *folder = dg_test_temp_dir(), path[600];
	snprintf(path, sizeof(path), "%s/token", folder);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("the-token\n", f);
	fclose(f);
	free(folder);
	return strdup(path);
}

void dg_fake_lie_twist(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	dg_fake_lie *lie = user;
	const char *at = reply->body ? strstr(reply->body, lie->from) : NULL;
	(void)request;
	if (!at)
		return;
	snprintf(lie->body, sizeof(lie->body), "%.*s%s%s", (int)(at - reply->body), reply->body,
		lie->to, at + strlen(lie->from));
	reply->body = lie->body;
	reply->body_length = 0;
}
