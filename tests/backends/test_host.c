/* The worker's program: started by hand, and told nonsense over its socket. */
#include "backends/worker/host.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/core/clock.h"
#include "backends/worker/channel.h"
#include "backends/worker/spawn.h"
#include "tests/fakes/fake_worker.h"
#include "tests/test.h"

/* Run it with arguments; both outputs in text. @return exit status. */
static int by_hand(const char *arguments, char *text, size_t size)
{
	char command[1200];
	snprintf(command, sizeof(command), "%s %s 2>&1 </dev/null", dg_real_worker_path(),
		arguments);
	FILE *p = popen(command, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	text[fread(text, 1, size - 1, p)] = '\0';
	int status = pclose(p);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_main__tells_its_version_and_backends(void)
{
	char text[512];
	CU_ASSERT_EQUAL(by_hand("--version", text, sizeof(text)), 0);
	CU_ASSERT_EQUAL(strncmp(text, "devgate-worker ", 15), 0);
	CU_ASSERT_EQUAL(by_hand("--list", text, sizeof(text)), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "cpu\n"));
}

static void test_main__started_by_hand_it_says_who_starts_it(void)
{
	static const char *const arguments[] = { "", "--backend cpu", "--backend cpu --fd",
		"--fd 3", "--backend cpu --fd 3", "--backend cpu --fd 0", "--backend cpu --fd 3x",
		"--backend cpu --fd -1", "--backend cpu --fd 3 3</etc/passwd",
		"--backend cpu --fd 3 --idle-ms 4294967296", "--backend cpu --fd 3 --unknown 1",
		"--version --list", "cpu" };
	char text[512];
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		CU_ASSERT_EQUAL(by_hand(arguments[i], text, sizeof(text)), 2);
		CU_ASSERT_PTR_NOT_NULL(strstr(text, "is started by devgated and libdevgate"));
	}
}

/* Over the socket. */

typedef struct hosted {
	pid_t pid;
	dg__channel channel;
} hosted;

static hosted start(const char *path, const char *backend, uint32_t idle_ms)
{
	const dg__worker_options options = { .backend = backend, .idle_ms = idle_ms };
	hosted h = { .pid = -1 };
	int fd = -1;
	CU_ASSERT_EQUAL_FATAL(dg__spawn(path, &options, &h.pid, &fd, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(dg__channel_init_take(&h.channel, fd, NULL), DG_OK);
	return h;
}

static hosted start_fake(const char *script, uint32_t idle_ms)
{
	dg_fake_worker_script(script);
	return start(dg_fake_worker_path(), "fake", idle_ms);
}

static uint64_t soon(void)
{
	return dg__clock_ns() + 20000000000ull;
}

static void send_frame(hosted *h, dg__frame_kind kind, uint64_t request)
{
	dg__frame frame = { .kind = kind, .request = request, .timeout_ms = 10000 };
	CU_ASSERT_EQUAL(dg__channel_send(&h->channel, &frame, soon(), NULL), DG_OK);
}

static dg__frame_kind receive_kind(hosted *h)
{
	dg__frame frame = { .kind = 0 };
	CU_ASSERT_EQUAL_FATAL(dg__channel_receive(&h->channel, soon(), &frame, NULL), DG_OK);
	dg__frame_finish(&frame);
	return frame.kind;
}

static void assert_ends(hosted *h, const char *how)
{
	char text[48];
	int status = 0;
	CU_ASSERT_TRUE_FATAL(dg__spawn_reap(h->pid, 5000, &status));
	dg__spawn_describe(status, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, how);
	dg__channel_finish(&h->channel);
}

static void test_host__an_unknown_backend_ends_it(void)
{
	hosted h = start(dg_real_worker_path(), "nosuch", 1000);
	assert_ends(&h, "exited with status 2");
}

static void test_host__answers_and_ends_when_its_socket_is_closed(void)
{
	hosted h = start_fake("", 60000);
	send_frame(&h, DG__FRAME_DETECT, 41);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_DEVICES);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_END);
	dg__channel_finish(&h.channel);
	assert_ends(&h, "exited with status 0");
}

