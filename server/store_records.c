/* Devices, values, tokens and audit. See store.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/clock.h"
#include "server/store_internal.h"

#define AUDIT_MAX "100000"
#define UNSAVED_MAX "4096"
/* Of the value of a key, what could not be saved is newer. */
#define VALUE_OF "WHERE backend = ?1 AND hardware = ?2 AND driver = ?3 AND engine = ?4"

static const char cannot_read[] = "the state cannot be read";
static const char cannot_write[] = "the state cannot be written";

dg_err dg__store_device_index(dg__store *store, const char *backend, const char *hardware,
	const char *description_json, uint32_t *ret_index, dg_error *reterr)
{
	dg__store_lock(store);
	/* Rows are never deleted, so that an id is never given twice; the first one becomes index
	 * 0. */
	sqlite3_stmt *statement = dg__store_prepare(store,
		"INSERT INTO device(backend, hardware, description) VALUES(?, ?, ?)"
		" ON CONFLICT(backend, hardware) DO UPDATE SET description = excluded.description "
		"RETURNING id");
	dg_err err = DG_OK;
	long long id = 0;
	if (statement) {
		dg__store_bind_text(statement, 1, backend);
		dg__store_bind_text(statement, 2, hardware);
		dg__store_bind_text(statement, 3, description_json);
	}
	if (!statement || sqlite3_step(statement) != SQLITE_ROW)
		err = dg__store_fault(store, cannot_write, reterr);
	else
		id = sqlite3_column_int64(statement, 0);
	/* The insert is done when the statement has run to its end. */
	if (err == DG_OK && sqlite3_step(statement) != SQLITE_DONE)
		err = dg__store_fault(store, cannot_write, reterr);
	sqlite3_finalize(statement);
	dg__store_unlock(store);
	if (err == DG_OK && (id < 1 || id > 65536))
		err = dg_error_set(reterr, DG_ERANGE, "the state has no further device index");
	if (err == DG_OK)
		*ret_index = (uint32_t)(id - 1);
	return err;
}

/* One row of the device table; false: out of memory. */
static bool read_device(sqlite3_stmt *statement, dg__store_device *device)
{
	device->index = (uint32_t)(sqlite3_column_int64(statement, 0) - 1);
	snprintf(device->backend, sizeof(device->backend), "%s",
		(const char *)sqlite3_column_text(statement, 1));
	snprintf(device->hardware, sizeof(device->hardware), "%s",
		(const char *)sqlite3_column_text(statement, 2));
	device->description_json = dg__store_column_text(statement, 3);
	return device->description_json != NULL;
}

void dg__store_devices_free(dg__store_device *devices, size_t count)
{
	for (size_t i = 0; devices && i < count; i++)
		free(devices[i].description_json);
	free(devices);
}

dg_err dg__store_devices(
	dg__store *store, dg__store_device **ret_devices, size_t *ret_count, dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *statement = dg__store_prepare(store,
		"SELECT id, backend, hardware, description FROM device WHERE id BETWEEN 1 AND 65536"
		" AND length(backend) < 16 AND length(hardware) < 80 ORDER BY id LIMIT 1024");
	dg__store_device *devices = calloc(DG__DEVICES_MAX, sizeof(*devices));
	size_t count = 0;
	int step = SQLITE_ERROR;
	bool room = devices != NULL;
	while (statement && room && count < DG__DEVICES_MAX &&
		(step = sqlite3_step(statement)) == SQLITE_ROW)
		room = read_device(statement, &devices[count++]);
	dg_err err = DG_OK;
	if (!room)
		err = dg_error_set(reterr, DG_ENOMEM, NULL);
	else if (step != SQLITE_DONE && count < DG__DEVICES_MAX)
		err = dg__store_fault(store, cannot_read, reterr);
	sqlite3_finalize(statement);
	dg__store_unlock(store);
	if (err != DG_OK) {
		dg__store_devices_free(devices, count);
		return err;
	}
	*ret_devices = devices;
	*ret_count = count;
	return DG_OK;
}

static void bind_value_key(sqlite3_stmt *statement, const dg__value_key *key)
{
	dg__store_bind_text(statement, 1, key->backend);
	dg__store_bind_text(statement, 2, key->hardware);
	dg__store_bind_text(statement, 3, key->driver);
	dg__store_bind_text(statement, 4, key->engine);
}

static sqlite3_stmt *put_value(
	dg__store *store, const char *sql, const dg__value_key *key, const char *value_json)
{
	sqlite3_stmt *statement = dg__store_prepare(store, sql);
	if (statement) {
		bind_value_key(statement, key);
		dg__store_bind_text(statement, 5, key->key);
		dg__store_bind_text(statement, 6, value_json);
	}
	return statement;
}

/* The file takes it, or memory does until the file can. */
static void keep_unsaved(dg__store *store, const dg__value_key *key, const char *value_json)
{
	sqlite3_stmt *statement = put_value(store,
		"INSERT OR REPLACE INTO unsaved.value VALUES(?, ?, ?, ?, ?, ?)", key, value_json);
	if (statement)
		(void)sqlite3_step(statement);
	sqlite3_finalize(statement);
	(void)sqlite3_exec(store->db,
		"DELETE FROM unsaved.value WHERE rowid <= (SELECT max(rowid) FROM unsaved.value) "
		"- " UNSAVED_MAX,
		NULL, NULL, NULL);
	store->unsaved = true;
}

