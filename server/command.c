/* See command.h. */
#include "server/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int dg__command_complain(const char *text, const char *usage)
{
	fprintf(stderr, "devgated: %s\n%s", text, usage ? usage : "");
	return usage ? 2 : 1;
}

const char *dg__command_state_dir(const char *directory)
{
	if (!directory)
		directory = getenv("DEVGATE_STATE_DIR");
	if (!directory || !*directory)
		directory = getenv("STATE_DIRECTORY");
	if (!directory || !*directory)
		directory = "/var/lib/devgate";
	return directory;
}

void dg__command_time(int64_t unix_ms, char buf[32])
{
	time_t seconds = (time_t)(unix_ms / 1000);
	struct tm tm;
	if (!unix_ms || !gmtime_r(&seconds, &tm) || !strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(buf, 32, "-");
}