static void test_host__a_closed_socket_ends_it_while_the_driver_hangs(void)
{
	hosted h = start_fake("do=hang@enumerate", 60000);
	send_frame(&h, DG__FRAME_DETECT, 1);
	dg_test_sleep_ms(100);
	CU_ASSERT_TRUE(dg_process_runs(h.pid));
	dg__channel_finish(&h.channel);
	assert_ends(&h, "exited with status 0");
}

static void test_host__ends_after_its_idle_time(void)
{
	hosted h = start_fake("", 150);
	send_frame(&h, DG__FRAME_DETECT, 1);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_DEVICES);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_END);
	long long start_ms = dg_test_now_ms();
	assert_ends(&h, "exited with status 0");
	CU_ASSERT(dg_test_now_ms() - start_ms >= 100);
}

/* Who starts it may be held up before he sends. */
static void test_host__a_short_idle_time_leaves_time_for_the_first_request(void)
{
	hosted h = start_fake("", 1);
	dg_test_sleep_ms(400);
	send_frame(&h, DG__FRAME_DETECT, 1);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_DEVICES);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_END);
	assert_ends(&h, "exited with status 0");
}

static void test_host__idle_time_counts_from_the_last_answer(void)
{
	hosted h = start_fake("init_ms=600", 300);
	send_frame(&h, DG__FRAME_DETECT, 1);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_DEVICES);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_END);
	dg_test_sleep_ms(150);
	CU_ASSERT_TRUE(dg_process_runs(h.pid));
	assert_ends(&h, "exited with status 0");
}

static void test_host__a_cancel_that_comes_late_spoils_no_later_request(void)
{
	hosted h = start_fake("", 60000);
	send_frame(&h, DG__FRAME_CANCEL, 0);
	dg__frame frame = { .kind = DG__FRAME_MEASURE, .request = 1, .timeout_ms = 10000 };
	frame.measure = dg_worker_request("launch");
	CU_ASSERT_EQUAL(dg__channel_send(&h.channel, &frame, soon(), NULL), DG_OK);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_PROGRESS);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_VALUE);
	CU_ASSERT_EQUAL(receive_kind(&h), DG__FRAME_END);
	dg__channel_finish(&h.channel);
	assert_ends(&h, "exited with status 0");
}

static void test_host__nonsense_ends_it(void)
{
	hosted h = start_fake("", 60000);
	send_frame(&h, DG__FRAME_END, 1);
	assert_ends(&h, "exited with status 3");
	h = start_fake("", 60000);
	CU_ASSERT_EQUAL(write(h.channel.fd, "garbage!", 8), 8);
	assert_ends(&h, "exited with status 3");
	h = start_fake("do=hang@enumerate", 60000);
	send_frame(&h, DG__FRAME_DETECT, 1);
	send_frame(&h, DG__FRAME_DETECT, 2);
	assert_ends(&h, "exited with status 3");
}

static const dg_test_case cases[] = {
	DG_TEST(test_main__tells_its_version_and_backends),
	DG_TEST(test_main__started_by_hand_it_says_who_starts_it),
	DG_TEST(test_host__an_unknown_backend_ends_it),
	DG_TEST(test_host__answers_and_ends_when_its_socket_is_closed),
	DG_TEST(test_host__a_closed_socket_ends_it_while_the_driver_hangs),
	DG_TEST(test_host__ends_after_its_idle_time),
	DG_TEST(test_host__a_short_idle_time_leaves_time_for_the_first_request),
	DG_TEST(test_host__idle_time_counts_from_the_last_answer),
	DG_TEST(test_host__a_cancel_that_comes_late_spoils_no_later_request),
	DG_TEST(test_host__nonsense_ends_it),
};

DG_TEST_MAIN("host", cases)
