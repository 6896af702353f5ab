/*
 * The CPU backend: every kernel in every shape, the thread pool, and what it may use of a machine.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/core/clock.h"
#include "backends/core/engine.h"
#include "backends/core/expect.h"
#include "backends/core/hostid.h"
#include "backends/core/registry.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/topology.h"
#include "tests/test.h"

#ifdef __linux__
#include <sched.h>
#endif

#define MS ((uint64_t)1000000)

static const dg__stop never;

static const dg__backend *cpu(void)
{
	size_t count;
	const dg__backend *const *all = dg__registry_all(&count);
	return dg__backend_find(all, count, "cpu");
}

static dg__dev *open_cpu(void)
{
	dg__dev *dev = NULL;
	CU_ASSERT_EQUAL_FATAL(cpu()->open(cpu(), 0, &dev, NULL), DG_OK);
	return dev;
}

static dg__buf *make_buf(dg__dev *dev, uint64_t size)
{
	dg__buf *buf = NULL;
	CU_ASSERT_EQUAL_FATAL(cpu()->buf_create(dev, size, &never, &buf, NULL), DG_OK);
	return buf;
}

typedef void with_kernel(
	dg__dev *dev, const dg__shape *shape, dg__kernel *kernel, dg__kernel_id id, dg_dtype dtype);

static void for_each_shape(dg__dev *dev, dg__kernel_id id, dg_dtype dtype, with_kernel *use)
{
	dg__shape shapes[DG__SHAPES_PER_KERNEL];
	size_t count = 0;
	dg__ask ask = { .kernel = id, .window_bytes = 4096 };
	dg_error error = { 0 };
	dg_err err = cpu()->shapes(dev, &ask, shapes, &count, &error);
	if (err == DG_ENOTSUP) {
		CU_ASSERT(error.text[0] != '\0');
		return;
	}
	CU_ASSERT_EQUAL_FATAL(err, DG_OK);
	CU_ASSERT(count > 0);
	for (size_t i = 0; i < count; i++) {
		dg__kernel *kernel = NULL;
		CU_ASSERT_EQUAL_FATAL(
			cpu()->kernel_create(dev, id, &shapes[i], &kernel, NULL), DG_OK);
		use(dev, &shapes[i], kernel, id, dtype);
		cpu()->kernel_destroy(dev, kernel);
	}
}

/* Arithmetic. */

static bool items_as_expected(dg__dev *dev, dg__buf *state, const dg__shape *shape, dg_dtype dtype,
	dg__purpose purpose, const dg__operands *o, uint64_t steps)
{
	size_t bytes = (size_t)shape->items * o->item_bytes;
	unsigned char *items = malloc(bytes ? bytes : 1);
	bool good = items && cpu()->buf_read(dev, state, 0, items, bytes, NULL) == DG_OK;
	for (uint32_t i = 0; good && i < shape->items; i++) {
		uint64_t got = 0;
		memcpy(&got, items + (size_t)i * o->item_bytes, o->item_bytes);
		good = got == dg__expect_item(shape->step, dtype, purpose, o, i % DG__SEEDS, steps);
	}
	free(items);
	return good;
}

static void run_arithmetic(
	dg__dev *dev, const dg__shape *shape, dg__kernel *kernel, dg__kernel_id id, dg_dtype dtype)
{
	static const uint64_t counts[] = { 1, 4, 7, 100003 };
	(void)id;
	for (size_t c = 0; c < 8; c++) {
		dg__purpose purpose = c < 4 ? DG__TO_PROVE : DG__TO_TIME;
		dg__operands o;
		dg__timing timing = { 0 };
		CU_ASSERT_EQUAL_FATAL(
			dg__expect_operands(shape->step, dtype, purpose, &o, NULL), DG_OK);
		uint64_t steps = counts[c % 4] < o.max_steps ? counts[c % 4] : o.max_steps;
		dg__buf *state = make_buf(dev, (uint64_t)shape->items * o.item_bytes);
		bool seeded = true;
		for (uint32_t i = 0; i < shape->items; i++)
			seeded = seeded &&
				 cpu()->buf_write(dev, state, (uint64_t)i * o.item_bytes,
					 &o.seeds[i % DG__SEEDS], o.item_bytes, NULL) == DG_OK;
		CU_ASSERT_TRUE_FATAL(seeded);
		dg__launch l = { .state = state, .steps = steps, .a = o.a, .b = o.b, .repeat = 1 };
		CU_ASSERT_EQUAL(cpu()->time(dev, kernel, &l, &never, &timing, NULL), DG_OK);
		CU_ASSERT(timing.host_ns > 0);
		if (!items_as_expected(dev, state, shape, dtype, purpose, &o, steps)) {
			printf("%s %s\n", dg_dtype_text(dtype), shape->text);
			CU_FAIL("an item is not as expected");
		}
		cpu()->buf_destroy(dev, state);
	}
}

