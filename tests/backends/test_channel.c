/* Frames over a socket pair: whole, in pieces, malformed, late, with nobody at the other end. */
#include "backends/worker/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/core/clock.h"
#include "tests/test.h"

#define MS 1000000ull

/* A channel, and the bare other end. */
static dg__channel open_pair(int *ret_other)
{
	int pair[2] = { -1, -1 };
	dg__channel channel = { .fd = -1 };
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CU_ASSERT_EQUAL_FATAL(dg__channel_init_take(&channel, pair[0], NULL), DG_OK);
	*ret_other = pair[1];
	return channel;
}

static uint64_t in_ms(unsigned ms)
{
	return dg__clock_ns() + ms * MS;
}

static dg_err receive(dg__channel *channel, unsigned ms, dg__frame *ret_frame, dg_error *reterr)
{
	memset(ret_frame, 0, sizeof(*ret_frame));
	return dg__channel_receive(channel, in_ms(ms), ret_frame, reterr);
}

static void put(int fd, const void *data, size_t size)
{
	CU_ASSERT_EQUAL(write(fd, data, size), (ssize_t)size);
}

static void put_text(int fd, const char *text)
{
	unsigned char head[4] = { 0, 0, (unsigned char)(strlen(text) >> 8),
		(unsigned char)strlen(text) };
	put(fd, head, 4);
	put(fd, text, strlen(text));
}

static void test_init__the_descriptor_does_not_block_and_is_not_inherited(void)
{
	int other;
	dg__channel channel = open_pair(&other);
	CU_ASSERT(fcntl(channel.fd, F_GETFL) & O_NONBLOCK);
	CU_ASSERT(fcntl(channel.fd, F_GETFD) & FD_CLOEXEC);
	dg__channel_finish(&channel);
	dg__channel_finish(&channel);
	close(other);
}

static void test_init__a_closed_descriptor_is_an_error(void)
{
	dg_error error = { .code = DG_OK };
	dg__channel channel;
	int fd = dup(0);
	close(fd);
	CU_ASSERT_EQUAL(dg__channel_init_take(&channel, fd, &error), DG_EIO);
	CU_ASSERT_EQUAL(error.native_code, EBADF);
}

