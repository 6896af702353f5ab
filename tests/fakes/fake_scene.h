/*
 * A behaving gateway with a device of it registered here, and the options to ask it with.
 */
#ifndef DEVGATE_TESTS_FAKES_FAKE_SCENE_H
#define DEVGATE_TESTS_FAKES_FAKE_SCENE_H

#include "client/devgate.h"
#include "tests/fakes/fake_model.h"

typedef struct dg_fake_scene {
	dg_fake_model model;
	dg_call call; /* 20 s, with the gateway's pin */
	dg_device device; /* of gateway index 0 */
	dg_error error;
} dg_fake_scene;

/** Start; fails the running case fatally where it cannot. */
void dg_fake_scene_init(dg_fake_scene *scene, dg_fake_mode mode);
void dg_fake_scene_finish(dg_fake_scene *scene);

/** A new token file that holds "the-token"; owned, free() the path. */
char *dg_fake_token_file(void);

/** Something to replace in a reply, for dg_fake_lie_twist(). */
typedef struct dg_fake_lie {
	const char *from, *to;
	char body[65536]; /* "" until it was told */
} dg_fake_lie;

/** A twist: in the first reply whose body holds from, it becomes to. @param user a dg_fake_lie. */
void dg_fake_lie_twist(const dg_fake_request *request, dg_fake_reply *reply, void *user);

#endif
