/*
 * See auth.h. Tokens are read into a table that is never changed, only replaced; who admits takes a
 * reference to it under a lock held for a few instructions.
 */
#include "server/auth.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "backends/core/clock.h"
#include "server/auth_limit.h"
#include "server/log.h"
#include "server/tokens_file.h"

#define RECHECK_NS (1000ull * 1000000)
#define ALL_SCOPES (DG__SCOPE_READ | DG__SCOPE_MEASURE | DG__SCOPE_LEASE | DG__SCOPE_ADMIN)

typedef struct table {
	atomic_uint references;
	size_t count;
	dg__token tokens[];
} table;

struct dg__auth {
	const dg__config *config;
	dg__store *store;
	pthread_mutex_t lock; /* of current, held for a few instructions */
	table *current;
	pthread_mutex_t reloading;
	dg__token *file_tokens; /* under reloading: the last good content of the tokens file */
	size_t file_count;
	/* A clock that nobody sets: one put back must not keep a revoked token alive. */
	_Atomic(uint64_t) checked_at_ns;
	_Atomic(int64_t) version;
	dg__auth_limit *limit;
};

static table *take_table(dg__auth *auth)
{
	pthread_mutex_lock(&auth->lock);
	table *t = auth->current;
	atomic_fetch_add(&t->references, 1);
	pthread_mutex_unlock(&auth->lock);
	return t;
}

static void drop_table(table *t)
{
	if (t && atomic_fetch_sub(&t->references, 1) == 1)
		free(t);
}

static void replace_table(dg__auth *auth, table *fresh)
{
	pthread_mutex_lock(&auth->lock);
	table *old = auth->current;
	auth->current = fresh;
	pthread_mutex_unlock(&auth->lock);
	drop_table(old);
}

