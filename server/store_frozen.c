/*
 * A state that can be read and not written, as memory. See dg__store_open_frozen().
 *
 * The database is copied before it is opened: what a killed gateway left in the write-ahead log
 * counts too, and SQLite can take that up only where it may write.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/core/file.h"
#include "server/store_internal.h"

#define PATH_ROOM 1200
#define STATE_MAX ((size_t)1 << 30)

static const char *const names[] = { "state.db", "state.db-wal" };

static dg_err write_whole(const char *path, const char *bytes, size_t length, dg_error *reterr)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool ok = fd >= 0;
	while (ok && length > 0) {
		ssize_t n = write(fd, bytes, length);
		ok = n > 0 || (n < 0 && errno == EINTR);
		if (n > 0) {
			bytes += n;
			length -= (size_t)n;
		}
	}
	int number = ok ? 0 : errno;
	if (fd >= 0)
		close(fd);
	return ok ? DG_OK
		  : dg_error_native(reterr, DG_ESTATE, "system", number,
			    "%.300s cannot be written: %s", path, strerror(number));
}

static dg_err copy_file(
	const char *from_dir, const char *to_dir, const char *name, dg_error *reterr)
{
	char from[PATH_ROOM], to[PATH_ROOM];
	char *bytes = NULL;
	size_t length = 0;
	snprintf(from, sizeof(from), "%.1000s/%s", from_dir, name);
	snprintf(to, sizeof(to), "%.1000s/%s", to_dir, name);
	dg_err err = dg__file_read(from, STATE_MAX, DG_ESTATE, &bytes, &length, reterr);
	if (err == DG_OK)
		err = write_whole(to, bytes, length, reterr);
	free(bytes);
	return err;
}

static dg_err copy_state(const char *from_dir, const char *to_dir, dg_error *reterr)
{
	char log[PATH_ROOM];
	dg_err err = copy_file(from_dir, to_dir, names[0], reterr);
	snprintf(log, sizeof(log), "%.1000s/%s", from_dir, names[1]);
	if (err == DG_OK && access(log, F_OK) == 0)
		err = copy_file(from_dir, to_dir, names[1], reterr);
	return err;
}

static void remove_copy(const char *directory)
{
	static const char *const left[] = { "state.db", "state.db-wal", "state.db-shm" };
	char path[PATH_ROOM];
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		snprintf(path, sizeof(path), "%.1000s/%s", directory, left[i]);
		unlink(path);
	}
	rmdir(directory);
}

/* A private folder; memory before disk, which may be the one that is full. */
static bool make_folder(char path[PATH_ROOM])
{
	const char *const places[] = { getenv("TMPDIR"), "/dev/shm", "/tmp" };
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!places[i] || *places[i] != '/')
			continue;
		snprintf(path, PATH_ROOM, "%.1000s/devgate-XXXXXX", places[i]);
		if (mkdtemp(path))
			return true;
	}
	return false;
}

static dg_err copy_to_memory(dg__store *from, dg__store *to, dg_error *reterr)
{
	sqlite3_backup *backup = sqlite3_backup_init(to->db, "main", from->db, "main");
	bool ok = backup && sqlite3_backup_step(backup, -1) == SQLITE_DONE;
	if (backup)
		ok = sqlite3_backup_finish(backup) == SQLITE_OK && ok;
	return ok ? DG_OK : dg__store_fault(to, "the state cannot be read into memory", reterr);
}

static dg_err read_copy(const char *directory, dg__store **ret_store, dg_error *reterr)
{
	dg__store *copy = NULL, *memory = NULL;
	dg_err err = dg__store_open(directory, &copy, reterr);
	if (err == DG_OK)
		err = dg__store_open(NULL, &memory, reterr);
	if (err == DG_OK)
		err = copy_to_memory(copy, memory, reterr);
	dg__store_close(copy);
	if (err == DG_OK)
		*ret_store = memory;
	else
		dg__store_close(memory);
	return err;
}

dg_err dg__store_open_frozen(
	const char *directory, const char *problem, dg__store **ret_store, dg_error *reterr)
{
	char copy[PATH_ROOM];
	dg__store *store = NULL;
	if (strlen(directory) >= 1000 || !make_folder(copy))
		return dg_error_set(reterr, DG_ESTATE, "there is no room for a copy of the state");
	dg_err err = copy_state(directory, copy, reterr);
	if (err == DG_OK)
		err = read_copy(copy, &store, reterr);
	remove_copy(copy);
	if (err != DG_OK)
		return err;
	store->frozen = true;
	snprintf(store->problem, sizeof(store->problem), "%.199s", problem);
	*ret_store = store;
	return DG_OK;
}