/* A newer one is in the file. */
static void drop_unsaved(dg__store *store, const dg__value_key *key)
{
	sqlite3_stmt *statement =
		dg__store_prepare(store, "DELETE FROM unsaved.value " VALUE_OF " AND key = ?5");
	if (statement) {
		bind_value_key(statement, key);
		dg__store_bind_text(statement, 5, key->key);
		(void)sqlite3_step(statement);
	}
	sqlite3_finalize(statement);
}

void dg__store_save_unsaved(dg__store *store)
{
	if (store->unsaved &&
		sqlite3_exec(store->db,
			"INSERT OR REPLACE INTO main.value SELECT * FROM unsaved.value;"
			"DELETE FROM unsaved.value",
			NULL, NULL, NULL) == SQLITE_OK)
		store->unsaved = false;
}

dg_err dg__store_put_value(
	dg__store *store, const dg__value_key *key, const char *value_json, dg_error *reterr)
{
	dg__store_lock(store);
	dg_err err = dg__store_run_take(store,
		put_value(store, "INSERT OR REPLACE INTO main.value VALUES(?, ?, ?, ?, ?, ?)", key,
			value_json),
		cannot_write, reterr);
	if (err != DG_OK)
		keep_unsaved(store, key, value_json);
	else if (store->unsaved)
		drop_unsaved(store, key);
	if (err == DG_OK)
		dg__store_save_unsaved(store);
	dg__store_unlock(store);
	return err;
}

dg_err dg__store_get_value(
	dg__store *store, const dg__value_key *key, char **ret_json, dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *statement = dg__store_prepare(store,
		"SELECT json FROM unsaved.value " VALUE_OF " AND key = ?5 "
		"UNION ALL SELECT json FROM main.value " VALUE_OF " AND key = ?5 LIMIT 1");
	int step = SQLITE_ERROR;
	dg_err err = DG_OK;
	if (statement) {
		bind_value_key(statement, key);
		dg__store_bind_text(statement, 5, key->key);
		step = sqlite3_step(statement);
	}
	if (step == SQLITE_DONE)
		err = dg_error_set(reterr, DG_ENOTFOUND, "%s has not been measured", key->key);
	else if (step != SQLITE_ROW)
		err = dg__store_fault(store, cannot_read, reterr);
	else if (!(*ret_json = dg__store_column_text(statement, 0)))
		err = dg_error_set(reterr, DG_ENOMEM, NULL);
	sqlite3_finalize(statement);
	dg__store_unlock(store);
	return err;
}

dg_err dg__store_each_value(dg__store *store, const dg__value_key *key,
	void (*visit)(const char *json, void *user), void *user, dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *statement =
		dg__store_prepare(store, "SELECT json, key FROM unsaved.value " VALUE_OF
					 " UNION ALL SELECT json, key FROM main.value " VALUE_OF
					 " AND key NOT IN (SELECT key FROM unsaved.value " VALUE_OF
					 ") ORDER BY key LIMIT 1024");
	int step = SQLITE_ERROR;
	if (statement)
		bind_value_key(statement, key);
	while (statement && (step = sqlite3_step(statement)) == SQLITE_ROW)
		visit((const char *)sqlite3_column_text(statement, 0), user);
	dg_err err = step == SQLITE_DONE ? DG_OK : dg__store_fault(store, cannot_read, reterr);
	sqlite3_finalize(statement);
	dg__store_unlock(store);
	return err;
}

dg_err dg__store_add_token(dg__store *store, const dg__token *token, dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *statement =
		dg__store_prepare(store, "INSERT OR IGNORE INTO token VALUES(?, ?, ?, ?, ?, 0)");
	if (statement) {
		dg__store_bind_text(statement, 1, token->name);
		sqlite3_bind_int64(statement, 2, token->scopes);
		sqlite3_bind_blob(
			statement, 3, token->sha256, sizeof(token->sha256), SQLITE_TRANSIENT);
		sqlite3_bind_int64(statement, 4, token->created_at_ms);
		sqlite3_bind_int64(statement, 5, token->expires_at_ms);
	}
	dg_err err = dg__store_run_take(store, statement, cannot_write, reterr);
	if (err == DG_OK && sqlite3_changes(store->db) == 0)
		err = dg_error_set(reterr, DG_EINVALID,
			"there is a token named '%s' already; names are not used again",
			token->name);
	dg__store_unlock(store);
	return err;
}

dg_err dg__store_revoke_token(dg__store *store, const char *name, dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *statement =
		dg__store_prepare(store, "UPDATE token SET revoked = 1 WHERE name = ?");
	if (statement)
		dg__store_bind_text(statement, 1, name);
	dg_err err = dg__store_run_take(store, statement, cannot_write, reterr);
	if (err == DG_OK && sqlite3_changes(store->db) == 0)
		err = dg_error_set(reterr, DG_ENOTFOUND, "there is no token named '%.63s'", name);
	dg__store_unlock(store);
	return err;
}

