/* See hostid.h. */
#include "backends/core/hostid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/rand.h>

#ifdef __APPLE__
#include <time.h>
#include <unistd.h>
#endif

#define BYTES 16

/* The machine id itself must not leave the machine, nor match what other programs make of it. */
static const char salt[] = "devgate host id 1\n";

static void to_hex(const unsigned char bytes[BYTES], char ret_id[DG__HOSTID_MAX])
{
	for (size_t i = 0; i < BYTES; i++)
		snprintf(ret_id + 2 * i, 3, "%02x", bytes[i]);
}

static bool is_id(const char *text)
{
	return strlen(text) == 2 * (size_t)BYTES &&
	       strspn(text, "0123456789abcdef") == 2 * (size_t)BYTES;
}

bool dg__hostid_hash(const char *machine_id, char ret_id[DG__HOSTID_MAX])
{
	char text[sizeof(salt) + 2 * BYTES];
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned length = 0;
	if (!is_id(machine_id))
		return false;
	int size = snprintf(text, sizeof(text), "%s%s", salt, machine_id);
	if (EVP_Digest(text, (size_t)size, digest, &length, EVP_sha256(), NULL) != 1)
		return false;
	to_hex(digest, ret_id);
	return true;
}

#ifdef __APPLE__
static bool machine_id(char ret_id[DG__HOSTID_MAX])
{
	unsigned char uuid[BYTES];
	struct timespec wait = { 0 };
	if (gethostuuid(uuid, &wait) != 0)
		return false;
	to_hex(uuid, ret_id);
	return true;
}
#else
static bool machine_id(char ret_id[DG__HOSTID_MAX])
{
	static const char *const paths[] = { "/etc/machine-id", "/var/lib/dbus/machine-id" };
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		FILE *file = fopen(paths[i], "re");
		char line[DG__HOSTID_MAX] = "";
		if (!file)
			continue;
		bool got = fgets(line, sizeof(line), file) != NULL;
		fclose(file);
		line[strcspn(line, "\n")] = '\0';
		if (got && is_id(line)) {
			memcpy(ret_id, line, sizeof(line));
			return true;
		}
	}
	return false;
}
#endif

bool dg__hostid_get(char ret_id[DG__HOSTID_MAX])
{
	const char *given = getenv(DG__HOSTID_VARIABLE);
	char id[DG__HOSTID_MAX];
	if (given && is_id(given)) {
		memcpy(ret_id, given, strlen(given) + 1);
		return true;
	}
	return machine_id(id) && dg__hostid_hash(id, ret_id);
}

dg_err dg__hostid_random(char ret_id[DG__HOSTID_MAX], dg_error *reterr)
{
	unsigned char bytes[BYTES];
	if (RAND_bytes(bytes, BYTES) != 1)
		return dg_error_set(
			reterr, DG_EIO, "the system gives no random bytes for a host id");
	to_hex(bytes, ret_id);
	return DG_OK;
}
