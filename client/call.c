/* See call.h. */
#include "client/call.h"

#include <string.h>
#include <time.h>

uint64_t dg__now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

/* It goes into a header: nothing that could end one. */
static bool lease_is_plain(const char *id)
{
	size_t n = strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	return n > 0 && n < sizeof(((dg_lease *)0)->id) && id[n] == '\0';
}

dg_err dg__call_begin(
	const dg_call *options, uint32_t default_ms, dg__call *ret_call, dg_error *reterr)
{
	const uint32_t known = DG_LOCAL_IN_PROCESS | DG_REFRESH | DG_SUSTAINED;
	if (options && options->size != sizeof(*options))
		return dg_error_set(reterr, DG_EINVALID,
			"the size of the call's options is %u, expected %zu: make them with "
			"DG_CALL_INIT",
			(unsigned)options->size, sizeof(*options));
	if (options && options->flags & ~known)
		return dg_error_set(reterr, DG_EINVALID, "the call's flags 0x%x are not known",
			(unsigned)options->flags);
	if (options && options->lease && !lease_is_plain(options->lease))
		return dg_error_set(reterr, DG_EINVALID,
			"the call's lease id is not one: expected 1 to 39 letters and digits");
	uint32_t timeout_ms = options && options->timeout_ms ? options->timeout_ms : default_ms;
	ret_call->options = options;
	ret_call->flags = options ? options->flags : 0;
	ret_call->deadline_ms = dg__now_ms() + timeout_ms;
	return DG_OK;
}

uint32_t dg__call_left_ms(const dg__call *call)
{
	uint64_t now = dg__now_ms();
	return now >= call->deadline_ms ? 0 : (uint32_t)(call->deadline_ms - now);
}

bool dg__call_progress(const dg__call *call, uint32_t done, uint32_t total, const char *key)
{
	if (!call->options || !call->options->progress)
		return true;
	return call->options->progress(done, total, key, call->options->user);
}

const char *dg__call_lease(const dg__call *call)
{
	return call->options ? call->options->lease : NULL;
}
