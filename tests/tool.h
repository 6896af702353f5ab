/*
 * Running the built command-line tool as a user would, in an environment of its own.
 */
#ifndef DEVGATE_TESTS_TOOL_H
#define DEVGATE_TESTS_TOOL_H

#include <stdbool.h>
#include <stddef.h>

/** What came of a run. Owned; dg_test_tool_finish(). */
typedef struct dg_test_tool {
	int status; /**< exit status; 128 + signal where one ended it; -1: killed at its deadline */
	char *out, *err; /**< standard output and error; on a terminal both are in out */
	long long elapsed_ms;
} dg_test_tool;

typedef struct dg_test_tool_request {
	const char *const *args; /**< after the program's name; ends with NULL */
	const char *const *env; /**< "NAME=value" besides PATH; ends with NULL; NULL: none */
	bool terminal; /**< both streams are a terminal of 80 columns */
	int out_fd; /**< where standard output goes instead; 0: it is gathered */
	unsigned interrupt_ms; /**< send SIGINT after so long; 0: never */
	unsigned timeout_ms; /**< 0: 30 s */
} dg_test_tool_request;

/** Run $DG_BUILD/bin/devgate (build/release where unset). Fails the case where it cannot start. */
dg_test_tool dg_test_tool_run(const dg_test_tool_request *request);
void dg_test_tool_finish(dg_test_tool *tool);

/** Path of a built file below $DG_BUILD; static buffer of the calling thread. */
const char *dg_test_built(const char *relative);

#endif
