/* Leases in the state. See store.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/store_internal.h"

static const char cannot_write[] = "the state cannot be written";
static const char cannot_read[] = "the state cannot be read";

static dg_err run(dg__store *store, const char *sql, dg_error *reterr)
{
	return dg__store_run_take(store, dg__store_prepare(store, sql), cannot_write, reterr);
}

static dg_err next_fencing_token(dg__store *store, uint64_t *ret_token, dg_error *reterr)
{
	dg_err err = DG_OK;
	sqlite3_stmt *statement = dg__store_prepare(store,
		"INSERT INTO counter VALUES('fencing', 1) ON CONFLICT(name) DO UPDATE SET value = "
		"value + 1 RETURNING value");
	if (statement && sqlite3_step(statement) == SQLITE_ROW)
		*ret_token = (uint64_t)sqlite3_column_int64(statement, 0);
	else
		err = dg__store_fault(store, cannot_write, reterr);
	sqlite3_finalize(statement);
	return err;
}

static dg_err insert(dg__store *store, const dg_lease *lease, const char *parent, dg_error *reterr)
{
	sqlite3_stmt *s = dg__store_prepare(
		store, "INSERT OR REPLACE INTO lease VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
	if (s) {
		dg__store_bind_text(s, 1, lease->hardware);
		dg__store_bind_text(s, 2, parent);
		dg__store_bind_text(s, 3, lease->id);
		dg__store_bind_text(s, 4, lease->device);
		sqlite3_bind_int64(s, 5, lease->index);
		dg__store_bind_text(s, 6, lease->holder);
		sqlite3_bind_int64(s, 7, (sqlite3_int64)lease->fencing_token);
		sqlite3_bind_int64(s, 8, lease->ttl_s);
		sqlite3_bind_int64(s, 9, lease->taken_at_ms);
		sqlite3_bind_int64(s, 10, lease->expires_at_ms);
	}
	return dg__store_run_take(store, s, cannot_write, reterr);
}

static dg_err end_transaction(dg__store *store, dg_err err, dg_error *reterr)
{
	if (err == DG_OK)
		err = run(store, "COMMIT", reterr);
	if (err != DG_OK)
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return err;
}

dg_err dg__store_put_lease(dg__store *store, const char *parent, dg_lease *lease, dg_error *reterr)
{
	if (store->frozen)
		return dg_error_set(reterr, DG_ESTATE,
			"no lease is given or renewed while the state cannot be written: %s",
			store->problem);
	dg__store_lock(store);
	uint64_t token = lease->fencing_token;
	dg_err err = run(store, "BEGIN IMMEDIATE", reterr);
	if (err == DG_OK) {
		if (token == 0)
			err = next_fencing_token(store, &token, reterr);
		dg_lease written = *lease;
		written.fencing_token = token;
		if (err == DG_OK)
			err = insert(store, &written, parent, reterr);
		err = end_transaction(store, err, reterr);
	}
	if (err == DG_OK)
		lease->fencing_token = token;
	dg__store_unlock(store);
	return err;
}

dg_err dg__store_drop_lease(dg__store *store, const char *hardware, dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *s = dg__store_prepare(store, "DELETE FROM lease WHERE hardware = ?");
	if (s)
		dg__store_bind_text(s, 1, hardware);
	dg_err err = dg__store_run_take(store, s, cannot_write, reterr);
	dg__store_unlock(store);
	return err;
}

static void read_text(sqlite3_stmt *s, int column, char *buf, size_t size)
{
	const unsigned char *text = sqlite3_column_text(s, column);
	snprintf(buf, size, "%s", text ? (const char *)text : "");
}

static void read_lease(sqlite3_stmt *s, dg_lease *lease, char *parent, size_t size)
{
	memset(lease, 0, sizeof(*lease));
	read_text(s, 0, lease->hardware, sizeof(lease->hardware));
	read_text(s, 1, parent, size);
	read_text(s, 2, lease->id, sizeof(lease->id));
	read_text(s, 3, lease->device, sizeof(lease->device));
	lease->index = (uint32_t)sqlite3_column_int64(s, 4);
	read_text(s, 5, lease->holder, sizeof(lease->holder));
	lease->fencing_token = (uint64_t)sqlite3_column_int64(s, 6);
	sqlite3_int64 ttl = sqlite3_column_int64(s, 7);
	lease->ttl_s = ttl > 0 && ttl <= DG_LEASE_TTL_MAX_S ? (uint32_t)ttl : 1;
	lease->taken_at_ms = sqlite3_column_int64(s, 8);
	lease->expires_at_ms = sqlite3_column_int64(s, 9);
}

dg_err dg__store_each_lease(dg__store *store,
	void (*visit)(const dg_lease *lease, const char *parent, void *user), void *user,
	dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *s = dg__store_prepare(store,
		"SELECT hardware, parent, id, device, idx, holder, fencing, ttl, taken, expires "
		"FROM lease ORDER BY fencing");
	int step = SQLITE_ERROR;
	while (s && (step = sqlite3_step(s)) == SQLITE_ROW) {
		dg_lease lease;
		char parent[96];
		read_lease(s, &lease, parent, sizeof(parent));
		visit(&lease, parent, user);
	}
	dg_err err = step == SQLITE_DONE ? DG_OK : dg__store_fault(store, cannot_read, reterr);
	sqlite3_finalize(s);
	dg__store_unlock(store);
	return err;
}
