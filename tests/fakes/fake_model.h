/*
 * A gateway that behaves: two devices, jobs that take a few polls, the documents of REST. Tests
 * change what they are about, before a request or by twisting a reply.
 */
#ifndef DEVGATE_TESTS_FAKES_FAKE_MODEL_H
#define DEVGATE_TESTS_FAKES_FAKE_MODEL_H

#include "api/wire.h"
#include "tests/fakes/fake_gateway.h"

#define DG_FAKE_DEVICES_MAX 4

typedef struct dg_fake_model {
	dg_fake_gateway *gateway;
	dg__device_entry entries[DG_FAKE_DEVICES_MAX]; /* gateway index: place */
	size_t count;
	const char *detecting; /* a backend still being detected; NULL for none */
	dg__gateway about;
	const char *token; /* that requests must carry, but for healthz and readyz; NULL: none */

	unsigned polls_until_done; /* questions about a job before it ends */
	bool at_once; /* measurements are answered 200 with their result */
	bool never_done;
	bool no_values; /* as a device without kernels */
	dg__job_state outcome; /* DONE (default), FAILED, CANCELLED */
	dg_error outcome_error;

	/* Called last, to make the reply something else. May be NULL. */
	void (*twist)(const dg_fake_request *request, dg_fake_reply *reply, void *user);
	void *user;

	/* What came. */
	unsigned jobs, polls, deletes;
	dg__measure_request asked; /* keys of the last throughput request */
	dg__job job; /* the last one */
	char **kept; /* texts of replies, freed at the end */
	size_t kept_count;
} dg_fake_model;

/** Start. @param mode DG_FAKE_TLS or DG_FAKE_PLAIN. */
void dg_fake_model_init(dg_fake_model *model, dg_fake_mode mode);
void dg_fake_model_finish(dg_fake_model *model);

#endif
