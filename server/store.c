/*
 * See store.h. One connection under a mutex: the state is asked when something changes, never for a
 * plain GET. Values, tokens and audit are in store_records.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/core/clock.h"
#include "server/store_internal.h"

#define BUSY_MS 5000

/* Each step takes the state from its version to the next; none is ever changed. */
static const char *const steps[] = {
	/* 1 */
	"CREATE TABLE text(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE device(id INTEGER PRIMARY KEY, backend TEXT NOT NULL, hardware TEXT NOT NULL,"
	" description TEXT NOT NULL, UNIQUE(backend, hardware));"
	"CREATE TABLE value(backend TEXT, hardware TEXT, driver TEXT, engine TEXT, key TEXT,"
	" json TEXT NOT NULL, PRIMARY KEY(backend, hardware, driver, engine, key)) WITHOUT ROWID;"
	"CREATE TABLE token(name TEXT PRIMARY KEY, scopes INTEGER NOT NULL, sha256 BLOB NOT NULL "
	"UNIQUE,"
	" created INTEGER NOT NULL, expires INTEGER NOT NULL, revoked INTEGER NOT NULL);"
	"CREATE TABLE audit(id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, who TEXT "
	"NOT NULL,"
	" what TEXT NOT NULL, device TEXT NOT NULL);"
	"PRAGMA user_version = 1;",
	/* 2 */
	"CREATE TABLE counter(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE lease(hardware TEXT PRIMARY KEY, parent TEXT NOT NULL, id TEXT NOT NULL,"
	" device TEXT NOT NULL, idx INTEGER NOT NULL, holder TEXT NOT NULL, fencing INTEGER NOT "
	"NULL,"
	" ttl INTEGER NOT NULL, taken INTEGER NOT NULL, expires INTEGER NOT NULL) WITHOUT ROWID;"
	"PRAGMA user_version = 2;",
};

/* Values that the file could not take, newest last. */
static const char unsaved[] =
	"ATTACH ':memory:' AS unsaved;"
	"CREATE TABLE unsaved.value(backend TEXT, hardware TEXT, driver TEXT, engine TEXT, key "
	"TEXT,"
	" json TEXT NOT NULL, UNIQUE(backend, hardware, driver, engine, key));";

#define SCHEMA_VERSION ((int)(sizeof(steps) / sizeof(steps[0])))

dg_err dg__store_fault(dg__store *store, const char *what, dg_error *reterr)
{
	int code = sqlite3_extended_errcode(store->db);
	const char *advice = "";
	switch (code & 0xff) {
	case SQLITE_FULL:
		advice = "; free space on its disk";
		break;
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		advice = "; make its folder writable for this user";
		break;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		advice = "; move the damaged file away, or put a copy back";
		break;
	default:
		break;
	}
	return dg_error_native(reterr, (code & 0xff) == SQLITE_NOMEM ? DG_ENOMEM : DG_ESTATE,
		"sqlite", code, "%s: %s (%s)%s", what, sqlite3_errmsg(store->db), store->where,
		advice);
}

void dg__store_lock(dg__store *store)
{
	pthread_mutex_lock(&store->lock);
}

void dg__store_unlock(dg__store *store)
{
	pthread_mutex_unlock(&store->lock);
}

sqlite3_stmt *dg__store_prepare(dg__store *store, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return NULL;
	return statement;
}

void dg__store_bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

char *dg__store_column_text(sqlite3_stmt *statement, int column)
{
	const unsigned char *text = sqlite3_column_text(statement, column);
	return strdup(text ? (const char *)text : "");
}

static void note_health(dg__store *store, const char *problem)
{
	bool fails = *problem, failed = *store->problem;
	if (store->frozen)
		return;
	snprintf(store->problem, sizeof(store->problem), "%.199s", problem);
	if (fails != failed && store->on_health)
		store->on_health(fails ? store->problem : NULL, store->user);
}

dg_err dg__store_run_take(
	dg__store *store, sqlite3_stmt *statement, const char *what, dg_error *reterr)
{
	dg_err err = DG_OK;
	dg_error why = { .code = DG_OK };
	if (!statement || sqlite3_step(statement) != SQLITE_DONE)
		err = dg__store_fault(store, what, &why);
	sqlite3_finalize(statement);
	if (err != DG_OK && reterr)
		*reterr = why;
	note_health(store, err == DG_OK ? "" : why.text);
	return err;
}

