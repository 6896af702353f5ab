/* What the HTTP library's failures mean. Part of the transport. */
#include "client/transport_error.h"

static dg_err err_of(CURLcode code)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return DG_ETIMEOUT;
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		return DG_EPIN;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_USE_SSL_FAILED:
	case CURLE_SSL_ENGINE_NOTFOUND:
	case CURLE_SSL_ENGINE_INITFAILED:
		return DG_ETLS;
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CLIENTCERT:
		return DG_ECREDENTIAL;
	case CURLE_FILESIZE_EXCEEDED:
#if LIBCURL_VERSION_NUM >= 0x080600
	case CURLE_TOO_LARGE:
#endif
		return DG_EREPLYSIZE;
	case CURLE_OUT_OF_MEMORY:
		return DG_ENOMEM;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_HTTP2:
	case CURLE_BAD_CONTENT_ENCODING:
	case CURLE_HTTP_RETURNED_ERROR:
	case CURLE_RANGE_ERROR:
		return DG_EPROTOCOL;
	case CURLE_ABORTED_BY_CALLBACK:
		return DG_ECANCELLED;
	case CURLE_URL_MALFORMAT:
		return DG_EADDRESS;
	default:
		return DG_EUNREACHABLE;
	}
}

/* What the user can do about it. */
static const char *advice_of(dg_err err, CURLcode code, const dg__identity *identity)
{
	bool pinned = identity && identity->credentials.pin;
	switch (err) {
	case DG_EPIN:
		return "compare the pin with the one that the gateway prints; if its key was not "
		       "replaced on purpose, somebody else answers at this address";
	case DG_ETLS:
		if (code != CURLE_PEER_FAILED_VERIFICATION)
			return "check that it is a gateway that speaks TLS 1.2 or newer";
		return pinned ? "the certificate must also be one of the CA file's"
			      : "give the gateway's pin or a CA file; those of the environment go "
				"only "
				"to the default remote address and to gateways that were named";
	case DG_ETIMEOUT:
		return "check that the gateway runs and that no firewall drops the packets, or "
		       "allow "
		       "more time";
	case DG_ECREDENTIAL:
		return "check the certificate, key and CA files";
	case DG_EUNREACHABLE:
		if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY)
			return "check the host's name";
		if (code == CURLE_COULDNT_CONNECT)
			return "check that the gateway runs and listens at this address";
		return "the connection was lost in the middle of the exchange";
	case DG_EPROTOCOL:
		return "check that it is a devgate gateway";
	default:
		return NULL;
	}
}

dg_err dg__transport_error(CURLcode code, const char *detail, const char *url,
	const dg__identity *identity, dg_error *reterr)
{
	dg_err err = err_of(code);
	const char *advice = advice_of(err, code, identity);
	const char *what = *detail ? detail : curl_easy_strerror(code);
	return dg_error_native(reterr, err, "transport", (int32_t)code, "%.120s: %.180s%s%s", url,
		what, advice ? "; " : "", advice ? advice : "");
}