/* The state's tokens and the file's in a new table; under reloading. */
static dg_err build_table(dg__auth *auth, dg_error *reterr)
{
	dg__token *kept = NULL;
	size_t kept_count = 0;
	int64_t version = 0;
	dg_err err = dg__store_token_version(auth->store, &version, reterr);
	if (err == DG_OK)
		err = dg__store_tokens(auth->store, &kept, &kept_count, reterr);
	if (err != DG_OK)
		return err;
	size_t count = kept_count + auth->file_count;
	table *fresh = malloc(sizeof(*fresh) + count * sizeof(fresh->tokens[0]));
	if (!fresh) {
		free(kept);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	atomic_init(&fresh->references, 1);
	fresh->count = count;
	if (kept_count)
		memcpy(fresh->tokens, kept, kept_count * sizeof(*kept));
	if (auth->file_count)
		memcpy(fresh->tokens + kept_count, auth->file_tokens,
			auth->file_count * sizeof(*kept));
	free(kept);
	replace_table(auth, fresh);
	atomic_store(&auth->version, version);
	return DG_OK;
}

dg_err dg__auth_reload(dg__auth *auth, dg_error *reterr)
{
	pthread_mutex_lock(&auth->reloading);
	dg_err err = DG_OK;
	if (*auth->config->tokens_file) {
		dg__token *tokens;
		size_t count;
		err = dg__tokens_file_read(auth->config->tokens_file, &tokens, &count, reterr);
		if (err == DG_OK) {
			free(auth->file_tokens);
			auth->file_tokens = tokens;
			auth->file_count = count;
		}
	}
	if (err == DG_OK)
		err = build_table(auth, reterr);
	pthread_mutex_unlock(&auth->reloading);
	return err;
}

dg_err dg__auth_create(
	const dg__config *config, dg__store *store, dg__auth **ret_auth, dg_error *reterr)
{
	dg__auth *auth = calloc(1, sizeof(*auth));
	table *empty = calloc(1, sizeof(*empty));
	dg__auth_limit *limit = dg__auth_limit_create();
	if (!auth || !empty || !limit || pthread_mutex_init(&auth->lock, NULL) != 0) {
		free(auth);
		free(empty);
		dg__auth_limit_destroy(limit);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	pthread_mutex_init(&auth->reloading, NULL);
	atomic_init(&empty->references, 1);
	auth->config = config;
	auth->store = store;
	auth->current = empty;
	auth->limit = limit;
	atomic_store(&auth->checked_at_ns, dg__clock_ns());
	dg_err err = dg__auth_reload(auth, reterr);
	if (err == DG_OK)
		*ret_auth = auth;
	else
		dg__auth_destroy(auth);
	return err;
}

void dg__auth_destroy(dg__auth *auth)
{
	if (!auth)
		return;
	drop_table(auth->current);
	free(auth->file_tokens);
	dg__auth_limit_destroy(auth->limit);
	pthread_mutex_destroy(&auth->lock);
	pthread_mutex_destroy(&auth->reloading);
	free(auth);
}

static bool is_live(const dg__token *token, int64_t now_ms)
{
	return !token->revoked && (token->expires_at_ms == 0 || token->expires_at_ms > now_ms);
}

size_t dg__auth_live_tokens(dg__auth *auth)
{
	table *t = take_table(auth);
	size_t live = 0;
	int64_t now = dg__clock_unix_ms();
	for (size_t i = 0; i < t->count; i++)
		live += is_live(&t->tokens[i], now);
	drop_table(t);
	return live;
}

/* Another process may have made or revoked tokens; one thread looks, once a second. */
static void recheck(dg__auth *auth)
{
	uint64_t last = atomic_load(&auth->checked_at_ns), now = dg__clock_ns();
	if (now - last < RECHECK_NS ||
		!atomic_compare_exchange_strong(&auth->checked_at_ns, &last, now))
		return;
	int64_t version;
	dg_error why = { .code = DG_OK };
	pthread_mutex_lock(&auth->reloading);
	dg_err err = dg__store_token_version(auth->store, &version, &why);
	if (err == DG_OK && version != atomic_load(&auth->version))
		err = build_table(auth, &why);
	pthread_mutex_unlock(&auth->reloading);
	if (err != DG_OK)
		dg__log(DG__LOG_ERROR, "tokens cannot be read again, the last ones stay: %s",
			why.text);
}

/* Every token is compared, in constant time, so that time tells nothing of which one was near. */
static bool match(dg__auth *auth, const char *secret, dg__principal *ret_principal)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	SHA256((const unsigned char *)secret, strlen(secret), hash);
	table *t = take_table(auth);
	const dg__token *found = NULL;
	int64_t now = dg__clock_unix_ms();
	for (size_t i = 0; i < t->count; i++)
		if (CRYPTO_memcmp(hash, t->tokens[i].sha256, sizeof(hash)) == 0 &&
			is_live(&t->tokens[i], now))
			found = &t->tokens[i];
	if (found) {
		snprintf(ret_principal->name, sizeof(ret_principal->name), "token:%s", found->name);
		ret_principal->scopes = found->scopes;
	}
	drop_table(t);
	return found != NULL;
}

static dg_err admit_token(dg__auth *auth, const dg__credential *credential,
	dg__principal *ret_principal, dg_error *reterr)
{
	const char *value = credential->authorization;
	recheck(auth);
	bool bearer = strncasecmp(value, "Bearer ", 7) == 0;
	while (bearer && value[7] == ' ')
		value++;
	if (bearer && strlen(value + 7) <= 512 && match(auth, value + 7, ret_principal))
		return DG_OK;
	if (!dg__auth_limit_allows(auth->limit, credential->peer))
		return dg_error_set(reterr, DG_ERATE,
			"too many failed attempts from this address; wait a minute");
	return dg_error_set(reterr, DG_EUNAUTHORIZED,
		bearer ? "the token is unknown, expired or revoked"
		       : "expected Authorization: Bearer TOKEN");
}

dg_err dg__auth_admit(dg__auth *auth, const dg__credential *credential,
	dg__principal *ret_principal, dg_error *reterr)
{
	dg__principal who = { .scopes = 0 };
	if (credential->authorization && !auth->config->no_auth) {
		dg_err err = admit_token(auth, credential, &who, reterr);
		if (err != DG_OK)
			return err;
	} else if (auth->config->no_auth) {
		snprintf(who.name, sizeof(who.name), "anonymous");
		who.scopes = ALL_SCOPES;
	} else if (credential->certificate_name) {
		snprintf(who.name, sizeof(who.name), "cert:%.250s", credential->certificate_name);
		who.scopes = auth->config->client_scopes;
	} else if (credential->loopback && auth->config->loopback_scopes) {
		snprintf(who.name, sizeof(who.name), "loopback");
		who.scopes = auth->config->loopback_scopes;
	} else {
		return dg_error_set(reterr, DG_EUNAUTHORIZED, "a bearer token%s is needed",
			*auth->config->client_ca_file ? " or a client certificate" : "");
	}
	if (who.scopes & DG__SCOPE_ADMIN)
		who.scopes = ALL_SCOPES;
	*ret_principal = who;
	return DG_OK;
}
