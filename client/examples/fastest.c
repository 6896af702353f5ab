/* List the devices of this machine and of the gateways named as arguments; pick the fastest. */
#include <devgate/devgate.h>

#include <stdio.h>

int main(int argc, char **argv)
{
	dg_enumerate_request request = { .gateways = (const char *const *)argv + 1,
		.gateway_count = argc > 1 ? (size_t)argc - 1 : 0 };
	dg_key key = { .mode = DG_MODE_COMPUTE, .dtype = DG_F32 };
	dg_device_list *list;
	dg_error error = { 0 };
	char name[DG_DEVICE_TEXT_MAX], fastest[DG_DEVICE_TEXT_MAX] = "none", rate[DG_RATE_TEXT_MAX];
	double most = 0;
	if (dg_enumerate(&request, NULL, &list, &error) != DG_OK)
		return fprintf(stderr, "%s\n", error.text), 1;
	for (size_t i = 0; i < list->count; i++) {
		dg_value value = { 0 };
		double per_s = 0;
		size_t count;
		dg_err err = dg_performance_stats(
			list->devices[i].device, &key, 1, NULL, &value, &count, &error);
		dg_device_format(list->devices[i].device, name, sizeof(name));
		dg_value_format(&value, rate, sizeof(rate));
		printf("%-32s %-40s %s\n", name, list->devices[i].info.name,
			err ? error.text : rate);
		if (!err && dg_value_rate(&value, &per_s) && per_s > most) {
			most = per_s;
			snprintf(fastest, sizeof(fastest), "%s", name);
		}
	}
	printf("fastest: %s\n", fastest);
	dg_device_list_free(list);
	return most > 0 ? 0 : 1;
}
