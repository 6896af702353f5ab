/*
 * The connection, between store.c and store_records.c.
 */
#ifndef DEVGATE_SERVER_STORE_INTERNAL_H
#define DEVGATE_SERVER_STORE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>

#include "server/store.h"

struct dg__store {
	sqlite3 *db;
	pthread_mutex_t lock;
	char where[1100]; /* the file, for texts */
	char problem[200]; /* why the last write failed; "": it did not */
	bool frozen; /* memory, read from a file that cannot be written; problem says why */
	bool unsaved; /* there are values that the file could not take */
	void (*on_health)(const char *problem, void *user);
	void *user;
};

void dg__store_lock(dg__store *store);
void dg__store_unlock(dg__store *store);
/** Under the lock, all of these. NULL on failure; dg__store_fault() says why. */
sqlite3_stmt *dg__store_prepare(dg__store *store, const char *sql);
void dg__store_bind_text(sqlite3_stmt *statement, int at, const char *text);
/** Owned; NULL: out of memory. */
char *dg__store_column_text(sqlite3_stmt *statement, int column);
/** Step a statement that gives no row, and finalize it. NULL is a failure to prepare. */
dg_err dg__store_run_take(
	dg__store *store, sqlite3_stmt *statement, const char *what, dg_error *reterr);
/** Put what the file could not take into it, where it can now. */
void dg__store_save_unsaved(dg__store *store);
/** DG_ESTATE or DG_ENOMEM, with SQLite's words and advice. */
dg_err dg__store_fault(dg__store *store, const char *what, dg_error *reterr);

#endif
