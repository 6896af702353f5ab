/* See log.h. */
#include "server/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int threshold = DG__LOG_INFO;

void dg__log_set_level(dg__log_level level)
{
	atomic_store(&threshold, (int)level);
}

/* A line stays one line, whatever a driver or a client put into it. */
static size_t escape(const char *text, char *out, size_t size)
{
	size_t n = 0;
	for (; *text && n + 5 < size; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x20 || c == 0x7f)
			n += (size_t)snprintf(out + n, size - n, "\\x%02x", c);
		else
			out[n++] = *text;
	}
	return n;
}

void dg__log(dg__log_level level, const char *format, ...)
{
	static const struct {
		const char *word;
		const char *journal;
	} levels[] = { { "error", "<3>" }, { "warning", "<4>" }, { "info", "<6>" },
		{ "debug", "<7>" } };
	if ((int)level > atomic_load(&threshold))
		return;
	char text[900], line[1024];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	const char *prefix = getenv("JOURNAL_STREAM") ? levels[level].journal : "";
	int n = snprintf(line, sizeof(line), "%s%s ", prefix, levels[level].word);
	size_t length = (size_t)n + escape(text, line + n, sizeof(line) - (size_t)n - 1);
	line[length++] = '\n';
	/* One write, so that lines of several threads do not mix; a closed standard error is no
	 * fault. */
	ssize_t written = write(STDERR_FILENO, line, length);
	(void)written;
}
