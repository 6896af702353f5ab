/*
 * Who asks, and what they may do.
 */
#ifndef DEVGATE_SERVER_AUTH_H
#define DEVGATE_SERVER_AUTH_H

#include "server/config.h"
#include "server/store.h"

typedef struct dg__auth dg__auth;

/** Who was let in. */
typedef struct dg__principal {
	char name[256]; /* "token:NAME", "cert:NAME", "loopback", "anonymous" (--no-auth) */
	unsigned scopes; /* dg__scope */
} dg__principal;

/** What a request shows. Texts borrowed, NULL where absent. */
typedef struct dg__credential {
	const char *authorization; /* value of the header */
	const char *certificate_name; /* of a client certificate that was verified and allowed */
	bool loopback; /* came through a listener bound to loopback */
	char peer[64]; /* address of the peer, numeric */
} dg__credential;

/** config and store are borrowed for the life of the result. */
dg_err dg__auth_create(const dg__config *config, dg__store *store, dg__auth **ret_auth,
	dg_error *reterr) DG_MUST_CHECK;
void dg__auth_destroy(dg__auth *auth);

/** Read tokens and tokens file again; on failure the last good ones stay. Threads: safe. */
dg_err dg__auth_reload(dg__auth *auth, dg_error *reterr) DG_MUST_CHECK;
/** Tokens that are neither revoked nor expired, of state and tokens file. */
size_t dg__auth_live_tokens(dg__auth *auth);

/**
 * Let in or not. A presented token that is wrong is DG_EUNAUTHORIZED also on loopback; hashes are
 * compared in constant time; a peer that fails often is DG_ERATE for a while, others are not.
 * Revocations made by another process count within a second.
 *
 * Threads: safe, without a global lock. Blocks: no (but for a re-read once a second at most).
 */
dg_err dg__auth_admit(dg__auth *auth, const dg__credential *credential,
	dg__principal *ret_principal, dg_error *reterr) DG_MUST_CHECK;

#endif
