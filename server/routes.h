/*
 * The table of routes, between the files that answer them.
 */
#ifndef DEVGATE_SERVER_ROUTES_H
#define DEVGATE_SERVER_ROUTES_H

#include "server/http.h"

/** A call that a route answers with. Fills the response whole. */
typedef void dg__answer(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response);

dg__answer dg__answer_health, dg__answer_ready, dg__answer_openapi, dg__answer_gateway;
dg__answer dg__answer_devices, dg__answer_default, dg__answer_device;
dg__answer dg__answer_known_values, dg__answer_measure, dg__answer_known_curve, dg__answer_curve;
dg__answer dg__answer_roofline;
dg__answer dg__answer_job, dg__answer_cancel, dg__answer_events;
dg__answer dg__answer_take_lease, dg__answer_renew_lease, dg__answer_give_lease, dg__answer_lease;
dg__answer dg__answer_encode, dg__answer_decode, dg__answer_id;

/** Fill a response with an encoder's result: 200, or 503 where memory ran out. */
void dg__respond(dg__response *response, dg_err encoded, const dg__json_text *text);
/** A problem with the code and words given. */
void dg__respond_error(dg__response *response, dg_err code, const char *format, ...)
	DG_PRINTF(3, 4);

/**
 * The device that the path names.
 *
 * @return 1: snapshot's entry at *ret_position. 0: a device without kernels, *ret_identity. -1: the
 *         response says why not.
 */
int dg__find_device(const dg__snapshot *snapshot, const dg__request *request, size_t *ret_position,
	dg_device *ret_identity, dg__response *response);

/** Id of the lease that the request presents; "": none. Borrowed. */
const char *dg__request_lease(const dg__request *request);

/** The job of id, to wait for as the request prefers. */
void dg__respond_job(const dg__context *context, dg__request *request, bool resumed, const char *id,
	dg__response *response);

#endif
