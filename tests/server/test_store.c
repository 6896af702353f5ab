/* The state: what was acknowledged stays, whatever ends the process or harms the file. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "server/store.h"
#include "tests/test.h"

static dg_error why;

static dg__store *open_store(const char *folder)
{
	dg__store *store = NULL;
	why = (dg_error){ .code = DG_OK };
	if (dg__store_open(folder, &store, &why) != DG_OK)
		printf("\n    %s\n    ", why.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	return store;
}

static dg__value_key value_key(const char *key)
{
	return (dg__value_key){ "cuda", "uuid:a", "driver 1", "engine 1", key };
}

static void put_value(dg__store *store, const char *key, const char *json)
{
	dg__value_key k = value_key(key);
	CU_ASSERT_EQUAL(dg__store_put_value(store, &k, json, &why), DG_OK);
}

static bool has_value(dg__store *store, const char *key, const char *json)
{
	dg__value_key k = value_key(key);
	char *kept = NULL;
	bool same = dg__store_get_value(store, &k, &kept, NULL) == DG_OK && !strcmp(kept, json);
	free(kept);
	return same;
}

static dg__token token_of(unsigned number)
{
	dg__token token = { .scopes = 1, .created_at_ms = number };
	snprintf(token.name, sizeof(token.name), "t%u", number);
	memcpy(token.sha256, &number, sizeof(number));
	return token;
}

static uint32_t index_of(dg__store *store, const char *backend, const char *hardware)
{
	uint32_t index = UINT32_MAX;
	CU_ASSERT_EQUAL(
		dg__store_device_index(store, backend, hardware, "{}", &index, &why), DG_OK);
	return index;
}

/* Texts and indexes. */

static void test_texts__are_kept_and_found_again(void)
{
	char *folder = dg_test_temp_dir(), *text = NULL;
	dg__store *store = open_store(folder);
	CU_ASSERT_EQUAL(dg__store_get_text(store, "gateway_id", &text, &why), DG_ENOTFOUND);
	CU_ASSERT_PTR_NULL(text);
	CU_ASSERT_EQUAL(dg__store_set_text(store, "gateway_id", "one", &why), DG_OK);
	CU_ASSERT_EQUAL(dg__store_set_text(store, "gateway_id", "it's", &why), DG_OK);
	dg__store_close(store);
	store = open_store(folder);
	CU_ASSERT_EQUAL(dg__store_keep_text(store, "gateway_id", "other", &text, &why), DG_OK);
	CU_ASSERT_STRING_EQUAL(text, "it's");
	free(text);
	dg__store_close(store);
	free(folder);
}

static void test_device_index__stays_with_the_hardware(void)
{
	char *folder = dg_test_temp_dir();
	dg__store *store = open_store(folder);
	uint32_t a = index_of(store, "cuda", "uuid:a"), b = index_of(store, "cuda", "uuid:b");
	uint32_t seen_otherwise = index_of(store, "vulkan", "uuid:a");
	CU_ASSERT_EQUAL(a, 0);
	CU_ASSERT_EQUAL(b, 1);
	CU_ASSERT_EQUAL(seen_otherwise, 2);
	dg__store_close(store);
	store = open_store(folder);
	CU_ASSERT_EQUAL(index_of(store, "cuda", "uuid:b"), b);
	CU_ASSERT_EQUAL(index_of(store, "cuda", "uuid:c"), 3);
	CU_ASSERT_EQUAL(index_of(store, "cuda", "uuid:a"), a);
	dg__store_close(store);
	free(folder);
}

static void test_devices__are_listed_as_last_described(void)
{
	dg__store *store = open_store(NULL);
	dg__store_device *devices = NULL;
	size_t count = 99;
	uint32_t index;
	index_of(store, "cuda", "uuid:a");
	index_of(store, "cpu", "host:b");
	CU_ASSERT_EQUAL(
		dg__store_device_index(store, "cuda", "uuid:a", "{\"n\":2}", &index, &why), DG_OK);
	CU_ASSERT_EQUAL(dg__store_devices(store, &devices, &count, &why), DG_OK);
	CU_ASSERT_EQUAL_FATAL(count, 2);
	CU_ASSERT_STRING_EQUAL(devices[0].description_json, "{\"n\":2}");
	CU_ASSERT_STRING_EQUAL(devices[1].backend, "cpu");
	CU_ASSERT_STRING_EQUAL(devices[1].hardware, "host:b");
	CU_ASSERT_EQUAL(devices[1].index, 1);
	dg__store_devices_free(devices, count);
	dg__store_close(store);
}

