/*
 * A driver library that lacks most of its calls, as one that is far too old does.
 */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int cuInit(unsigned flags)
{
	return (int)flags;
}

int hipInit(unsigned flags)
{
	return (int)flags;
}
