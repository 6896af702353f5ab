/* `devgated token`: edits the state of a gateway, running or stopped. See command.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <devgate/json.h>

#include "backends/core/clock.h"
#include "server/auth.h"
#include "server/command.h"
#include "server/tokens_file.h"

#define SECRET_MAX 64

typedef struct words {
	const char *verb, *name, *scopes, *expires, *state_dir;
	bool json;
} words;

static const char usage[] = "usage: devgated token create --name NAME --scopes LIST [--expires "
			    "30d|12h|90m] [--state-dir DIR] "
			    "[--json]\n"
			    "       devgated token list [--state-dir DIR] [--json]\n"
			    "       devgated token revoke NAME [--state-dir DIR]\n";

static int complain(const char *text, bool with_usage)
{
	return dg__command_complain(text, with_usage ? usage : NULL);
}

static bool read_words(int argc, char **argv, words *w)
{
	const struct {
		const char *flag;
		const char **where;
	} flags[] = { { "--name", &w->name }, { "--scopes", &w->scopes },
		{ "--expires", &w->expires }, { "--state-dir", &w->state_dir } };
	for (int i = 1; i < argc; i++) {
		size_t f = 0;
		while (f < 4 && strcmp(argv[i], flags[f].flag) != 0)
			f++;
		if (f < 4 && i + 1 < argc)
			*flags[f].where = argv[++i];
		else if (strcmp(argv[i], "--json") == 0)
			w->json = true;
		else if (argv[i][0] == '-' || (w->verb && w->name))
			return false;
		else if (!w->verb)
			w->verb = argv[i];
		else
			w->name = argv[i];
	}
	return w->verb != NULL;
}

/* "30d", "12h", "90m"; 0 where it is none or beyond ten years. */
static int64_t read_span_ms(const char *text)
{
	static const struct {
		char unit;
		int64_t ms;
	} units[] = { { 'd', 86400000 }, { 'h', 3600000 }, { 'm', 60000 } };
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || n == 0 || n > 5256000 || !*end || end[1])
		return 0;
	for (size_t i = 0; i < 3; i++)
		if (*end == units[i].unit && (int64_t)n <= 3650LL * 86400000 / units[i].ms)
			return (int64_t)n * units[i].ms;
	return 0;
}

/* "dgt_" and 32 random bytes in base64url (RFC 4648, section 5). */
static bool make_secret(char secret[SECRET_MAX])
{
	unsigned char bytes[32], text[64];
	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	EVP_EncodeBlock(text, bytes, sizeof(bytes));
	snprintf(secret, SECRET_MAX, "dgt_%.43s", (const char *)text);
	for (char *c = secret + 4; *c; c++)
		*c = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return true;
}

static int create(dg__store *store, const words *w)
{
	dg__token token = { .scopes = 0 };
	dg_error why;
	char secret[SECRET_MAX];
	int64_t span = w->expires ? read_span_ms(w->expires) : 0;
	if (!w->name || !dg__token_name_ok(w->name))
		return complain("--name needs 1 to 63 letters, digits, and ._-", true);
	if (!w->scopes || dg__scopes_parse(w->scopes, &token.scopes, &why) != DG_OK ||
		!token.scopes)
		return complain(w->scopes && *w->scopes ? why.text : "--scopes needs a list", true);
	if (w->expires && !span)
		return complain(
			"--expires needs a span like 30d, 12h or 90m, of ten years at most", true);
	if (!make_secret(secret))
		return complain("no random bytes", false);
	snprintf(token.name, sizeof(token.name), "%s", w->name);
	SHA256((const unsigned char *)secret, strlen(secret), token.sha256);
	token.created_at_ms = dg__clock_unix_ms();
	token.expires_at_ms = span ? token.created_at_ms + span : 0;
	if (dg__store_add_token(store, &token, &why) != DG_OK)
		return complain(why.text, false);
	char *name = w->json ? dg_json_string(token.name) : NULL;
	if (name)
		printf("{\"name\":%s,\"token\":\"%s\"}\n", name, secret);
	else
		printf("%s\n", secret);
	dg_free(name);
	OPENSSL_cleanse(secret, sizeof(secret));
	return 0;
}

static const char *state_of(const dg__token *token)
{
	if (token->revoked)
		return "revoked";
	bool over = token->expires_at_ms && token->expires_at_ms <= dg__clock_unix_ms();
	return over ? "expired" : "live";
}

static int list(dg__store *store, bool json)
{
	dg__token *tokens;
	size_t count;
	dg_error why;
	if (dg__store_tokens(store, &tokens, &count, &why) != DG_OK)
		return complain(why.text, false);
	if (json)
		printf("{\"tokens\":[");
	else if (count)
		printf("%-24s %-28s %-8s %-21s %s\n", "name", "scopes", "state", "created",
			"expires");
	for (size_t i = 0; i < count; i++) {
		char scopes[64], created[32], expires[32];
		dg__scopes_format(tokens[i].scopes, scopes, sizeof(scopes));
		dg__command_time(tokens[i].created_at_ms, created);
		dg__command_time(tokens[i].expires_at_ms, expires);
		if (!json) {
			printf("%-24s %-28s %-8s %-21s %s\n", tokens[i].name, scopes,
				state_of(&tokens[i]), created, expires);
			continue;
		}
		const char *quote = tokens[i].expires_at_ms ? "\"" : "";
		printf("%s{\"name\":\"%s\",\"scopes\":\"%s\",\"state\":\"%s\",\"created_at\":\"%"
		       "s\","
		       "\"expires_at\":%s%s%s}",
			i ? "," : "", tokens[i].name, scopes, state_of(&tokens[i]), created, quote,
			tokens[i].expires_at_ms ? expires : "null", quote);
	}
	if (json)
		printf("]}\n");
	free(tokens);
	return 0;
}

static int revoke(dg__store *store, const char *name)
{
	dg_error why;
	if (!name)
		return complain("revoke needs the name of a token", true);
	if (dg__store_revoke_token(store, name, &why) != DG_OK)
		return complain(why.text, false);
	return 0;
}

int dg__token_command(int argc, char **argv)
{
	words w = { .verb = NULL };
	if (!read_words(argc, argv, &w))
		return complain("expected create, list or revoke", true);
	bool known = strcmp(w.verb, "create") == 0 || strcmp(w.verb, "list") == 0 ||
		     strcmp(w.verb, "revoke") == 0;
	if (!known)
		return complain("expected create, list or revoke", true);
	dg__store *store;
	dg_error why;
	if (dg__store_open(dg__command_state_dir(w.state_dir), &store, &why) != DG_OK)
		return complain(why.text, false);
	int status = *w.verb == 'c'   ? create(store, &w)
		     : *w.verb == 'l' ? list(store, w.json)
				      : revoke(store, w.name);
	dg__store_close(store);
	return status;
}
