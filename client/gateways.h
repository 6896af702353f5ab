/*
 * The file that DEVGATE_GATEWAYS names: one gateway a line.
 *
 *	# address                pin          token file
 *	https://node1:8443       sha256//…=   /etc/devgate/node1.token
 *	https://node2:8443       -            /etc/devgate/node2.token   cacert=/etc/devgate/ca.pem
 *	https://node3
 *
 * After the address come up to two words in that order, '-' for none, and any of pin=, token-file=,
 * cacert=, cert= and key=. A gateway without any of them gets the credentials of the environment.
 */
#ifndef DEVGATE_CLIENT_GATEWAYS_H
#define DEVGATE_CLIENT_GATEWAYS_H

#include "api/registry.h"

#define DG__GATEWAYS_MAX 1024

typedef struct dg__gateway_entry {
	dg__address address;
	uint32_t credential; /* number of its own set; 0: none of its own */
} dg__gateway_entry;

typedef struct dg__gateways {
	size_t count;
	dg__gateway_entry *entries; /* owned; dg__gateways_finish() */
} dg__gateways;

/**
 * Read the file. No variable, or an empty one: no gateways.
 *
 * @return DG_OK, DG_ECONFIG (which line, what was expected), DG_ENOMEM.
 * Threads: safe. Blocks: on reading the file.
 */
dg_err dg__gateways_read(dg__gateways *ret_gateways, dg_error *reterr) DG_MUST_CHECK;
void dg__gateways_finish(dg__gateways *gateways);

#endif
