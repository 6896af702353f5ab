/*
 * A gateway on loopback that answers as a test tells it to: rightly, wrongly, slowly, in part, or
 * not at all. A thread for each connection; every request is recorded.
 */
#ifndef DEVGATE_TESTS_FAKES_FAKE_GATEWAY_H
#define DEVGATE_TESTS_FAKES_FAKE_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dg_fake_gateway dg_fake_gateway;

/** A request as it came. */
typedef struct dg_fake_request {
	char method[16];
	char path[512];
	char headers[8192]; /* all lines, with the request line */
	char body[65536];
	size_t body_length;
	unsigned connection; /* 1 for the first connection accepted, and so on */
} dg_fake_request;

/** What to answer. Zero-initialised: 200, application/json, empty body, connection kept. */
typedef struct dg_fake_reply {
	int status; /* 0: 200 */
	const char *content_type; /* NULL: application/json; "" for none */
	const char *headers; /* further lines, each with "\r\n"; NULL for none */
	const char *body; /* NULL: empty. Must stay valid until the gateway is destroyed */
	size_t body_length; /* 0: strlen(body) */
	bool raw; /* body is the whole reply, status line and headers included */
	bool has_declared; /* declared_length goes into Content-Length, whatever the body */
	size_t declared_length;
	bool no_length; /* no Content-Length: the end of the connection ends the body */
	bool endless; /* the body again and again, until the peer has had enough */
	bool endless_header; /* one header line that never ends */
	bool close; /* close the connection afterwards */
	size_t cut; /* close after so many bytes of the reply; 0: do not; see cut_at_once */
	bool cut_at_once; /* close without a byte */
	bool reset; /* where it closes, close hard (RST) and without TLS's goodbye */
	unsigned delay_ms; /* before the first byte */
	unsigned drip_ms; /* between single bytes */
	size_t flip_byte; /* with flip_mask: XOR this byte of the reply */
	unsigned char flip_mask;
} dg_fake_reply;

/** Called on a connection's thread, one call at a time. */
typedef void dg_fake_handler(const dg_fake_request *request, dg_fake_reply *reply, void *user);

typedef enum dg_fake_mode {
	DG_FAKE_TLS, /* with a P-256 key of its own, certificate for 127.0.0.1 and localhost */
	DG_FAKE_PLAIN,
	DG_FAKE_SILENT /* accepts and says nothing, no handshake either */
} dg_fake_mode;

/** Start; never NULL (the running test case fails fatally else). */
dg_fake_gateway *dg_fake_gateway_create(dg_fake_mode mode, dg_fake_handler *handler, void *user);
/** Stop: ends all connections, joins all threads. NULL is fine. */
void dg_fake_gateway_destroy(dg_fake_gateway *gateway);

/** "https://127.0.0.1:PORT"; borrowed. */
const char *dg_fake_gateway_url(const dg_fake_gateway *gateway);
uint16_t dg_fake_gateway_port(const dg_fake_gateway *gateway);
/** "sha256//…"; borrowed. */
const char *dg_fake_gateway_pin(const dg_fake_gateway *gateway);
/** Write its certificate, which is its own CA, to a file. */
void dg_fake_gateway_write_ca(const dg_fake_gateway *gateway, const char *path);
/** Refuse clients without a certificate signed by themselves. Before the first connection. */
void dg_fake_gateway_want_certificate(dg_fake_gateway *gateway);

/** Requests so far, and a copy of one; false beyond the last. */
size_t dg_fake_gateway_requests(dg_fake_gateway *gateway);
bool dg_fake_gateway_request(dg_fake_gateway *gateway, size_t n, dg_fake_request *ret_request);
/** Connections accepted so far. */
unsigned dg_fake_gateway_connections(dg_fake_gateway *gateway);
/** Connections open now; waits up to a second for them to become this many. */
unsigned dg_fake_gateway_open(dg_fake_gateway *gateway, unsigned expected);
void dg_fake_gateway_forget_requests(dg_fake_gateway *gateway);

/** Value of a header in a recorded request; false where it has none. */
bool dg_fake_request_header(
	const dg_fake_request *request, const char *name, char *buf, size_t size);
/** Write a self-signed client certificate and its key, both to one PEM file. */
void dg_fake_write_client_certificate(const char *path);

#endif
