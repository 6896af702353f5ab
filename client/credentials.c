/* See credentials.h. */
#include "client/credentials.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/file.h"
#include "client/gateways.h"

/* Each set is a program's choice and not a peer's; the limit only stops a program that makes one up
 * for every call from growing without bound. */
#define SETS_MAX 4096u

static struct {
	pthread_mutex_t lock;
	dg__credentials *sets; /* number n is at n - 1 */
	size_t count, room;
	dg__address **named; /* open addressing; size is a power of two */
	size_t named_count, named_room;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&state.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&state.lock);
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, unlock, unlock);
}

static void lock(void)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&state.lock);
}

static bool text_equal(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool set_equal(const dg__credentials *a, const dg__credentials *b)
{
	return text_equal(a->pin, b->pin) && text_equal(a->ca_file, b->ca_file) &&
	       text_equal(a->token_file, b->token_file) && text_equal(a->cert_file, b->cert_file) &&
	       text_equal(a->key_file, b->key_file);
}

static const char *given(const char *text)
{
	return text && *text ? text : NULL;
}

/* curl takes anything else in its place for the name of a key file, which would be read, or not
 * found, only once the peer has answered. */
static bool pin_is_valid(const char *pin)
{
	static const char prefix[] = "sha256//";
	static const char base64[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (;;) {
		if (strncmp(pin, prefix, sizeof(prefix) - 1) != 0)
			return false;
		pin += sizeof(prefix) - 1;
		if (strspn(pin, base64) != 43 || pin[43] != '=')
			return false;
		pin += 44;
		if (*pin == '\0')
			return true;
		if (*pin++ != ';')
			return false;
	}
}

static dg_err check(const dg__credentials *set, dg_error *reterr)
{
	if (set->pin && !pin_is_valid(set->pin))
		return dg_error_set(reterr, DG_ECREDENTIAL,
			"'%.80s' is not a pin, expected sha256// and 44 characters of base64, "
			"several "
			"separated by ';'",
			set->pin);
	if (set->key_file && !set->cert_file)
		return dg_error_set(reterr, DG_ECREDENTIAL,
			"the key file '%.200s' was given without a certificate file",
			set->key_file);
	return DG_OK;
}

static void set_free(dg__credentials *set)
{
	const char *texts[] = { set->pin, set->ca_file, set->token_file, set->cert_file,
		set->key_file };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free((void *)(uintptr_t)texts[i]);
}

static bool copy_text(const char *text, const char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return !text || *ret_copy;
}

static bool set_copy(const dg__credentials *set, dg__credentials *ret_copy)
{
	dg__credentials copy = { 0 };
	if (copy_text(set->pin, &copy.pin) && copy_text(set->ca_file, &copy.ca_file) &&
		copy_text(set->token_file, &copy.token_file) &&
		copy_text(set->cert_file, &copy.cert_file) &&
		copy_text(set->key_file, &copy.key_file)) {
		*ret_copy = copy;
		return true;
	}
	set_free(&copy);
	return false;
}

/* With the lock held. */
static dg_err intern(const dg__credentials *set, uint32_t *ret_number, dg_error *reterr)
{
	for (size_t i = 0; i < state.count; i++) {
		if (set_equal(&state.sets[i], set)) {
			*ret_number = (uint32_t)i + 1;
			return DG_OK;
		}
	}
	if (state.count == SETS_MAX)
		return dg_error_set(reterr, DG_ECREDENTIAL,
			"this process has used %u different sets of credentials, no more are kept",
			SETS_MAX);
	if (state.count == state.room) {
		size_t room = state.room ? state.room * 2 : 16;
		dg__credentials *more = realloc(state.sets, room * sizeof(*more));
		if (!more)
			return dg_error_set(reterr, DG_ENOMEM, NULL);
		state.sets = more;
		state.room = room;
	}
	if (!set_copy(set, &state.sets[state.count]))
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	*ret_number = (uint32_t)++state.count;
	return DG_OK;
}

dg_err dg__credentials_intern(
	const dg__credentials *credentials, uint32_t *ret_number, dg_error *reterr)
{
	const dg__credentials set = { given(credentials->pin), given(credentials->ca_file),
		given(credentials->token_file), given(credentials->cert_file),
		given(credentials->key_file) };
	if (set_equal(&set, &(dg__credentials){ 0 })) {
		*ret_number = 0;
		return DG_OK;
	}
	dg_err err = check(&set, reterr);
	if (err)
		return err;
	lock();
	err = intern(&set, ret_number, reterr);
	unlock();
	return err;
}

dg_err dg__credentials_of_call(const dg_call *options, uint32_t *ret_number, dg_error *reterr)
{
	if (!options) {
		*ret_number = 0;
		return DG_OK;
	}
	const dg__credentials set = { options->pin, options->ca_file, options->token_file,
		options->cert_file, options->key_file };
	return dg__credentials_intern(&set, ret_number, reterr);
}

static size_t hash(const dg__address *address)
{
	uint64_t h = 14695981039346656037u ^ address->port ^ ((uint64_t)address->tls << 16);
	for (const char *p = address->host; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	return (size_t)(h ^ h >> 32);
}

/* Place of an address, or the free one where it belongs. */
static dg__address **named_place(dg__address **table, size_t room, const dg__address *address)
{
	size_t at = hash(address) & (room - 1);
	while (table[at] && !dg__address_equal(table[at], address))
		at = (at + 1) & (room - 1);
	return &table[at];
}

static bool named_grow(void)
{
	size_t room = state.named_room ? state.named_room * 2 : 64;
	dg__address **table = calloc(room, sizeof(dg__address *));
	if (!table)
		return false;
	for (size_t i = 0; i < state.named_room; i++)
		if (state.named[i])
			*named_place(table, room, state.named[i]) = state.named[i];
	free(state.named);
	state.named = table;
	state.named_room = room;
	return true;
}

static dg_err remember(const dg__address *address, dg_error *reterr)
{
	bool ok = true;
	lock();
	if (state.named_count * 2 >= state.named_room)
		ok = named_grow();
	dg__address **place = ok ? named_place(state.named, state.named_room, address) : NULL;
	if (place && !*place) {
		*place = malloc(sizeof(**place));
		ok = *place;
		if (ok) {
			**place = *address;
			state.named_count++;
		}
	}
	unlock();
	return ok ? DG_OK : dg_error_set(reterr, DG_ENOMEM, NULL);
}

dg_err dg__credentials_name(
	const dg__address *address, const dg_call *options, uint32_t *ret_number, dg_error *reterr)
{
	uint32_t number = 0;
	dg_err err = dg__credentials_of_call(options, &number, reterr);
	if (!err && number == 0)
		err = remember(address, reterr);
	if (!err)
		*ret_number = number;
	return err;
}

static bool is_named(const dg__address *address)
{
	lock();
	bool found = state.named_room && *named_place(state.named, state.named_room, address);
	unlock();
	return found;
}

static dg_err environment_set(uint32_t *ret_number, dg_error *reterr)
{
	const dg__credentials set = { .pin = getenv("DEVGATE_PIN"),
		.ca_file = getenv("DEVGATE_CACERT"),
		.token_file = getenv("DEVGATE_TOKEN_FILE") };
	return dg__credentials_intern(&set, ret_number, reterr);
}

/* The set that the ambient one stands for towards an address; 0: nothing. */
static dg_err ambient_set(const dg__address *address, uint32_t *ret_number, dg_error *reterr)
{
	dg__gateways gateways = { 0 };
	dg_err err = dg__gateways_read(&gateways, reterr);
	if (err)
		return err;
	bool allowed = false;
	uint32_t number = 0;
	for (size_t i = 0; i < gateways.count && !allowed; i++) {
		if (dg__address_equal(&gateways.entries[i].address, address)) {
			number = gateways.entries[i].credential;
			allowed = true;
		}
	}
	dg__gateways_finish(&gateways);
	if (!allowed && !is_named(address)) {
		dg__address standard;
		if ((err = dg__address_default(&standard, reterr)))
			return err;
		allowed = dg__address_equal(&standard, address);
	} else {
		allowed = true;
	}
	if (allowed && number == 0)
		return environment_set(ret_number, reterr);
	*ret_number = number;
	return DG_OK;
}

static dg_err read_token(const char *path, char *token, dg_error *reterr)
{
	char *text = NULL;
	size_t length = 0;
	dg_err err = dg__file_read(path, DG__TOKEN_MAX, DG_ECREDENTIAL, &text, &length, reterr);
	if (err || !text)
		return err;
	const char *start = text + strspn(text, " \t");
	size_t n = strcspn(start, "\r\n");
	while (n && (start[n - 1] == ' ' || start[n - 1] == '\t'))
		n--;
	bool valid = n > 0;
	for (size_t i = 0; i < n; i++)
		valid = valid && start[i] > 0x20 && start[i] < 0x7f;
	if (valid) {
		memcpy(token, start, n);
		token[n] = '\0';
	} else {
		err = dg_error_set(reterr, DG_ECREDENTIAL,
			n ? "the token in '%.200s' has other than printable characters"
			  : "the first line of the token file '%.200s' is empty",
			path);
	}
	free(text);
	return err;
}

/* curl opens these by their path, and would wait at a pipe beyond every deadline. */
static dg_err check_files(const dg__credentials *set, dg_error *reterr)
{
	const char *paths[] = { set->ca_file, set->cert_file, set->key_file };
	dg_err err = DG_OK;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) && err == DG_OK; i++)
		if (paths[i])
			err = dg__file_check(paths[i], DG_ECREDENTIAL, reterr);
	return err;
}

dg_err dg__credentials_identify(
	uint32_t number, const dg__address *address, dg__identity *ret_identity, dg_error *reterr)
{
	ret_identity->set = 0;
	ret_identity->credentials = (dg__credentials){ 0 };
	ret_identity->token[0] = '\0';
	if (!address->tls)
		return DG_OK;
	dg_err err = number ? DG_OK : ambient_set(address, &number, reterr);
	if (err || number == 0)
		return err;
	lock();
	bool known = number <= state.count;
	if (known)
		ret_identity->credentials = state.sets[number - 1];
	unlock();
	if (!known)
		return dg_error_set(reterr, DG_EINTERNAL, "no set of credentials has the number %u",
			(unsigned)number);
	err = check_files(&ret_identity->credentials, reterr);
	if (err)
		return err;
	ret_identity->set = number;
	if (!ret_identity->credentials.token_file)
		return DG_OK;
	return read_token(ret_identity->credentials.token_file, ret_identity->token, reterr);
}
