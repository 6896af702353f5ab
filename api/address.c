/* Addresses of gateways. See registry.h. */
#include "api/registry.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "api/lex.h"

#define DEFAULT_PORT 8443
#define DEFAULT_URL "https://127.0.0.1:8443"
/* Longest name of a network interface, on every system that is a target. */
#define ZONE_MAX 15
#define LABEL_MAX 63

/* The text in work, with a cursor; every error quotes it. */
typedef struct reader {
	const char *text, *at;
	dg_error *reterr;
} reader;

static dg_err refuse(const reader *r, const char *reason)
{
	char quoted[DG__QUOTE_MAX];
	return dg_error_set(r->reterr, DG_EADDRESS, "address %s: %s (character %zu)",
		dg__quote(r->text, strlen(r->text), quoted), reason, (size_t)(r->at - r->text) + 1);
}

static dg_err read_scheme(reader *r, bool *ret_tls)
{
	static const struct {
		const char *word;
		bool tls;
	} schemes[] = { { "https://", true }, { "http://", false }, { "wss://", true },
		{ "ws://", false } };
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t length = strlen(schemes[i].word);
		if (strnlen(r->at, length) == length &&
			dg__word_is(r->at, length, schemes[i].word)) {
			*ret_tls = schemes[i].tls;
			r->at += length;
			return DG_OK;
		}
	}
	return refuse(r, "expected https://, http://, wss:// or ws://");
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
	char lower = dg__lower(c);
	return (lower >= 'a' && lower <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* Resolvers read a name whose last label is a number, "127.1" or "0x7f.1", as an address of their
 * own making; only the plain dotted form is accepted, so that a host is what it looks like. */
static bool ends_in_number(const char *host)
{
	const char *dot = strrchr(host, '.');
	const char *label = dot ? dot + 1 : host;
	size_t length = strlen(label);
	bool hex = length >= 2 && label[0] == '0' && label[1] == 'x';
	return hex ? strspn(label + 2, "0123456789abcdef") == length - 2
		   : length > 0 && strspn(label, "0123456789") == length;
}

/* One label of a name, up to a dot, the port or the end. */
static dg_err read_label(reader *r)
{
	const char *start = r->at;
	while (is_name_char(*r->at))
		r->at++;
	size_t length = (size_t)(r->at - start);
	if (length == 0)
		return refuse(r, "expected a host name of letters, digits, '-', '_' and '.'");
	if (length > LABEL_MAX)
		return refuse(r, "a label of the host name is longer than 63 bytes");
	if (start[0] == '-' || r->at[-1] == '-')
		return refuse(r, "a label of the host name must not begin or end with '-'");
	return DG_OK;
}

static dg_err read_name(reader *r, char host[DG__HOST_MAX])
{
	struct in_addr v4;
	const char *start = r->at;
	for (;;) {
		dg_err err = read_label(r);
		if (err)
			return err;
		if (*r->at != '.')
			break;
		r->at++;
		/* A name may end in a dot: it is then not looked up in search domains. */
		if (!is_name_char(*r->at) && *r->at != '.')
			break;
	}
	size_t length = (size_t)(r->at - start);
	if (length >= DG__HOST_MAX)
		return refuse(r, "the host name is longer than 253 bytes");
	for (size_t i = 0; i < length; i++)
		host[i] = dg__lower(start[i]);
	host[length] = '\0';
	if (length > 1 && host[length - 1] == '.' && is_digit(host[length - 2])) {
		host[length - 1] = '\0';
		bool number = ends_in_number(host);
		host[length - 1] = '.';
		if (number)
			return refuse(r, "an IPv4 address must not end in a dot");
	}
	if (ends_in_number(host) && inet_pton(AF_INET, host, &v4) != 1)
		return refuse(r, "expected an IPv4 address of four numbers 0..255");
	return DG_OK;
}

static bool is_zone_char(char c)
{
	return is_name_char(c) || c == '.' || c == '~';
}

/* "%eth0", and "%25eth0" as URLs have to spell it; names of interfaces know case. */
static dg_err read_zone(reader *r, char *zone)
{
	if (strncmp(r->at, "%25", 3) == 0 && is_zone_char(r->at[3]))
		r->at += 3;
	else
		r->at++;
	const char *start = r->at;
	while (is_zone_char(*r->at))
		r->at++;
	size_t length = (size_t)(r->at - start);
	if (length == 0)
		return refuse(r, "expected a zone id behind '%'");
	if (length > ZONE_MAX)
		return refuse(r, "the zone id is longer than 15 bytes");
	zone[0] = '%';
	memcpy(zone + 1, start, length);
	zone[1 + length] = '\0';
	return DG_OK;
}

static dg_err read_ipv6(reader *r, char host[DG__HOST_MAX])
{
	char literal[INET6_ADDRSTRLEN];
	struct in6_addr v6;
	reader start = *r;
	size_t length = strspn(++r->at, "0123456789abcdefABCDEF:.");
	if (length >= sizeof(literal))
		return refuse(&start, "this is no IPv6 address");
	memcpy(literal, r->at, length);
	literal[length] = '\0';
	r->at += length;
	if (*r->at != '%' && *r->at != ']')
		return refuse(r, "expected an IPv6 address and ']'");
	if (inet_pton(AF_INET6, literal, &v6) != 1 || !inet_ntop(AF_INET6, &v6, host, DG__HOST_MAX))
		return refuse(&start, "this is no IPv6 address");
	if (*r->at == '%') {
		dg_err err = read_zone(r, host + strlen(host));
		if (err)
			return err;
	}
	if (*r->at != ']')
		return refuse(r, "expected ']'");
	r->at++;
	return DG_OK;
}

static dg_err read_port(reader *r, uint16_t *ret_port)
{
	uint64_t port = 0;
	if (*r->at != ':') {
		*ret_port = DEFAULT_PORT;
		return DG_OK;
	}
	size_t length = strspn(r->at + 1, "0123456789");
	r->at++;
	if (dg__number_read(r->at, length, UINT16_MAX, &port) || port == 0)
		return refuse(r, "expected a port 1..65535 behind ':'");
	r->at += length;
	*ret_port = (uint16_t)port;
	return DG_OK;
}

/* What may stand in a URL and not in an address; looked for first, for the better reason. */
static dg_err refuse_extras(reader *r)
{
	reader at = *r;
	size_t authority = strcspn(r->at, "/?#");
	const char *user = memchr(r->at, '@', authority);
	if (user) {
		/* It is not quoted: it may hold a password. */
		return dg_error_set(r->reterr, DG_EADDRESS,
			"the address holds a user name or password before '@'; "
			"credentials are given apart from it");
	}
	at.at += authority;
	if (*at.at == '?' || (*at.at == '/' && at.at[1] == '?'))
		return refuse(&at, "an address has no query");
	if (*at.at == '#' || (*at.at == '/' && at.at[1] == '#'))
		return refuse(&at, "an address has no fragment");
	if (*at.at == '/' && at.at[1] != '\0')
		return refuse(&at, "an address has no path");
	return DG_OK;
}

static dg_err read_all(reader *r, dg__address *address)
{
	dg_err err = read_scheme(r, &address->tls);
	if (!err)
		err = refuse_extras(r);
	if (!err)
		err = *r->at == '[' ? read_ipv6(r, address->host) : read_name(r, address->host);
	if (!err)
		err = read_port(r, &address->port);
	if (err)
		return err;
	if (*r->at == '/')
		r->at++;
	return *r->at == '\0' ? DG_OK : refuse(r, "this does not belong into an address");
}

dg_err dg__address_parse(const char *text, dg__address *ret_address, dg_error *reterr)
{
	dg__address address = { .tls = false };
	if (!text)
		return dg_error_set(reterr, DG_EADDRESS, "no address was given");
	if (strnlen(text, DG_DEVICE_TEXT_MAX) >= DG_DEVICE_TEXT_MAX)
		return dg_error_set(reterr, DG_EADDRESS, "the address is longer than %d bytes",
			DG_DEVICE_TEXT_MAX - 1);
	reader r = { text, text, reterr };
	dg_err err = read_all(&r, &address);
	if (!err)
		*ret_address = address;
	return err;
}

size_t dg__address_format(const dg__address *address, char *buf, size_t size)
{
	dg__out out = { buf, size, 0 };
	const char *zone = strchr(address->host, '%');
	bool v6 = strchr(address->host, ':') != NULL;
	dg__put(&out, address->tls ? "https://" : "http://");
	dg__put(&out, v6 ? "[" : "");
	if (zone) {
		/* As URLs spell it; after a bare '%' a leading 25 of the zone would be lost. */
		dg__put_bytes(&out, address->host, (size_t)(zone - address->host));
		dg__put(&out, "%25");
		dg__put(&out, zone + 1);
	} else {
		dg__put(&out, address->host);
	}
	dg__put(&out, v6 ? "]:" : ":");
	dg__put_number(&out, address->port);
	return dg__put_end(&out);
}

bool dg__address_equal(const dg__address *a, const dg__address *b)
{
	return a->tls == b->tls && a->port == b->port && strcmp(a->host, b->host) == 0;
}

bool dg__address_is_loopback(const dg__address *address)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	char literal[INET6_ADDRSTRLEN];
	struct in_addr v4;
	struct in6_addr v6;
	size_t length = strcspn(address->host, "%");
	if (strcmp(address->host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, address->host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (length >= sizeof(literal))
		return false;
	memcpy(literal, address->host, length);
	literal[length] = '\0';
	if (inet_pton(AF_INET6, literal, &v6) != 1)
		return false;
	if (memcmp(v6.s6_addr, mapped, sizeof(mapped)) == 0)
		return v6.s6_addr[12] == 127;
	return memcmp(&v6, &in6addr_loopback, sizeof(v6)) == 0;
}

dg_err dg__address_default(dg__address *ret_address, dg_error *reterr)
{
	static const char *const variables[] = { "DEVGATE_REMOTE_ADDRESS", "BURN_REMOTE_ADDRESS" };
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *text = getenv(variables[i]);
		dg_error error;
		if (!text || !*text)
			continue;
		dg_err err = dg__address_parse(text, ret_address, &error);
		return err ? dg_error_set(reterr, err, "%s: %s", variables[i], error.text) : DG_OK;
	}
	return dg__address_parse(DEFAULT_URL, ret_address, reterr);
}