static void read_token(sqlite3_stmt *statement, dg__token *token)
{
	memset(token, 0, sizeof(*token));
	snprintf(token->name, sizeof(token->name), "%s",
		(const char *)sqlite3_column_text(statement, 0));
	token->scopes = (unsigned)sqlite3_column_int64(statement, 1) & 0xfu;
	const void *hash = sqlite3_column_blob(statement, 2);
	if (hash && sqlite3_column_bytes(statement, 2) == (int)sizeof(token->sha256))
		memcpy(token->sha256, hash, sizeof(token->sha256));
	else
		token->revoked = true;
	token->created_at_ms = sqlite3_column_int64(statement, 3);
	token->expires_at_ms = sqlite3_column_int64(statement, 4);
	token->revoked = token->revoked || sqlite3_column_int(statement, 5);
}

dg_err dg__store_tokens(
	dg__store *store, dg__token **ret_tokens, size_t *ret_count, dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *statement =
		dg__store_prepare(store, "SELECT name, scopes, sha256, created, expires, revoked "
					 "FROM token ORDER BY created, name");
	dg__token *tokens = NULL;
	size_t count = 0, room = 0;
	int step = SQLITE_ERROR;
	dg_err err = DG_OK;
	while (err == DG_OK && statement && (step = sqlite3_step(statement)) == SQLITE_ROW) {
		if (count == room) {
			room = room ? room * 2 : 16;
			dg__token *more = realloc(tokens, room * sizeof(*tokens));
			if (!more) {
				err = dg_error_set(reterr, DG_ENOMEM, NULL);
				break;
			}
			tokens = more;
		}
		read_token(statement, &tokens[count++]);
	}
	if (err == DG_OK && step != SQLITE_DONE)
		err = dg__store_fault(store, cannot_read, reterr);
	sqlite3_finalize(statement);
	dg__store_unlock(store);
	if (err != DG_OK) {
		free(tokens);
		return err;
	}
	*ret_tokens = tokens;
	*ret_count = count;
	return DG_OK;
}

/* SQLite's own counter of changes by other connections, and ours, since the last commit of each. */
dg_err dg__store_token_version(dg__store *store, int64_t *ret_version, dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *statement =
		dg__store_prepare(store, "SELECT data_version * 1000000007 + (SELECT "
					 "coalesce(sum(rowid * 31 + revoked * 17 + 1), 0)"
					 " FROM token) FROM pragma_data_version");
	dg_err err = DG_OK;
	if (statement && sqlite3_step(statement) == SQLITE_ROW)
		*ret_version = sqlite3_column_int64(statement, 0);
	else
		err = dg__store_fault(store, cannot_read, reterr);
	sqlite3_finalize(statement);
	dg__store_unlock(store);
	return err;
}

dg_err dg__store_audit(
	dg__store *store, const char *who, const char *what, const char *device, dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *statement = dg__store_prepare(
		store, "INSERT INTO audit(at, who, what, device) VALUES(?, ?, ?, ?)");
	if (statement) {
		sqlite3_bind_int64(statement, 1, dg__clock_unix_ms());
		dg__store_bind_text(statement, 2, who);
		dg__store_bind_text(statement, 3, what);
		dg__store_bind_text(statement, 4, device);
	}
	dg_err err = dg__store_run_take(store, statement, cannot_write, reterr);
	if (err == DG_OK && sqlite3_last_insert_rowid(store->db) % 1000 == 0)
		err = dg__store_run_take(store,
			dg__store_prepare(store, "DELETE FROM audit WHERE id <= (SELECT max(id) "
						 "FROM audit) - " AUDIT_MAX),
			cannot_write, reterr);
	if (err == DG_OK)
		dg__store_save_unsaved(store);
	dg__store_unlock(store);
	return err;
}

static const char *text_of(sqlite3_stmt *statement, int column)
{
	const unsigned char *text = sqlite3_column_text(statement, column);
	return text ? (const char *)text : "";
}

dg_err dg__store_each_audit(dg__store *store, uint32_t last,
	void (*visit)(const dg__audit_entry *entry, void *user), void *user, dg_error *reterr)
{
	dg__store_lock(store);
	sqlite3_stmt *s = dg__store_prepare(store,
		"SELECT at, who, what, device FROM (SELECT * FROM audit ORDER BY id DESC LIMIT ?) "
		"ORDER BY id");
	int step = SQLITE_ERROR;
	if (s)
		sqlite3_bind_int64(s, 1, last);
	while (s && (step = sqlite3_step(s)) == SQLITE_ROW) {
		dg__audit_entry entry = { .at_ms = sqlite3_column_int64(s, 0),
			.who = text_of(s, 1),
			.what = text_of(s, 2),
			.device = text_of(s, 3) };
		visit(&entry, user);
	}
	dg_err err = step == SQLITE_DONE ? DG_OK : dg__store_fault(store, cannot_read, reterr);
	sqlite3_finalize(s);
	dg__store_unlock(store);
	return err;
}