static void test_kernels__arithmetic_is_right_in_every_shape(void)
{
	static const struct {
		dg__kernel_id id;
		dg_dtype dtype;
	} rows[] = {
#define DG_KERNEL(NAME, name, dtype) { DG__KERNEL_##NAME, DG_##dtype },
#include "backends/core/kernels.def"
#undef DG_KERNEL
	};
	dg__dev *dev = open_cpu();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].dtype != DG_DTYPE_NONE)
			for_each_shape(dev, rows[i].id, rows[i].dtype, run_arithmetic);
	cpu()->close(dev);
}

/* Memory. */

#define ROOM (1u << 20)
#define BARRIER 0x5a5a5a5au

typedef struct memory_case {
	uint64_t window, stride, windows, first, passes;
} memory_case;

static const memory_case memory_cases[] = {
	{ 4, 256, 1, 0, 1 },
	{ 60, 256, 1, 0, 3 },
	{ 64, 256, 7, 5, 7 },
	{ 1000, 1024, 9, 2, 5 },
	{ 4096 + 12, 4096 + 256, 16, 15, 16 },
	{ 65536, 65536, 1, 0, 40 },
	{ (256u << 10) + 4, (256u << 10) + 256, 3, 1, 3 },
	{ (900u << 10) + 20, 1u << 20, 1, 0, 2 },
};

static uint32_t source_word(uint64_t i)
{
	return (uint32_t)(i * 2654435761u + 12345);
}

/* Static, because fresh pages for each case would take most of the time. */
static uint32_t from[ROOM / 4], to[ROOM / 4], got[ROOM / 4];

static void fill_words(void)
{
	for (uint64_t i = 0; i < ROOM / 4; i++) {
		from[i] = source_word(i);
		to[i] = BARRIER;
	}
}

/* What the whole of dst, or the sum of what was read, must be. */
static uint32_t apply(
	const memory_case *c, dg__kernel_id id, const uint32_t *src, uint32_t *dst, uint32_t value)
{
	uint32_t sum = 0;
	for (uint64_t p = 0; p < c->passes; p++) {
		uint64_t at = (c->first + p) % c->windows * c->stride / 4;
		for (uint64_t i = at; i < at + c->window / 4; i++) {
			sum += src[i];
			if (id == DG__KERNEL_COPY)
				dst[i] = src[i];
			else if (id == DG__KERNEL_WRITE)
				dst[i] = (uint32_t)((value + p) & 0xff) * 0x01010101u;
		}
	}
	return sum;
}

static bool run_memory_case(dg__dev *dev, const dg__shape *shape, dg__kernel *kernel,
	dg__kernel_id id, const memory_case *c, dg__buf *src, dg__buf *dst)
{
	dg__buf *state = make_buf(dev, (uint64_t)shape->items * 4);
	dg__timing timing = { 0 };
	uint32_t sums[1024] = { 0 }, sum = 0;
	CU_ASSERT_FATAL(shape->items <= 1024);
	fill_words();
	bool good = cpu()->buf_write(dev, dst, 0, to, ROOM, NULL) == DG_OK &&
		    cpu()->buf_write(dev, state, 0, sums, shape->items * 4, NULL) == DG_OK;
	dg__launch l = { .state = state,
		.src = src,
		.dst = dst,
		.window_bytes = c->window,
		.stride_bytes = c->stride,
		.windows = c->windows,
		.first = c->first,
		.passes = c->passes,
		.value = 250,
		.repeat = 2 };
	good = good && cpu()->time(dev, kernel, &l, &never, &timing, NULL) == DG_OK;
	uint32_t expected = 2 * apply(c, id, from, to, 250);
	good = good && cpu()->buf_read(dev, dst, 0, got, ROOM, NULL) == DG_OK &&
	       !memcmp(got, to, ROOM) &&
	       cpu()->buf_read(dev, state, 0, sums, shape->items * 4, NULL) == DG_OK;
	for (uint32_t i = 0; i < shape->items; i++)
		sum += sums[i];
	good = good && (id != DG__KERNEL_READ || sum == expected);
	cpu()->buf_destroy(dev, state);
	return good;
}