static void test_send__the_peer_receives_the_same_frame(void)
{
	int other;
	dg__channel a = open_pair(&other), b = { .fd = -1 };
	CU_ASSERT_EQUAL_FATAL(dg__channel_init_take(&b, other, NULL), DG_OK);
	dg__frame sent = {
		.kind = DG__FRAME_MEASURE, .request = 7, .device = 3, .timeout_ms = 1234
	};
	dg__frame got;
	sent.measure.count = DG_KEYS_MAX;
	for (size_t i = 0; i < DG_KEYS_MAX; i++)
		sent.measure.keys[i] = (dg_key){
			.mode = DG_MODE_RESIDENT, .access = DG_READ, .bytes = 4 * (i + 1)
		};
	CU_ASSERT_EQUAL(dg__channel_send(&a, &sent, in_ms(5000), NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(receive(&b, 5000, &got, NULL), DG_OK);
	CU_ASSERT_EQUAL(got.kind, DG__FRAME_MEASURE);
	CU_ASSERT_EQUAL(got.request, 7);
	CU_ASSERT_EQUAL(got.device, 3);
	CU_ASSERT_EQUAL(got.timeout_ms, 1234);
	CU_ASSERT_EQUAL(got.measure.count, DG_KEYS_MAX);
	CU_ASSERT(dg_key_equal(&got.measure.keys[255], &sent.measure.keys[255]));
	dg__frame_finish(&got);
	dg__channel_finish(&a);
	dg__channel_finish(&b);
}

typedef struct sender {
	dg__channel channel;
	dg__frame frame;
	dg_err err;
} sender;

static void *send_frame(void *user)
{
	sender *s = user;
	s->err = dg__channel_send(&s->channel, &s->frame, in_ms(30000), NULL);
	return NULL;
}

/* Longer than any socket buffer. */
static void test_send__a_list_of_a_thousand_devices_passes(void)
{
	int other;
	static sender s;
	dg__channel b = { .fd = -1 };
	dg__frame got;
	pthread_t thread;
	s = (sender){ .channel = open_pair(&other), .frame = { .kind = DG__FRAME_DEVICES } };
	CU_ASSERT_EQUAL_FATAL(dg__channel_init_take(&b, other, NULL), DG_OK);
	s.frame.devices.count = DG__DEVICES_MAX;
	s.frame.devices.entries = calloc(DG__DEVICES_MAX, sizeof(dg__device_entry));
	if (!s.frame.devices.entries) {
		CU_FAIL_FATAL("no memory");
		return;
	}
	for (uint32_t i = 0; i < DG__DEVICES_MAX; i++) {
		dg__device_entry *e = &s.frame.devices.entries[i];
		e->info.present = DG_HAS_DEVICE;
		CU_ASSERT_EQUAL(
			dg_device_make(DG_CUDA, DG_KIND_NONE, i, &e->info.device, NULL), DG_OK);
		memset(e->info.name, 'n', sizeof(e->info.name) - 1);
		memset(e->info.reason, 'r', sizeof(e->info.reason) - 1);
		memcpy(e->info.backend, "cuda", 5);
		CU_ASSERT_EQUAL(dg_settings_defaults(e->info.device, &e->settings, NULL), DG_OK);
	}
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, send_frame, &s), 0);
	CU_ASSERT_EQUAL(receive(&b, 30000, &got, NULL), DG_OK);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(s.err, DG_OK);
	CU_ASSERT_EQUAL_FATAL(got.devices.count, DG__DEVICES_MAX);
	CU_ASSERT_EQUAL(got.devices.entries[1023].info.device.index, 1023);
	dg__frame_finish(&got);
	dg__frame_finish(&s.frame);
	dg__channel_finish(&s.channel);
	dg__channel_finish(&b);
}

static void test_send__nobody_there_is_an_error_and_no_signal(void)
{
	int other;
	dg__channel channel = open_pair(&other);
	dg__frame frame = { .kind = DG__FRAME_CANCEL };
	close(other);
	CU_ASSERT_EQUAL(dg__channel_send(&channel, &frame, in_ms(1000), NULL), DG_EWORKER);
	dg__channel_finish(&channel);
}

static void test_send__a_peer_that_reads_nothing_costs_no_more_than_the_deadline(void)
{
	int other;
	dg__channel channel = open_pair(&other);
	dg__frame frame = { .kind = DG__FRAME_CANCEL };
	dg_err err = DG_OK;
	long long start = dg_test_now_ms();
	for (unsigned i = 0; err == DG_OK && i < 1000000; i++)
		err = dg__channel_send(&channel, &frame, in_ms(100), NULL);
	CU_ASSERT_EQUAL(err, DG_ETIMEOUT);
	CU_ASSERT(dg_test_now_ms() - start < 30000);
	dg__channel_finish(&channel);
	close(other);
}

static void test_receive__a_frame_in_single_bytes_is_put_together(void)
{
	static const char bytes[] = "\0\0\0\x1e{\"frame\":\"cancel\",\"request\":9}";
	int other;
	dg__channel channel = open_pair(&other);
	dg__frame frame;
	CU_ASSERT_EQUAL(sizeof(bytes) - 1, 4 + 0x1e);
	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		CU_ASSERT_EQUAL(receive(&channel, 1, &frame, NULL), DG_ETIMEOUT);
		put(other, bytes + i, 1);
	}
	CU_ASSERT_EQUAL(receive(&channel, 1000, &frame, NULL), DG_OK);
	CU_ASSERT_EQUAL(frame.kind, DG__FRAME_CANCEL);
	CU_ASSERT_EQUAL(frame.request, 9);
	dg__channel_finish(&channel);
	close(other);
}

