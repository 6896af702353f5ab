/* Rates of values, and their texts. See throughput.h. */
#include <devgate/throughput.h>

#include <math.h>

#include "api/lex.h"

#define ELEMENT_BYTES 4.0

const char *dg_status_name(dg_status status)
{
	static const char *const names[] = { "ok", "unsupported", "failed", "refused" };
	return (unsigned)status <= DG_STATUS_REFUSED ? names[status] : "failed";
}

bool dg_value_rate(const dg_value *value, double *ret_per_s)
{
	if (value->duration_ns == 0)
		return false;
	*ret_per_s = (double)value->ops_count * 1e9 / (double)value->duration_ns;
	return true;
}

bool dg_value_bytes_rate(const dg_value *value, double *ret_bytes_per_s)
{
	double per_s;
	if (!dg_key_is_memory(&value->key) || !dg_value_rate(value, &per_s))
		return false;
	*ret_bytes_per_s = per_s * ELEMENT_BYTES;
	return true;
}

/* Written digit by digit, because printf's decimal point is the locale's. */
static void put_scaled(dg__out *out, double number, const char *prefix, const char *unit)
{
	char fraction[4];
	uint64_t scaled = (uint64_t)(number * 10000.0 + 0.5);
	unsigned rest = (unsigned)(scaled % 10000);
	for (size_t i = sizeof(fraction); i-- > 0; rest /= 10)
		fraction[i] = (char)('0' + rest % 10);
	dg__put_number(out, scaled / 10000);
	dg__put(out, ".");
	dg__put_bytes(out, fraction, sizeof(fraction));
	dg__put(out, " ");
	dg__put(out, prefix);
	dg__put(out, unit);
}

size_t dg_rate_format(double per_s, const char *unit, char *buf, size_t size)
{
	static const struct {
		double factor;
		const char *prefix;
	} steps[] = { { 1e-12, "p" }, { 1e-9, "n" }, { 1e-6, "u" }, { 1e-3, "m" }, { 1, "" },
		{ 1e3, "k" }, { 1e6, "M" }, { 1e9, "G" }, { 1e12, "T" }, { 1e15, "P" },
		{ 1e18, "E" } };
	const size_t last = sizeof(steps) / sizeof(steps[0]) - 1;
	dg__out out = { buf, size, 0 };
	size_t i = 0;
	/* Nothing that is measured comes near the upper limit, and its digits would be noise. */
	if (!isfinite(per_s) || per_s < 0 || per_s >= 1e30) {
		dg__put(&out, "-");
		return dg__put_end(&out);
	}
	/* A number that rounds to 1000 belongs to the next prefix. */
	while (i < last && per_s / steps[i].factor >= 999.99995)
		i++;
	if (per_s == 0)
		i = 4;
	put_scaled(&out, per_s / steps[i].factor, steps[i].prefix, unit);
	return dg__put_end(&out);
}

size_t dg_value_format(const dg_value *value, char *buf, size_t size)
{
	double rate = NAN;
	if (value->status != DG_STATUS_OK || !dg_value_rate(value, &rate))
		return dg_rate_format(NAN, "", buf, size);
	if (value->key.mode == DG_MODE_LAUNCH)
		return dg_rate_format(rate > 0 ? 1.0 / rate : NAN, "s", buf, size);
	if (dg_value_bytes_rate(value, &rate))
		return dg_rate_format(rate, "bytes/s", buf, size);
	return dg_rate_format(rate, "OPS/s", buf, size);
}
