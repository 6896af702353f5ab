/*
 * What the HTTP library's failures mean. Part of the transport.
 */
#ifndef DEVGATE_CLIENT_TRANSPORT_ERROR_H
#define DEVGATE_CLIENT_TRANSPORT_ERROR_H

#include <curl/curl.h>

#include "client/transport.h"

/**
 * @param code      Not CURLE_OK.
 * @param detail    The library's own words; "" for none.
 * @param url       Of the gateway.
 * @param identity  What was used; may be NULL.
 * @return The error.
 */
dg_err dg__transport_error(CURLcode code, const char *detail, const char *url,
	const dg__identity *identity, dg_error *reterr);

#endif