static void run_memory(
	dg__dev *dev, const dg__shape *shape, dg__kernel *kernel, dg__kernel_id id, dg_dtype dtype)
{
	dg__buf *src = make_buf(dev, ROOM), *dst = make_buf(dev, ROOM);
	(void)dtype;
	fill_words();
	CU_ASSERT_EQUAL(cpu()->buf_write(dev, src, 0, from, ROOM, NULL), DG_OK);
	for (size_t i = 0; i < sizeof(memory_cases) / sizeof(memory_cases[0]); i++)
		if (!run_memory_case(dev, shape, kernel, id, &memory_cases[i], src, dst)) {
			printf("%s window %llu\n", shape->text,
				(unsigned long long)memory_cases[i].window);
			CU_FAIL("memory is not as expected");
		}
	cpu()->buf_destroy(dev, src);
	cpu()->buf_destroy(dev, dst);
}

static void test_kernels__memory_is_right_in_every_shape(void)
{
	dg__dev *dev = open_cpu();
	for_each_shape(dev, DG__KERNEL_READ, DG_DTYPE_NONE, run_memory);
	for_each_shape(dev, DG__KERNEL_WRITE, DG_DTYPE_NONE, run_memory);
	for_each_shape(dev, DG__KERNEL_COPY, DG_DTYPE_NONE, run_memory);
	cpu()->close(dev);
}

static void run_empty(
	dg__dev *dev, const dg__shape *shape, dg__kernel *kernel, dg__kernel_id id, dg_dtype dtype)
{
	dg__buf *state = make_buf(dev, 4);
	uint32_t count = 5;
	dg__timing timing = { 0 };
	(void)shape;
	(void)id;
	(void)dtype;
	CU_ASSERT_EQUAL(cpu()->buf_write(dev, state, 0, &count, 4, NULL), DG_OK);
	dg__launch l = { .state = state, .repeat = 1000 };
	CU_ASSERT_EQUAL(cpu()->time(dev, kernel, &l, &never, &timing, NULL), DG_OK);
	CU_ASSERT_EQUAL(cpu()->buf_read(dev, state, 0, &count, 4, NULL), DG_OK);
	CU_ASSERT_EQUAL(count, 1005);
	l.graph = true;
	CU_ASSERT_EQUAL(cpu()->time(dev, kernel, &l, &never, &timing, NULL), DG_ENOTSUP);
	cpu()->buf_destroy(dev, state);
}

static void test_kernels__launches_are_counted(void)
{
	dg__dev *dev = open_cpu();
	for_each_shape(dev, DG__KERNEL_EMPTY, DG_DTYPE_NONE, run_empty);
	cpu()->close(dev);
}

