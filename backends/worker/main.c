/* devgate-worker: see devgate-worker(8). */
#include "backends/core/registry.h"
#include "backends/worker/host.h"

int main(int argc, char **argv)
{
	size_t count;
	const dg__backend *const *list = dg__registry_all(&count);
	return dg__host_main(argc, argv, list, count);
}