/* Values and tokens. */

static void count_value(const char *json, void *user)
{
	(void)json;
	++*(unsigned *)user;
}

static void test_values__are_not_shared_across_hardware_driver_or_engine(void)
{
	dg__store *store = open_store(NULL);
	const dg__value_key others[] = {
		{ "rocm", "uuid:a", "driver 1", "engine 1", "k" },
		{ "cuda", "uuid:b", "driver 1", "engine 1", "k" },
		{ "cuda", "uuid:a", "driver 2", "engine 1", "k" },
		{ "cuda", "uuid:a", "driver 1", "engine 2", "k" },
		{ "cuda", "uuid:a", "driver 1", "engine 1", "other" },
	};
	put_value(store, "k", "1");
	put_value(store, "k", "2");
	CU_ASSERT_TRUE(has_value(store, "k", "2"));
	for (size_t i = 0; i < 5; i++) {
		char *json = NULL;
		CU_ASSERT_EQUAL(dg__store_get_value(store, &others[i], &json, &why), DG_ENOTFOUND);
		CU_ASSERT_EQUAL(dg__store_put_value(store, &others[i], "3", &why), DG_OK);
	}
	unsigned visited = 0;
	CU_ASSERT_EQUAL(
		dg__store_each_value(store, &others[4], count_value, &visited, &why), DG_OK);
	CU_ASSERT_EQUAL(visited, 2);
	dg__store_close(store);
}

static void test_tokens__are_unique_by_name_and_revoked_by_it(void)
{
	dg__store *store = open_store(NULL);
	dg__token token = token_of(1), *tokens = NULL;
	size_t count = 0;
	token.expires_at_ms = 5;
	token.scopes = 6;
	CU_ASSERT_EQUAL(dg__store_add_token(store, &token, &why), DG_OK);
	CU_ASSERT_NOT_EQUAL(dg__store_add_token(store, &token, &why), DG_OK);
	CU_ASSERT_TRUE(*why.text);
	CU_ASSERT_EQUAL(dg__store_revoke_token(store, "t2", &why), DG_ENOTFOUND);
	CU_ASSERT_EQUAL(dg__store_revoke_token(store, "t1", &why), DG_OK);
	CU_ASSERT_EQUAL(dg__store_tokens(store, &tokens, &count, &why), DG_OK);
	CU_ASSERT_EQUAL_FATAL(count, 1);
	CU_ASSERT_STRING_EQUAL(tokens->name, "t1");
	CU_ASSERT_EQUAL(memcmp(tokens->sha256, token.sha256, 32), 0);
	CU_ASSERT_EQUAL(tokens->expires_at_ms, 5);
	CU_ASSERT_EQUAL(tokens->scopes, 6);
	CU_ASSERT_TRUE(tokens->revoked);
	free(tokens);
	dg__store_close(store);
}

static void test_token_version__changes_with_every_handle(void)
{
	char *folder = dg_test_temp_dir();
	dg__store *here = open_store(folder), *there = open_store(folder);
	int64_t before = 0, after = 0;
	dg__token token = token_of(1);
	CU_ASSERT_EQUAL(dg__store_token_version(here, &before, &why), DG_OK);
	CU_ASSERT_EQUAL(dg__store_token_version(here, &after, &why), DG_OK);
	CU_ASSERT_EQUAL(before, after);
	CU_ASSERT_EQUAL(dg__store_add_token(there, &token, &why), DG_OK);
	CU_ASSERT_EQUAL(dg__store_token_version(here, &after, &why), DG_OK);
	CU_ASSERT_NOT_EQUAL(before, after);
	before = after;
	CU_ASSERT_EQUAL(dg__store_revoke_token(here, "t1", &why), DG_OK);
	CU_ASSERT_EQUAL(dg__store_token_version(here, &after, &why), DG_OK);
	CU_ASSERT_NOT_EQUAL(before, after);
	dg__store_close(here);
	dg__store_close(there);
	free(folder);
}

/* Threads and processes. */

enum { WRITERS = 4, WRITES = 25 };

typedef struct writer {
	dg__store *store;
	unsigned number;
	unsigned failures;
} writer;

