/* devgate lease: who alone may use a gateway's device. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/cli/doc.h"
#include "client/cli/report.h"
#include "client/cli/select.h"

static const char *const verbs[] = { "take", "renew", "give", "show" };
enum { TAKE, RENEW, GIVE, SHOW, VERBS };

static dg_err read_ttl(const dg__args *args, uint32_t *ret_ttl_s, dg_error *reterr)
{
	uint64_t ttl_s = 0;
	const char *text = args->value[DG__OPT_TTL];
	if (!text)
		return DG_OK;
	dg_err err = dg__args_whole(text, "--ttl", DG_LEASE_TTL_MAX_S, &ttl_s, reterr);
	if (!err && ttl_s == 0)
		err = dg_error_set(reterr, DG_EINVALID, "--ttl is 0, expected 1 to %u seconds",
			DG_LEASE_TTL_MAX_S);
	if (!err)
		*ret_ttl_s = (uint32_t)ttl_s;
	return err;
}

static dg_err act(const dg__cli *cli, unsigned verb, dg_device device, uint32_t ttl_s,
	dg_lease *ret_lease, dg_error *reterr)
{
	const dg_call *call = &cli->call;
	if ((verb == RENEW || verb == GIVE) && !call->lease)
		return dg_error_set(reterr, DG_EINVALID,
			"DEVGATE_LEASE is not set; it names the lease that '%s' is about",
			verbs[verb]);
	switch (verb) {
	case TAKE:
		return dg_lease_take(device, ttl_s, call, ret_lease, reterr);
	case RENEW:
		return dg_lease_renew(device, ttl_s, call, ret_lease, reterr);
	case GIVE:
		return dg_lease_give(device, call, ret_lease, reterr);
	default:
		return dg_lease_read(device, call, ret_lease, reterr);
	}
}

/* A lease that is taken prints its id alone, so that DEVGATE_LEASE=$(…) works; what is told about
 * it then goes to standard error. */
static void show_lines(const dg__cli *cli, unsigned verb, const dg_lease *lease)
{
	FILE *stream = verb == TAKE ? stderr : stdout;
	char until[40];
	time_t seconds = (time_t)(lease->expires_at_ms / 1000);
	struct tm t;
	if (!gmtime_r(&seconds, &t) || strftime(until, sizeof(until), "%FT%TZ", &t) == 0)
		snprintf(until, sizeof(until), "?");
	if (verb == TAKE) {
		dg__screen_put(cli->screen, stdout, lease->id);
		putchar('\n');
		fflush(stdout);
	}
	dg__screen_put(cli->screen, stream, *lease->device ? lease->device : lease->hardware);
	fputs(verb == GIVE ? " was leased by " : " is leased by ", stream);
	dg__screen_put(cli->screen, stream, lease->holder);
	fprintf(stream, " until %s, fencing token %" PRIu64 "\n", until, lease->fencing_token);
}

static int usage_error(const dg__cli *cli, const char *word)
{
	dg_error error;
	dg_error_set(&error, DG_EINVALID, "'%.60s' is not take, renew, give or show", word);
	return dg__report_usage(cli, dg__command_find("lease"), &error);
}

int dg__cmd_lease(const dg__cli *cli)
{
	const char *word = cli->args->operands[0];
	dg__selected selected;
	dg_lease lease;
	dg_error error;
	uint32_t ttl_s = 0;
	unsigned verb = 0;
	while (verb < VERBS && strcmp(word, verbs[verb]) != 0)
		verb++;
	if (verb == VERBS)
		return usage_error(cli, word);
	if (read_ttl(cli->args, &ttl_s, &error) != DG_OK ||
		dg__select_device(cli, cli->args->operands[1], &selected, &error) != DG_OK ||
		act(cli, verb, selected.device, ttl_s, &lease, &error) != DG_OK)
		return dg__report_error(cli, &error);
	if (dg__args_has(cli->args, DG__OPT_JSON))
		return dg__doc_show_take(cli, dg_json_lease(&lease));
	show_lines(cli, verb, &lease);
	return DG__EXIT_OK;
}
