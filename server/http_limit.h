/*
 * How many connections an address has.
 */
#ifndef DEVGATE_SERVER_HTTP_LIMIT_H
#define DEVGATE_SERVER_HTTP_LIMIT_H

#include <stdbool.h>
#include <sys/socket.h>

typedef struct dg__address_limit dg__address_limit;

/** NULL: no memory. */
dg__address_limit *dg__address_limit_create(unsigned most);
void dg__address_limit_destroy(dg__address_limit *limit);

/**
 * Count a connection of this address; of IPv6, of its /64, since one host has all of that.
 *
 * @return false: it has its share already (or memory is short), and is not counted.
 * Threads: safe, with a lock for each bucket. Blocks: no.
 */
bool dg__address_limit_take(dg__address_limit *limit, const struct sockaddr_storage *address);
/** One counted connection less. */
void dg__address_limit_give(dg__address_limit *limit, const struct sockaddr_storage *address);

#endif
