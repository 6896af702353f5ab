/*
 * Log lines on standard error: "level message" (systemd's <N> prefix under JOURNAL_STREAM).
 */
#ifndef DEVGATE_SERVER_LOG_H
#define DEVGATE_SERVER_LOG_H

#include <devgate/error.h>

typedef enum dg__log_level {
	DG__LOG_ERROR,
	DG__LOG_WARNING,
	DG__LOG_INFO,
	DG__LOG_DEBUG
} dg__log_level;

void dg__log_set_level(dg__log_level level);
/** One line, at most 1024 bytes; control characters are escaped. Never given a secret. Threads:
 * safe. */
void dg__log(dg__log_level level, const char *format, ...) DG_PRINTF(2, 3);

#endif