static void test_buffers__ranges_outside_are_refused(void)
{
	dg__dev *dev = open_cpu();
	dg__buf *buf = make_buf(dev, 4096);
	char byte = 0;
	CU_ASSERT_EQUAL(cpu()->buf_read(dev, buf, 4095, &byte, 1, NULL), DG_OK);
	CU_ASSERT_EQUAL(cpu()->buf_read(dev, buf, 4096, &byte, 1, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(cpu()->buf_write(dev, buf, UINT64_MAX, &byte, 1, NULL), DG_EINVALID);
	cpu()->buf_destroy(dev, buf);
	cpu()->buf_destroy(dev, NULL);
	cpu()->close(dev);
	cpu()->close(NULL);
}

static void test_buffers__more_than_there_is_is_no_memory(void)
{
	dg__dev *dev = open_cpu();
	dg__buf *buf = NULL;
	dg_error error = { 0 };
	CU_ASSERT_EQUAL(cpu()->buf_create(dev, (uint64_t)1 << 62, &never, &buf, &error), DG_ENOMEM);
	CU_ASSERT(error.text[0] != '\0');
	CU_ASSERT_PTR_NULL(buf);
	cpu()->close(dev);
}

/* The pool. */

typedef struct crowd {
	dg__cpupool *pool;
	atomic_uint calls, sum;
} crowd;

static void count_in(void *user, uint32_t worker, uint32_t workers)
{
	crowd *c = user;
	atomic_fetch_add(&c->calls, 1);
	atomic_fetch_add(&c->sum, worker + workers * 1000);
}

static void until_stopped(void *user, uint32_t worker, uint32_t workers)
{
	crowd *c = user;
	(void)worker;
	(void)workers;
	while (!dg__cpupool_stopping(c->pool))
		dg__clock_sleep_ns(MS);
}

static dg__cpupool *make_pool(uint32_t count)
{
	dg__topology t;
	dg__cpupool *pool = NULL;
	dg__topology_read("", &t);
	CU_ASSERT_FATAL(t.count > 0);
	for (uint32_t i = t.count; t.count > 0 && i < count; i++)
		t.cpus[i] = t.cpus[i % t.count];
	t.count = count;
	CU_ASSERT_EQUAL_FATAL(dg__cpupool_create(&t, &pool, NULL), DG_OK);
	return pool;
}

static void test_pool__every_worker_takes_part_in_every_launch(void)
{
	for (uint32_t threads = 1; threads <= 5; threads++) {
		dg__cpupool *pool = make_pool(threads);
		CU_ASSERT_EQUAL(dg__cpupool_threads(pool), threads < 2 ? 2 : threads);
		for (uint32_t workers = 1; workers <= dg__cpupool_threads(pool); workers++)
			for (int asleep = 0; asleep < 2; asleep++) {
				crowd c = { .pool = pool };
				uint64_t ns = 0;
				dg__cpujob job = { count_in, &c, workers, 20, asleep };
				CU_ASSERT_EQUAL(
					dg__cpupool_run(pool, &job, &never, &ns, NULL), DG_OK);
				CU_ASSERT_EQUAL(c.calls, 20 * workers);
				CU_ASSERT_EQUAL(c.sum, 20 * (workers * (workers - 1) / 2 +
								    workers * workers * 1000));
				CU_ASSERT(ns > 0);
			}
		dg__cpupool_destroy(pool);
	}
	dg__cpupool_destroy(NULL);
}

static void test_pool__a_deadline_stops_the_workers(void)
{
	dg__cpupool *pool = make_pool(2);
	crowd c = { .pool = pool };
	dg__cpujob job = { until_stopped, &c, 2, 1, false };
	uint64_t ns = 0, start = dg__clock_ns();
	dg__stop stop = { .deadline_ns = start + 100 * MS };
	CU_ASSERT_EQUAL(dg__cpupool_run(pool, &job, &stop, &ns, NULL), DG_ETIMEOUT);
	CU_ASSERT(dg__clock_ns() - start >= 100 * MS);
	CU_ASSERT(dg__clock_ns() - start < 300 * MS);
	job.run = count_in;
	CU_ASSERT_EQUAL(dg__cpupool_run(pool, &job, &never, &ns, NULL), DG_OK);
	CU_ASSERT_EQUAL(c.calls, 2);
	dg__cpupool_destroy(pool);
}

/* Cancelling a real measurement. */

static atomic_bool cancel;
static uint64_t cancelled_at_ns;

static void *cancel_soon(void *user)
{
	dg__clock_sleep_ns(*(const uint64_t *)user);
	cancelled_at_ns = dg__clock_ns();
	atomic_store(&cancel, true);
	return NULL;
}

static void test_cancel__ends_a_measurement_within_200_ms(void)
{
	static const char *const keys[] = { "compute:f32", "memory", "memory:read:4:resident",
		"launch" };
	static const uint64_t delays[] = { 20 * MS, 150 * MS };
	unsetenv(DG__ENGINE_QUICK_VARIABLE);
	for (size_t i = 0; i < 8; i++) {
		dg_key key;
		dg_value value;
		pthread_t thread;
		dg__engine_options options = { .cancel = &cancel };
		CU_ASSERT_EQUAL_FATAL(dg_key_parse(keys[i % 4], &key, NULL), DG_OK);
		atomic_store(&cancel, false);
		uint64_t delay = delays[i / 4];
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, cancel_soon, &delay), 0);
		CU_ASSERT_EQUAL(dg__engine_measure(cpu(), 0, &key, 1, &options, &value, NULL),
			DG_ECANCELLED);
		uint64_t end = dg__clock_ns();
		pthread_join(thread, NULL);
		CU_ASSERT(end - cancelled_at_ns < 200 * MS);
	}
	setenv(DG__ENGINE_QUICK_VARIABLE, "1", 1);
}

