/* devgate health: whether a gateway is alive and ready; also for the checks of containers. */
#include "client/cli/doc.h"
#include "client/cli/report.h"
#include "client/cli/units.h"

static int show_document(const dg__cli *cli, const char *url, const dg_gateway_health *health)
{
	dg__doc doc = { 0 };
	dg__doc_add(&doc, "{\"url\":");
	dg__doc_string(&doc, url, false);
	dg__doc_add(&doc,
		",\"alive\":%s,\"ready\":%s,\"version\":", health->alive ? "true" : "false",
		health->ready ? "true" : "false");
	dg__doc_string(&doc, health->version, true);
	dg__doc_add(&doc, ",\"host\":");
	dg__doc_string(&doc, health->host, true);
	dg__doc_add(&doc, ",\"seconds\":%.6f}", health->seconds);
	return dg__doc_show(cli, &doc);
}

static void show_lines(const dg__cli *cli, const dg_gateway_health *health)
{
	char text[64];
	printf("%s, %s, %s", health->alive ? "alive" : "not alive",
		health->ready ? "ready" : "not ready",
		dg__units_seconds(health->seconds, text, sizeof(text)));
	if (health->version[0]) {
		fputs(", version ", stdout);
		dg__screen_put(cli->screen, stdout, health->version);
	}
	if (health->host[0]) {
		fputs(", host ", stdout);
		dg__screen_put(cli->screen, stdout, health->host);
	}
	putchar('\n');
}

int dg__cmd_health(const dg__cli *cli)
{
	dg_gateway_health health;
	dg_error error;
	int status = DG__EXIT_OK;
	const char *url = cli->args->operands[0];
	if (dg_gateway_health_read(url, &cli->call, &health, &error) != DG_OK)
		return dg__report_error(cli, &error);
	if (dg__args_has(cli->args, DG__OPT_JSON))
		status = show_document(cli, url, &health);
	else
		show_lines(cli, &health);
	return health.alive && health.ready ? status : DG__EXIT_FAILED;
}