static void *write_values(void *user)
{
	writer *w = user;
	for (unsigned i = 0; i < WRITES; i++) {
		char key[32];
		uint32_t index;
		snprintf(key, sizeof(key), "%u/%u", w->number, i);
		dg__value_key k = value_key(key);
		w->failures += dg__store_put_value(w->store, &k, key, NULL) != DG_OK;
		w->failures += !has_value(w->store, key, key);
		w->failures +=
			dg__store_device_index(w->store, "cuda", key, "{}", &index, NULL) != DG_OK;
	}
	return NULL;
}

static void test_store__serves_threads_and_handles_at_once(void)
{
	char *folder = dg_test_temp_dir();
	dg__store *stores[2] = { open_store(folder), open_store(folder) };
	pthread_t threads[WRITERS];
	writer writers[WRITERS];
	bool taken[WRITERS * WRITES] = { false };
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (writer){ stores[i % 2], i, 0 };
		CU_ASSERT_EQUAL_FATAL(
			pthread_create(&threads[i], NULL, write_values, &writers[i]), 0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(threads[i], NULL);
		CU_ASSERT_EQUAL(writers[i].failures, 0);
	}
	for (unsigned i = 0; i < WRITERS * WRITES; i++) {
		char hardware[32];
		snprintf(hardware, sizeof(hardware), "%u/%u", i / WRITES, i % WRITES);
		uint32_t index = index_of(stores[0], "cuda", hardware);
		CU_ASSERT_FATAL(index < WRITERS * WRITES && !taken[index]);
		taken[index] = true;
	}
	dg__store_close(stores[0]);
	dg__store_close(stores[1]);
	free(folder);
}

/* What a writer that is killed has been told is kept. */
typedef struct acknowledged {
	unsigned number;
	uint32_t index;
	uint64_t fencing_token;
} acknowledged;

static void name_of(unsigned number, char *buf, size_t size)
{
	snprintf(buf, size, "hardware %u", number);
}

static void write_until_killed(const char *folder, unsigned number, int out)
{
	dg__store *store = NULL;
	if (dg__store_open(folder, &store, NULL) != DG_OK)
		_exit(1);
	for (;; number++) {
		char name[40];
		acknowledged ack = { number, 0, 0 };
		dg_lease lease = { .ttl_s = 60 };
		dg__token token = token_of(number);
		name_of(number, name, sizeof(name));
		snprintf(lease.hardware, sizeof(lease.hardware), "%s", name);
		dg__value_key key = value_key(name);
		if (dg__store_put_value(store, &key, name, NULL) != DG_OK ||
			dg__store_add_token(store, &token, NULL) != DG_OK ||
			dg__store_put_lease(store, "", &lease, NULL) != DG_OK ||
			(ack.fencing_token = lease.fencing_token) == 0 ||
			dg__store_device_index(store, "cuda", name, "{}", &ack.index, NULL) !=
				DG_OK ||
			write(out, &ack, sizeof(ack)) != (ssize_t)sizeof(ack))
			_exit(2);
	}
}

/* A thousand kills, of fifty states; a sanitizer is slow to start. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { FOLDERS = 1, ROUNDS = 30, ACKS_MAX = 20000 };
#else
enum { FOLDERS = 50, ROUNDS = 20, ACKS_MAX = 20000 };
#endif
static acknowledged acks[ACKS_MAX];
static size_t ack_count;

/* One writer, killed at a random moment after its first acknowledgement; the next free number. */
static unsigned kill_one(const char *folder, unsigned number)
{
	int ends[2];
	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		write_until_killed(folder, number, ends[1]);
	}
	close(ends[1]);
	CU_ASSERT_FATAL(pid > 0);
	acknowledged ack;
	bool killed = false;
	while (ack_count < ACKS_MAX && read(ends[0], &ack, sizeof(ack)) == (ssize_t)sizeof(ack)) {
		acks[ack_count++] = ack;
		number = ack.number + 1;
		if (!killed) {
			struct timespec pause = { 0, rand() % 6000000 };
			nanosleep(&pause, NULL);
			kill(pid, SIGKILL);
			killed = true;
		}
	}
	close(ends[0]);
	kill(pid, SIGKILL);
	int status = 0;
	waitpid(pid, &status, 0);
	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* What was under way may be there without an acknowledgement. */
	return number + 1;
}