void dg__store_on_health(
	dg__store *store, void (*on_health)(const char *problem, void *user), void *user)
{
	dg__store_lock(store);
	store->on_health = on_health;
	store->user = user;
	dg__store_unlock(store);
}

bool dg__store_problem(dg__store *store, char *buf, size_t size)
{
	dg__store_lock(store);
	snprintf(buf, size, "%s", store->problem);
	dg__store_unlock(store);
	return *buf;
}

static dg_err execute(dg__store *store, const char *sql, const char *what, dg_error *reterr)
{
	if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return dg__store_fault(store, what, reterr);
	return DG_OK;
}

/* One integer of a pragma; -1 where it gives none. */
static long long ask_number(dg__store *store, const char *sql)
{
	sqlite3_stmt *statement = dg__store_prepare(store, sql);
	long long number = -1;
	if (statement && sqlite3_step(statement) == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return number;
}

static dg_err check_whole(dg__store *store, dg_error *reterr)
{
	sqlite3_stmt *statement = dg__store_prepare(store, "PRAGMA quick_check(1)");
	dg_err err = DG_OK;
	if (!statement || sqlite3_step(statement) != SQLITE_ROW)
		err = dg__store_fault(store, "the state cannot be read", reterr);
	else if (strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0)
		err = dg_error_set(reterr, DG_ESTATE,
			"the state is damaged (%s); move the file away, or put a copy back",
			store->where);
	sqlite3_finalize(statement);
	return err;
}

static dg_err migrate(dg__store *store, dg_error *reterr)
{
	dg_err err = execute(store, "BEGIN IMMEDIATE", "the state cannot be changed", reterr);
	if (err != DG_OK)
		return err;
	long long version = ask_number(store, "PRAGMA user_version");
	if (version > SCHEMA_VERSION)
		err = dg_error_set(reterr, DG_ENEWER,
			"the state (%s) has version %lld; this devgated knows up to %d",
			store->where, version, SCHEMA_VERSION);
	else if (version < 0)
		err = dg__store_fault(store, "the state cannot be read", reterr);
	for (; err == DG_OK && version >= 0 && version < SCHEMA_VERSION; version++)
		err = execute(store, steps[version], "the state cannot be made", reterr);
	if (err == DG_OK)
		return execute(store, "COMMIT", "the state cannot be made", reterr);
	sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return err;
}

static dg_err make_directory(const char *directory, dg_error *reterr)
{
	if (mkdir(directory, 0700) != 0 && errno != EEXIST)
		return dg_error_native(reterr, DG_ESTATE, "mkdir", errno,
			"%.300s cannot be made: %s", directory, strerror(errno));
	if (access(directory, R_OK | W_OK | X_OK) != 0)
		return dg_error_native(reterr, DG_ESTATE, "access", errno,
			"%.300s cannot be written by this user: %s; see --state-dir and "
			"--ephemeral",
			directory, strerror(errno));
	return DG_OK;
}

/* The file is made by us, so that nobody else ever could read it. */
static dg_err make_file(dg__store *store, dg_error *reterr)
{
	int fd = open(store->where, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return dg_error_native(reterr, DG_ESTATE, "open", errno,
			"%.300s cannot be written: %s", store->where, strerror(errno));
	close(fd);
	return DG_OK;
}

/* While another process makes the same new state, the change of mode is refused at once: SQLite
 * does not wait for it as for everything else. */
static dg_err set_journal(dg__store *store, dg_error *reterr)
{
	static const char mode[] = "PRAGMA journal_mode = WAL";
	uint64_t until = dg__clock_ns() + BUSY_MS * 1000000ull;
	while (sqlite3_exec(store->db, mode, NULL, NULL, NULL) == SQLITE_BUSY &&
		dg__clock_ns() < until)
		dg__clock_sleep_ns(10000000);
	return execute(store, mode, "the state cannot be opened", reterr);
}

static dg_err open_database(dg__store *store, const char *directory, dg_error *reterr)
{
	dg_err err = DG_OK;
	snprintf(store->where, sizeof(store->where), "%s", ":memory:");
	if (directory) {
		int n = snprintf(store->where, sizeof(store->where), "%s/state.db", directory);
		if (n < 0 || (size_t)n >= sizeof(store->where))
			return dg_error_set(
				reterr, DG_ESTATE, "the state folder's path is too long");
		err = make_directory(directory, reterr);
		if (err == DG_OK)
			err = make_file(store, reterr);
	}
	if (err != DG_OK)
		return err;
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	if (sqlite3_open_v2(store->where, &store->db, flags, NULL) != SQLITE_OK)
		return store->db ? dg__store_fault(store, "the state cannot be opened", reterr)
				 : dg_error_set(reterr, DG_ENOMEM, NULL);
	sqlite3_busy_timeout(store->db, BUSY_MS);
	err = set_journal(store, reterr);
	if (err == DG_OK)
		err = execute(store, "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF",
			"the state cannot be opened", reterr);
	if (err == DG_OK)
		err = check_whole(store, reterr);
	if (err == DG_OK)
		err = migrate(store, reterr);
	if (err == DG_OK)
		err = execute(store, unsaved, "no memory for the state", reterr);
	return err;
}

dg_err dg__store_open(const char *directory, dg__store **ret_store, dg_error *reterr)
{
	dg__store *store = calloc(1, sizeof(*store));
	if (!store)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	if (pthread_mutex_init(&store->lock, NULL) != 0) {
		free(store);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	dg_err err = open_database(store, directory, reterr);
	if (err == DG_OK)
		*ret_store = store;
	else
		dg__store_close(store);
	return err;
}

void dg__store_close(dg__store *store)
{
	if (!store)
		return;
	if (store->db)
		dg__store_save_unsaved(store);
	sqlite3_close(store->db);
	pthread_mutex_destroy(&store->lock);
	free(store);
}

static dg_err get_text(dg__store *store, const char *name, char **ret_text, dg_error *reterr)
{
	sqlite3_stmt *statement = dg__store_prepare(store, "SELECT value FROM text WHERE name = ?");
	dg_err err = DG_OK;
	int step = SQLITE_ERROR;
	if (statement) {
		dg__store_bind_text(statement, 1, name);
		step = sqlite3_step(statement);
	}
	if (step == SQLITE_DONE)
		err = dg_error_set(reterr, DG_ENOTFOUND, "the state has no %s", name);
	else if (step != SQLITE_ROW)
		err = dg__store_fault(store, "the state cannot be read", reterr);
	else if (!(*ret_text = dg__store_column_text(statement, 0)))
		err = dg_error_set(reterr, DG_ENOMEM, NULL);
	sqlite3_finalize(statement);
	return err;
}

dg_err dg__store_get_text(dg__store *store, const char *name, char **ret_text, dg_error *reterr)
{
	dg__store_lock(store);
	dg_err err = get_text(store, name, ret_text, reterr);
	dg__store_unlock(store);
	return err;
}

static dg_err put_text(
	dg__store *store, const char *sql, const char *name, const char *text, dg_error *reterr)
{
	sqlite3_stmt *statement = dg__store_prepare(store, sql);
	if (statement) {
		dg__store_bind_text(statement, 1, name);
		dg__store_bind_text(statement, 2, text);
	}
	return dg__store_run_take(store, statement, "the state cannot be written", reterr);
}

dg_err dg__store_set_text(dg__store *store, const char *name, const char *text, dg_error *reterr)
{
	dg__store_lock(store);
	dg_err err =
		put_text(store, "INSERT OR REPLACE INTO text VALUES(?, ?)", name, text, reterr);
	dg__store_unlock(store);
	return err;
}

dg_err dg__store_keep_text(
	dg__store *store, const char *name, const char *text, char **ret_text, dg_error *reterr)
{
	dg__store_lock(store);
	dg_err err = put_text(store, "INSERT OR IGNORE INTO text VALUES(?, ?)", name, text, reterr);
	if (err == DG_OK)
		err = get_text(store, name, ret_text, reterr);
	dg__store_unlock(store);
	return err;
}
