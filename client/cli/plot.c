/* See plot.h. */
#include "client/cli/plot.h"

#include <string.h>

static void append(char *buf, size_t size, const char *text)
{
	size_t used = strlen(buf), length = strlen(text);
	if (used + length < size)
		memcpy(buf + used, text, length + 1);
}

const char *dg__plot_bar(
	const dg__screen *screen, double fraction, size_t columns, char *buf, size_t size)
{
	static const char *const eighths[] = { "", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b",
		"\u258a", "\u2589" };
	double clamped = fraction > 1 ? 1 : fraction > 0 ? fraction : 0;
	size_t units = screen->utf8 ? 8 : 1;
	size_t length = (size_t)(clamped * (double)(columns * units) + 0.5);
	/* Something above nothing is seen. */
	if (length == 0 && clamped > 0)
		length = 1;
	buf[0] = '\0';
	for (size_t i = 0; i < length / units; i++)
		append(buf, size, screen->utf8 ? "\u2588" : "#");
	if (screen->utf8)
		append(buf, size, eighths[length % units]);
	return buf;
}

const char *dg__plot_scale(const char *full, size_t columns, char *buf, size_t size)
{
	size_t length = strlen(full);
	int blanks = columns > length + 2 ? (int)(columns - length - 1) : 1;
	snprintf(buf, size, "0%*s%s", blanks, "", full);
	return buf;
}