static bool token_kept(const dg__token *tokens, size_t count, unsigned number)
{
	dg__token wanted = token_of(number);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(tokens[i].name, wanted.name))
			return !memcmp(tokens[i].sha256, wanted.sha256, 32) && !tokens[i].revoked;
	return false;
}

typedef struct looked_for {
	uint64_t fencing_token;
	unsigned found;
} looked_for;

static void look_for(const dg_lease *lease, const char *parent, void *user)
{
	looked_for *wanted = user;
	wanted->found += lease->fencing_token == wanted->fencing_token && !*parent;
}

static void check_acknowledged(dg__store *store, size_t from)
{
	dg__token *tokens = NULL;
	size_t count = 0;
	unsigned lost = 0;
	CU_ASSERT_EQUAL_FATAL(dg__store_tokens(store, &tokens, &count, &why), DG_OK);
	for (size_t i = from; i < ack_count; i++) {
		char name[40];
		name_of(acks[i].number, name, sizeof(name));
		lost += !has_value(store, name, name);
		lost += !token_kept(tokens, count, acks[i].number);
		lost += index_of(store, "cuda", name) != acks[i].index;
		looked_for lease = { acks[i].fencing_token, 0 };
		CU_ASSERT_EQUAL(dg__store_each_lease(store, look_for, &lease, &why), DG_OK);
		lost += lease.found != 1;
		lost += i > 0 && acks[i].fencing_token <= acks[i - 1].fencing_token;
	}
	CU_ASSERT_EQUAL(lost, 0);
	free(tokens);
}

static void kill_often(void)
{
	char *folder = dg_test_temp_dir();
	unsigned number = 0;
	ack_count = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		size_t from = ack_count;
		number = kill_one(folder, number);
		CU_ASSERT_FATAL(ack_count > from);
		dg__store *store = open_store(folder);
		check_acknowledged(store, from);
		dg__store_close(store);
	}
	dg__store *store = open_store(folder);
	check_acknowledged(store, 0);
	dg__store_close(store);
	free(folder);
}

static void test_store__keeps_what_it_acknowledged_over_kill(void)
{
	srand((unsigned)dg_test_now_ms());
	for (unsigned i = 0; i < FOLDERS; i++)
		kill_often();
}

/* Files that cannot be used. */

static void state_path(const char *folder, char *buf, size_t size)
{
	snprintf(buf, size, "%s/state.db", folder);
}

static void patch(const char *folder, long offset, const void *bytes, size_t length)
{
	char path[600];
	state_path(folder, path, sizeof(path));
	FILE *f = fopen(path, "r+b");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fseek(f, offset, SEEK_SET);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, length, f), length);
	fclose(f);
}

static char *filled_folder(void)
{
	char *folder = dg_test_temp_dir();
	dg__store *store = open_store(folder);
	for (unsigned i = 0; i < 200; i++) {
		char key[32];
		snprintf(key, sizeof(key), "a key of some length %u", i);
		index_of(store, "cuda", key);
	}
	put_value(store, "k", "1");
	dg__store_close(store);
	return folder;
}

static void check_refused(const char *folder, dg_err err, const char *reason)
{
	dg__store *store = NULL;
	why = (dg_error){ .code = DG_OK };
	CU_ASSERT_EQUAL(dg__store_open(folder, &store, &why), err);
	CU_ASSERT_PTR_NULL(store);
	bool told = strstr(why.text, folder) && strstr(why.text, reason);
	if (!told)
		printf("\n    %s\n    ", why.text);
	CU_ASSERT_TRUE(told);
	dg__store_close(store);
}