static void test_receive__frames_sent_together_come_one_by_one(void)
{
	int other;
	dg__channel channel = open_pair(&other);
	dg__frame frame;
	put_text(other, "{\"frame\":\"cancel\",\"request\":1}");
	put_text(other, "{\"frame\":\"cancel\",\"request\":2}");
	close(other);
	CU_ASSERT_FALSE(dg__channel_is_closed(&channel));
	CU_ASSERT_EQUAL(receive(&channel, 1000, &frame, NULL), DG_OK);
	CU_ASSERT_EQUAL(frame.request, 1);
	CU_ASSERT_FALSE(dg__channel_is_closed(&channel));
	CU_ASSERT_EQUAL(receive(&channel, 1000, &frame, NULL), DG_OK);
	CU_ASSERT_EQUAL(frame.request, 2);
	CU_ASSERT_TRUE(dg__channel_is_closed(&channel));
	CU_ASSERT_EQUAL(receive(&channel, 1000, &frame, NULL), DG_EWORKER);
	dg__channel_finish(&channel);
}

static void test_receive__silence_ends_at_the_deadline(void)
{
	int other;
	dg__channel channel = open_pair(&other);
	dg__frame frame;
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(receive(&channel, 100, &frame, NULL), DG_ETIMEOUT);
	long long took = dg_test_now_ms() - start;
	CU_ASSERT(took >= 99 && took < 2000);
	CU_ASSERT_FALSE(dg__channel_is_closed(&channel));
	dg__channel_finish(&channel);
	close(other);
}

static void assert_refused(const void *bytes, size_t size, const char *words)
{
	int other;
	dg__channel channel = open_pair(&other);
	dg__frame frame;
	dg_error error = { .code = DG_OK };
	put(other, bytes, size);
	CU_ASSERT_EQUAL(receive(&channel, 1000, &frame, &error), DG_EPROTOCOL);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, words));
	dg__channel_finish(&channel);
	close(other);
}

static void test_receive__a_length_out_of_range_is_refused(void)
{
	assert_refused("\0\0\0\0", 4, "claims 0 bytes");
	assert_refused("\0\x80\0\1", 4, "claims 8388609 bytes");
	assert_refused("\xff\xff\xff\xff", 4, "claims 4294967295 bytes");
}

static void test_receive__garbage_is_refused_with_its_reason(void)
{
	assert_refused("\0\0\0\1{", 5, "cannot be read");
	assert_refused("\0\0\0\2{}", 6, "frame");
	assert_refused("\0\0\0\x10{\"frame\":\"none\"}", 20, "frame");
	assert_refused("\0\0\0\4\xff\xff\xff\xff", 8, "cannot be read");
}

static void test_receive__an_end_within_a_frame_is_the_peers_end(void)
{
	int other;
	dg__channel channel = open_pair(&other);
	dg__frame frame;
	put(other, "\0\0\0\x20{\"fra", 9);
	close(other);
	CU_ASSERT_EQUAL(receive(&channel, 1000, &frame, NULL), DG_EWORKER);
	dg__channel_finish(&channel);
}

static const dg_test_case cases[] = {
	DG_TEST(test_init__the_descriptor_does_not_block_and_is_not_inherited),
	DG_TEST(test_init__a_closed_descriptor_is_an_error),
	DG_TEST(test_send__the_peer_receives_the_same_frame),
	DG_TEST(test_send__a_list_of_a_thousand_devices_passes),
	DG_TEST(test_send__nobody_there_is_an_error_and_no_signal),
	DG_TEST(test_send__a_peer_that_reads_nothing_costs_no_more_than_the_deadline),
	DG_TEST(test_receive__a_frame_in_single_bytes_is_put_together),
	DG_TEST(test_receive__frames_sent_together_come_one_by_one),
	DG_TEST(test_receive__silence_ends_at_the_deadline),
	DG_TEST(test_receive__a_length_out_of_range_is_refused),
	DG_TEST(test_receive__garbage_is_refused_with_its_reason),
	DG_TEST(test_receive__an_end_within_a_frame_is_the_peers_end),
};

DG_TEST_MAIN("channel", cases)
