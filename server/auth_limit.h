/*
 * How often an address has failed of late. A fixed table: an attacker with many addresses pushes
 * out other attackers, and never takes memory or locks anyone out who has a valid token.
 */
#ifndef DEVGATE_SERVER_AUTH_LIMIT_H
#define DEVGATE_SERVER_AUTH_LIMIT_H

#include <stdbool.h>

typedef struct dg__auth_limit dg__auth_limit;

/** NULL: out of memory. */
dg__auth_limit *dg__auth_limit_create(void);
void dg__auth_limit_destroy(dg__auth_limit *limit);

/** Count a failure of peer; false where it has had more than 20 in the last minute. Threads: safe.
 * */
bool dg__auth_limit_allows(dg__auth_limit *limit, const char *peer);

#endif