static void test_open__makes_folder_and_file_private(void)
{
	char *folder = dg_test_temp_dir(), path[600], file[620];
	struct stat st;
	snprintf(path, sizeof(path), "%s/new", folder);
	mode_t mask = umask(0);
	dg__store_close(open_store(path));
	umask(mask);
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0700);
	state_path(path, file, sizeof(file));
	CU_ASSERT_EQUAL(stat(file, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
	free(folder);
}

static void *open_new(void *user)
{
	dg__store *store = NULL;
	bool opened = dg__store_open(user, &store, NULL) == DG_OK;
	dg__store_close(store);
	return opened ? user : NULL;
}

static void test_open__of_a_new_state_by_many_at_once(void)
{
	for (unsigned round = 0; round < 20; round++) {
		char *folder = dg_test_temp_dir();
		pthread_t threads[WRITERS];
		for (unsigned i = 0; i < WRITERS; i++)
			CU_ASSERT_EQUAL_FATAL(
				pthread_create(&threads[i], NULL, open_new, folder), 0);
		for (unsigned i = 0; i < WRITERS; i++) {
			void *opened = NULL;
			pthread_join(threads[i], &opened);
			CU_ASSERT_PTR_NOT_NULL(opened);
		}
		free(folder);
	}
}

static void test_open__refuses_a_damaged_state_and_says_what_to_do(void)
{
	char *folder = filled_folder(), garbage[4096];
	memset(garbage, 0xa5, sizeof(garbage));
	patch(folder, 2 * 4096, garbage, sizeof(garbage));
	check_refused(folder, DG_ESTATE, "move the");
	patch(folder, 0, garbage, sizeof(garbage));
	check_refused(folder, DG_ESTATE, "move the");
	free(folder);
}

static void test_open__refuses_a_cut_state(void)
{
	char *folder = filled_folder(), path[600];
	state_path(folder, path, sizeof(path));
	CU_ASSERT_EQUAL(truncate(path, 3 * 4096), 0);
	check_refused(folder, DG_ESTATE, "move the");
	free(folder);
}

static void test_open__leaves_a_newer_state_alone(void)
{
	char *folder = filled_folder(), path[600];
	const unsigned char newer[4] = { 0, 0, 0, 99 };
	size_t before, after;
	state_path(folder, path, sizeof(path));
	char *known = dg_test_read_file(path, &before);
	patch(folder, 60, newer, sizeof(newer)); /* user_version in SQLite's header */
	char *old = dg_test_read_file(path, &before);
	check_refused(folder, DG_ENEWER, "version 99");
	char *new = dg_test_read_file(path, &after);
	CU_ASSERT_TRUE(before == after && memcmp(old, new, before) == 0);
	patch(folder, 60, known + 60, 4);
	dg__store *store = open_store(folder);
	CU_ASSERT_TRUE(has_value(store, "k", "1"));
	dg__store_close(store);
	free(known);
	free(old);
	free(new);
	free(folder);
}

/* As the first version left it. */
static void test_open__takes_an_older_state_to_the_present(void)
{
	char *folder = filled_folder(), path[600];
	sqlite3 *db = NULL;
	dg_lease lease = { .hardware = "gpu:a", .ttl_s = 60 };
	state_path(folder, path, sizeof(path));
	CU_ASSERT_EQUAL_FATAL(sqlite3_open(path, &db), SQLITE_OK);
	CU_ASSERT_EQUAL(
		sqlite3_exec(db, "DROP TABLE lease; DROP TABLE counter; PRAGMA user_version = 1",
			NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	dg__store *store = open_store(folder);
	CU_ASSERT_TRUE(has_value(store, "k", "1"));
	CU_ASSERT_EQUAL(dg__store_put_lease(store, "", &lease, &why), DG_OK);
	CU_ASSERT_EQUAL(lease.fencing_token, 1);
	dg__store_close(store);
	free(folder);
}

static void test_open__refuses_a_link_in_place_of_the_state(void)
{
	char *folder = dg_test_temp_dir(), *other = filled_folder(), path[600], target[600];
	state_path(folder, path, sizeof(path));
	state_path(other, target, sizeof(target));
	CU_ASSERT_EQUAL(symlink(target, path), 0);
	check_refused(folder, DG_ESTATE, "cannot be written");
	free(folder);
	free(other);
}

/* In a child that is no superuser: 0 where the state is refused as it should be. */
static int refused_to_others(const char *folder)
{
	pid_t pid = fork();
	if (pid == 0) {
		dg__store *store = NULL;
		dg_error told = { .code = DG_OK };
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(9);
		dg_err err = dg__store_open(folder, &store, &told);
		_exit(err != DG_ESTATE ? 1 : strstr(told.text, folder) ? 0 : 2);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_open__refuses_what_it_may_not_write(void)
{
	char *folder = filled_folder(), path[600];
	state_path(folder, path, sizeof(path));
	chmod(folder, 0555);
	CU_ASSERT_EQUAL(refused_to_others(folder), 0);
	chmod(folder, 0777);
	chmod(path, 0444);
	CU_ASSERT_EQUAL(refused_to_others(folder), 0);
	chmod(path, 0600);
	check_refused("/dev/null", DG_ESTATE, "/dev/null");
	check_refused("/nonexistent/state", DG_ESTATE, "cannot be made");
	dg__store *store = open_store(folder);
	CU_ASSERT_TRUE(has_value(store, "k", "1"));
	dg__store_close(store);
	free(folder);
}

static void note_health(const char *problem, void *user)
{
	*(int *)user += problem ? 1 : 100;
}

/* The file has no more room: 0 where the last value is known all the same, and saved later. */
static int lives_without_room(dg__store *store, const char *last, unsigned count, int *health)
{
	char problem[200];
	unsigned found = 0;
	struct rlimit more = { RLIM_INFINITY, RLIM_INFINITY };
	dg__value_key all = value_key("");
	if (!dg__store_problem(store, problem, sizeof(problem)) || *health != 1)
		return 2;
	if (!has_value(store, "0", "0") || !has_value(store, last, last))
		return 3;
	if (dg__store_each_value(store, &all, count_value, &found, NULL) != DG_OK ||
		found != (count < 1024 ? count : 1024))
		return 4;
	if (setrlimit(RLIMIT_FSIZE, &more) != 0)
		return 5;
	dg__value_key next = value_key("next");
	if (dg__store_put_value(store, &next, "next", NULL) != DG_OK || *health != 101 ||
		dg__store_problem(store, problem, sizeof(problem)))
		return 6;
	return 0;
}

/* In a child whose files may not grow. */
static int write_until_full(const char *folder, char last[32])
{
	pid_t pid = fork();
	if (pid == 0) {
		dg__store *store = NULL;
		dg_err err = DG_OK;
		struct rlimit limit = { 300000, RLIM_INFINITY };
		int health = 0;
		unsigned count = 0;
		signal(SIGXFSZ, SIG_IGN);
		if (dg__store_open(folder, &store, NULL) != DG_OK ||
			setrlimit(RLIMIT_FSIZE, &limit) != 0)
			_exit(9);
		dg__store_on_health(store, note_health, &health);
		for (; err == DG_OK && count < 20000; count++) {
			snprintf(last, 32, "%u", count);
			dg__value_key k = value_key(last);
			err = dg__store_put_value(store, &k, last, &why);
		}
		int status = err != DG_ESTATE ? 1 : lives_without_room(store, last, count, &health);
		dg__store_close(store);
		_exit(status);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_store__knows_what_it_could_not_write_and_writes_it_later(void)
{
	char *folder = dg_test_temp_dir();
	char *last = mmap(NULL, 32, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_FATAL(last != MAP_FAILED);
	CU_ASSERT_EQUAL(write_until_full(folder, last), 0);
	dg__store *store = open_store(folder);
	CU_ASSERT_TRUE(has_value(store, "0", "0"));
	CU_ASSERT_TRUE(*last && has_value(store, last, last));
	CU_ASSERT_EQUAL(munmap(last, 32), 0);
	put_value(store, "after", "1");
	CU_ASSERT_TRUE(has_value(store, "after", "1"));
	dg__store_close(store);
	free(folder);
}

static const dg_test_case cases[] = {
	DG_TEST(test_texts__are_kept_and_found_again),
	DG_TEST(test_device_index__stays_with_the_hardware),
	DG_TEST(test_devices__are_listed_as_last_described),
	DG_TEST(test_values__are_not_shared_across_hardware_driver_or_engine),
	DG_TEST(test_tokens__are_unique_by_name_and_revoked_by_it),
	DG_TEST(test_token_version__changes_with_every_handle),
	DG_TEST(test_store__serves_threads_and_handles_at_once),
	DG_TEST(test_store__keeps_what_it_acknowledged_over_kill),
	DG_TEST(test_open__makes_folder_and_file_private),
	DG_TEST(test_open__of_a_new_state_by_many_at_once),
	DG_TEST(test_open__refuses_a_damaged_state_and_says_what_to_do),
	DG_TEST(test_open__refuses_a_cut_state),
	DG_TEST(test_open__leaves_a_newer_state_alone),
	DG_TEST(test_open__takes_an_older_state_to_the_present),
	DG_TEST(test_open__refuses_a_link_in_place_of_the_state),
	DG_TEST(test_open__refuses_what_it_may_not_write),
	DG_TEST(test_store__knows_what_it_could_not_write_and_writes_it_later),
};

DG_TEST_MAIN("store", cases)
