/* Memory curves. See throughput.h. */
#include <devgate/throughput.h>

#include <math.h>

size_t dg_curve_keys(dg_access access, dg_key ret_keys[DG_CURVE_MAX])
{
	size_t count = 0;
	for (uint64_t bytes = DG_CURVE_MIN_BYTES; bytes <= DG_CURVE_MAX_BYTES; bytes *= 2)
		ret_keys[count++] =
			(dg_key){ .mode = DG_MODE_WORKING_SET, .access = access, .bytes = bytes };
	return count;
}

/* Keep the points ordered; of two with equal bytes the later one counts. */
static void insert(dg_curve *curve, dg_curve_point point)
{
	size_t at = curve->count;
	while (at > 0 && curve->points[at - 1].bytes > point.bytes)
		at--;
	if (at > 0 && curve->points[at - 1].bytes == point.bytes) {
		curve->points[at - 1] = point;
		return;
	}
	if (curve->count == DG_CURVE_MAX)
		return;
	for (size_t i = curve->count; i > at; i--)
		curve->points[i] = curve->points[i - 1];
	curve->points[at] = point;
	curve->count++;
}

void dg_curve_from_values(
	dg_access access, const dg_value *values, size_t count, dg_curve *ret_curve)
{
	dg_curve curve = { .access = access };
	for (size_t i = 0; i < count; i++) {
		const dg_value *value = &values[i];
		double rate;
		if (value->key.mode != DG_MODE_WORKING_SET || value->key.access != access ||
			value->status != DG_STATUS_OK || !dg_value_bytes_rate(value, &rate) ||
			rate <= 0)
			continue;
		insert(&curve, (dg_curve_point){ value->key.bytes, rate });
	}
	*ret_curve = curve;
}

bool dg_curve_ceiling(const dg_curve *curve, uint64_t bytes, double *ret_bytes_per_s)
{
	size_t above = 0;
	if (curve->count == 0)
		return false;
	while (above < curve->count && curve->points[above].bytes < bytes)
		above++;
	if (above == 0) {
		*ret_bytes_per_s = curve->points[0].bytes_per_s;
	} else if (above == curve->count) {
		*ret_bytes_per_s = curve->points[curve->count - 1].bytes_per_s;
	} else {
		const dg_curve_point *a = &curve->points[above - 1], *b = &curve->points[above];
		double from = log2((double)a->bytes), to = log2((double)b->bytes);
		double share = (log2((double)bytes) - from) / (to - from);
		/* A curve that came from elsewhere may be out of order. */
		if (!(share >= 0 && share <= 1))
			share = 1;
		*ret_bytes_per_s = a->bytes_per_s + share * (b->bytes_per_s - a->bytes_per_s);
	}
	return true;
}