/* What may be used of a machine. */

static void put(const char *root, const char *path, const char *text)
{
	char whole[512];
	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(whole, 0755);
	}
	FILE *file = fopen(whole, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
}

#ifdef __linux__
static void test_quota__version_2_rounds_up_and_heeds_groups_above(void)
{
	char *root = dg_test_temp_dir();
	dg__topology t;
	put(root, "/proc/self/cgroup", "0::/a/b\n");
	put(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	dg__topology_read(root, &t);
	CU_ASSERT_EQUAL(t.quota, 0);
	put(root, "/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
	dg__topology_read(root, &t);
	CU_ASSERT_EQUAL(t.quota, 0.5);
	CU_ASSERT_EQUAL(t.count, 1);
	put(root, "/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
	dg__topology_read(root, &t);
	CU_ASSERT_EQUAL(t.quota, 1.5);
	CU_ASSERT(t.count <= 2);
	free(root);
}

static void test_quota__version_1_is_found_among_joined_controllers(void)
{
	char *root = dg_test_temp_dir();
	dg__topology t;
	put(root, "/proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/docker/1\n");
	put(root, "/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000\n");
	put(root, "/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "-1\n");
	dg__topology_read(root, &t);
	CU_ASSERT_EQUAL(t.quota, 0);
	put(root, "/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "100000\n");
	dg__topology_read(root, &t);
	CU_ASSERT_EQUAL(t.quota, 1);
	CU_ASSERT_EQUAL(t.count, 1);
	free(root);
}

static void test_quota__in_a_container_the_mount_is_the_group(void)
{
	char *root = dg_test_temp_dir();
	dg__topology t;
	put(root, "/proc/self/cgroup", "0::/kubepods/pod1/c1\n");
	put(root, "/sys/fs/cgroup/cpu.max", "25000 100000\n");
	dg__topology_read(root, &t);
	CU_ASSERT_EQUAL(t.quota, 0.25);
	free(root);
}

static void test_memory__the_least_limit_counts_and_caches_are_free(void)
{
	char *root = dg_test_temp_dir();
	dg__memory_state m;
	CU_ASSERT_FALSE(dg__topology_memory(root, &m));
	put(root, "/proc/meminfo",
		"MemTotal:  8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\n");
	CU_ASSERT_TRUE_FATAL(dg__topology_memory(root, &m));
	CU_ASSERT_EQUAL(m.total_bytes, (uint64_t)8 << 30);
	CU_ASSERT_EQUAL(m.free_bytes, (uint64_t)4 << 30);
	put(root, "/proc/self/cgroup", "0::/box\n");
	put(root, "/sys/fs/cgroup/box/memory.max", "1073741824\n");
	put(root, "/sys/fs/cgroup/box/memory.current", "805306368\n");
	put(root, "/sys/fs/cgroup/box/memory.stat", "anon 5\ninactive_file 268435456\n");
	CU_ASSERT_TRUE_FATAL(dg__topology_memory(root, &m));
	CU_ASSERT_EQUAL(m.total_bytes, (uint64_t)1 << 30);
	CU_ASSERT_EQUAL(m.free_bytes, (uint64_t)512 << 20);
	put(root, "/sys/fs/cgroup/box/memory.max", "max\n");
	CU_ASSERT_TRUE_FATAL(dg__topology_memory(root, &m));
	CU_ASSERT_EQUAL(m.free_bytes, (uint64_t)4 << 30);
	free(root);
}

static void test_cache__each_last_level_cache_counts_once(void)
{
	char *root = dg_test_temp_dir();
	dg__topology t = { .count = 3, .cpus = { 0, 1, 2 } };
	CU_ASSERT_EQUAL(dg__topology_cache(root, &t), 0);
	for (int cpu = 0; cpu < 3; cpu++) {
		char path[128];
		for (int level = 0; level < 2; level++) {
			snprintf(path, sizeof(path),
				"/sys/devices/system/cpu/cpu%d/cache/index%d/size", cpu, level);
			put(root, path, level ? "32768K\n" : "48K\n");
			snprintf(path, sizeof(path),
				"/sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", cpu,
				level);
			put(root, path, level == 0 ? "9\n" : cpu < 2 ? "0-1\n" : "2-3\n");
		}
	}
	CU_ASSERT_EQUAL(dg__topology_cache(root, &t), (uint64_t)64 << 20);
	free(root);
}

static void test_sensors__are_read_where_there_are_any(void)
{
	char *root = dg_test_temp_dir();
	dg__topology t = { .count = 2, .cpus = { 0, 1 } };
	double value = 0;
	uint64_t throttles = 0;
	CU_ASSERT_FALSE(dg__topology_temperature(root, &value));
	CU_ASSERT_FALSE(dg__topology_clock(root, &t, &value));
	CU_ASSERT_FALSE(dg__topology_throttles(root, &t, &throttles));
	put(root, "/sys/class/hwmon/hwmon0/name", "nvme\n");
	put(root, "/sys/class/hwmon/hwmon0/temp1_input", "99000\n");
	put(root, "/sys/class/hwmon/hwmon3/name", "k10temp\n");
	put(root, "/sys/class/hwmon/hwmon3/temp1_input", "45500\n");
	put(root, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3700000\n");
	put(root, "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "4\n");
	put(root, "/proc/stat",
		"cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 0 50 900 0 0 0 50 0 0\n"
		"cpu1 10 0 0 900 0 0 0 0 0 0\ncpu10 9 9 9 9 9 9 9 9 9 9\n");
	CU_ASSERT_TRUE(dg__topology_temperature(root, &value));
	CU_ASSERT_EQUAL(value, 45.5);
	CU_ASSERT_TRUE(dg__topology_clock(root, &t, &value));
	CU_ASSERT_EQUAL(value, 3.7e9);
	CU_ASSERT_TRUE(dg__topology_throttles(root, &t, &throttles));
	CU_ASSERT_EQUAL(throttles, 4);
	CU_ASSERT_TRUE(dg__topology_busy(root, &t, &value));
	CU_ASSERT_DOUBLE_EQUAL(value, 210.0 / (double)sysconf(_SC_CLK_TCK), 1e-9);
	free(root);
}

/* On a thread of its own: affinity is a thread's. */
static void *measure_on_one_core(void *user)
{
	cpu_set_t all, one;
	int *failed = user;
	static const char *const keys[] = { "compute:f32", "memory:copy", "launch" };
	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		return NULL;
	dg__topology t;
	dg_device_info info;
	dg__topology_read("", &t);
	*failed += t.count != 1 || !CPU_ISSET(t.cpus[0], &one);
	*failed += cpu()->describe(cpu(), 0, &info, NULL) != DG_OK || info.units != 1;
	for (size_t i = 0; i < 3; i++) {
		dg_key key;
		dg_value value;
		*failed += dg_key_parse(keys[i], &key, NULL) != DG_OK ||
			   dg__engine_measure(cpu(), 0, &key, 1, NULL, &value, NULL) != DG_OK ||
			   value.status != DG_STATUS_OK;
	}
	return NULL;
}

static void test_affinity__one_core_is_enough(void)
{
	pthread_t thread;
	int failed = 0;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, measure_on_one_core, &failed), 0);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(failed, 0);
}
#endif

/* Describing. */

static void test_describe__the_cpu_is_its_host(void)
{
	dg_device_info info;
	char host[DG__HOSTID_MAX], text[96];
	setenv(DG__HOSTID_VARIABLE, "0123456789abcdef0123456789abcdef", 1);
	CU_ASSERT_EQUAL_FATAL(cpu()->describe(cpu(), 0, &info, NULL), DG_OK);
	unsetenv(DG__HOSTID_VARIABLE);
	CU_ASSERT_EQUAL(info.device.variant, DG_CPU);
	CU_ASSERT_STRING_EQUAL(info.hardware, "host:0123456789abcdef0123456789abcdef");
	CU_ASSERT_STRING_EQUAL(info.host, "0123456789abcdef0123456789abcdef");
	CU_ASSERT(info.name[0] != '\0');
	CU_ASSERT(info.units >= 1);
	CU_ASSERT_FALSE(info.software);
	CU_ASSERT_EQUAL(info.shape_count, 0);
	CU_ASSERT_TRUE(dg_info_has_dtype(&info, DG_F32) && dg_info_has_dtype(&info, DG_I64));
	CU_ASSERT_FALSE(dg_info_has_dtype(&info, DG_TF32));
	CU_ASSERT(info.usable_bytes <= info.free_bytes && info.free_bytes <= info.total_bytes);
	if (!dg__hostid_get(host))
		return;
	snprintf(text, sizeof(text), "host:%s", host);
	CU_ASSERT_EQUAL(cpu()->describe(cpu(), 0, &info, NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(info.hardware, text);
}

static void test_describe__there_is_one_cpu(void)
{
	uint32_t count = 0;
	dg_device_info info;
	dg_telemetry telemetry;
	dg__dev *dev = NULL;
	CU_ASSERT_EQUAL(cpu()->enumerate(cpu(), &count, NULL), DG_OK);
	CU_ASSERT_EQUAL(count, 1);
	CU_ASSERT_EQUAL(cpu()->describe(cpu(), 1, &info, NULL), DG_ENODEVICE);
	CU_ASSERT_EQUAL(cpu()->open(cpu(), 1, &dev, NULL), DG_ENODEVICE);
	CU_ASSERT_EQUAL(cpu()->telemetry(cpu(), 1, &telemetry, NULL), DG_ENODEVICE);
}

static void test_telemetry__shares_are_shares(void)
{
	dg_telemetry t = { 0 };
	CU_ASSERT_EQUAL(cpu()->telemetry(cpu(), 0, &t, NULL), DG_OK);
	if (t.present & DG_TELEMETRY_LOAD)
		CU_ASSERT(t.load >= 0 && t.load <= 1);
	if (t.present & DG_TELEMETRY_USED)
		CU_ASSERT(t.memory_used_bytes <= t.memory_total_bytes);
	CU_ASSERT(t.at_ms > 0);
}

static void test_isa__the_text_names_what_was_found(void)
{
	char text[128];
	uint32_t isa = dg__isa_detect();
	(void)isa;
	dg__isa_format(DG__ISA_SSE2 | DG__ISA_AVX512_VNNI, text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " sse2 avx512-vnni"));
	CU_ASSERT(dg__isa_format(UINT32_MAX, text, sizeof(text)) <
		sizeof(((dg_device_info *)0)->architecture));
#if defined(__x86_64__)
	CU_ASSERT(isa & DG__ISA_SSE2);
	CU_ASSERT(!(isa & DG__ISA_AVX512) || (isa & DG__ISA_AVX2));
#endif
}

static const dg_test_case cases[] = {
	DG_TEST(test_kernels__arithmetic_is_right_in_every_shape),
	DG_TEST(test_kernels__memory_is_right_in_every_shape),
	DG_TEST(test_kernels__launches_are_counted),
	DG_TEST(test_buffers__ranges_outside_are_refused),
	DG_TEST(test_buffers__more_than_there_is_is_no_memory),
	DG_TEST(test_pool__every_worker_takes_part_in_every_launch),
	DG_TEST(test_pool__a_deadline_stops_the_workers),
	DG_TEST(test_cancel__ends_a_measurement_within_200_ms),
#ifdef __linux__
	DG_TEST(test_quota__version_2_rounds_up_and_heeds_groups_above),
	DG_TEST(test_quota__version_1_is_found_among_joined_controllers),
	DG_TEST(test_quota__in_a_container_the_mount_is_the_group),
	DG_TEST(test_memory__the_least_limit_counts_and_caches_are_free),
	DG_TEST(test_cache__each_last_level_cache_counts_once),
	DG_TEST(test_sensors__are_read_where_there_are_any),
	DG_TEST(test_affinity__one_core_is_enough),
#endif
	DG_TEST(test_describe__the_cpu_is_its_host),
	DG_TEST(test_describe__there_is_one_cpu),
	DG_TEST(test_telemetry__shares_are_shares),
	DG_TEST(test_isa__the_text_names_what_was_found),
};

int main(void)
{
	setenv(DG__ENGINE_QUICK_VARIABLE, "1", 1);
	return dg_test_run("backends/cpu/cpu", cases, sizeof(cases) / sizeof(cases[0]));
}
