/* Rooflines. See throughput.h. */
#include <devgate/throughput.h>

#include <math.h>

const char *dg_bound_name(dg_bound bound)
{
	return bound == DG_BOUND_COMPUTE ? "compute" : bound == DG_BOUND_MEMORY ? "memory" : "none";
}

static bool is_amount(double number)
{
	return isfinite(number) && number >= 0;
}

static bool is_peak(double number)
{
	return isfinite(number) && number > 0;
}

static const char *wrong_field(const dg_roofline_input *input)
{
	if (!is_amount(input->flops))
		return "flops must be finite and not below 0";
	if (!is_amount(input->bytes))
		return "bytes must be finite and not below 0";
	if (!is_peak(input->flops_per_s))
		return "the peak of arithmetic must be finite and above 0";
	if (!is_peak(input->bytes_per_s))
		return "the peak of memory must be finite and above 0";
	if (!is_amount(input->seconds))
		return "seconds must be finite and not below 0";
	return NULL;
}

dg_err dg_roofline_compute(
	const dg_roofline_input *input, dg_roofline *ret_roofline, dg_error *reterr)
{
	const char *wrong = wrong_field(input);
	if (wrong)
		return dg_error_set(reterr, DG_EINVALID, "%s", wrong);
	dg_roofline r = { .compute_seconds = input->flops / input->flops_per_s,
		.memory_seconds = input->bytes / input->bytes_per_s };
	r.seconds = fmax(r.compute_seconds, r.memory_seconds);
	if (r.seconds > 0)
		r.bound =
			r.compute_seconds >= r.memory_seconds ? DG_BOUND_COMPUTE : DG_BOUND_MEMORY;
	if (input->seconds > 0)
		r.fraction = r.seconds / input->seconds;
	if (!isfinite(r.seconds) || !isfinite(r.fraction))
		return dg_error_set(reterr, DG_EINVALID,
			"the amounts are too large for these peaks or seconds");
	*ret_roofline = r;
	return DG_OK;
}
