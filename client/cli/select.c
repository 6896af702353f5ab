/* See select.h. */
#include "client/cli/select.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What a text may mean, worked out once for all devices of a list. */
typedef struct wanted {
	const char *text;
	bool at_gateway, has_device, has_pci, has_index, by_name;
	dg_device device;
	uint64_t pci, index;
	const char *uuid; /* NULL: is none */
} wanted;

/* Hexadecimal digits up to `end`, least..most of them; moves *at past `end`. */
static bool take_hex(const char **at, char end, size_t least, size_t most, uint64_t *ret_number)
{
	size_t digits = strspn(*at, "0123456789abcdefABCDEF");
	if (digits < least || digits > most || (*at)[digits] != end)
		return false;
	*ret_number = strtoull(*at, NULL, 16);
	*at += digits + (end != '\0');
	return true;
}

bool dg__select_pci(const char *text, uint64_t *ret_address)
{
	uint64_t domain = 0, bus, device, function;
	const char *at = text;
	const char *first = strchr(text, ':');
	bool with_domain = first && strchr(first + 1, ':');
	if (with_domain && !take_hex(&at, ':', 4, 8, &domain))
		return false;
	if (!take_hex(&at, ':', 2, 2, &bus) || !take_hex(&at, '.', 2, 2, &device) ||
		!take_hex(&at, '\0', 1, 1, &function) || device > 31 || function > 7)
		return false;
	*ret_address = domain << 16 | bus << 8 | device << 3 | function;
	return true;
}

bool dg__select_uuid(const char *text, const char **ret_plain)
{
	static const size_t groups[] = { 8, 4, 4, 4, 12 };
	if (strncasecmp(text, "GPU-", 4) == 0 || strncasecmp(text, "MIG-", 4) == 0)
		text += 4;
	const char *at = text;
	for (size_t i = 0; i < 5; i++) {
		size_t digits = strspn(at, "0123456789abcdefABCDEF");
		if (digits != groups[i] || at[digits] != (i < 4 ? '-' : '\0'))
			return false;
		at += digits + 1;
	}
	*ret_plain = text;
	return true;
}

static bool fits(const wanted *want, const dg_listed *listed)
{
	const dg_device_info *info = &listed->info;
	uint64_t pci;
	if (want->has_device)
		return (info->present & DG_HAS_DEVICE) &&
		       dg_device_equal(want->device, info->device);
	if (want->has_index)
		return (info->present & DG_HAS_GATEWAY_INDEX) && info->gateway_index == want->index;
	if (want->uuid)
		return (info->present & DG_HAS_UUID) && strcasecmp(info->uuid, want->uuid) == 0;
	if (want->has_pci)
		return (info->present & DG_HAS_PCI) && dg__select_pci(info->pci, &pci) &&
		       pci == want->pci;
	return want->by_name && strcasecmp(info->name, want->text) == 0;
}

/* "1 cuda:0 (NVIDIA H200)" */
static void describe_candidate(const dg_listed *listed, bool with_gateway, char *buf, size_t size)
{
	char device[DG_DEVICE_TEXT_MAX] = "";
	char place[DG_DEVICE_TEXT_MAX + 16] = "";
	if (listed->info.present & DG_HAS_DEVICE)
		dg_device_format(listed->info.device, device, sizeof(device));
	if (listed->gateway[0] && with_gateway)
		snprintf(place, sizeof(place), "%s#%u ", listed->gateway,
			(unsigned)listed->info.gateway_index);
	else if (listed->gateway[0])
		snprintf(place, sizeof(place), "%u ", (unsigned)listed->info.gateway_index);
	snprintf(buf, size, "%s%s%s(%s)", place, device, *device ? " " : "", listed->info.name);
}

static bool of_one_gateway(const dg_device_list *list)
{
	for (size_t i = 1; i < list->count; i++)
		if (strcmp(list->devices[i].gateway, list->devices[0].gateway) != 0)
			return false;
	return true;
}

/* The devices that fit `among`, or all where it is NULL, as many as there is room for. */
static void list_candidates(const dg_device_list *list, const wanted *among, char *buf, size_t size)
{
	bool with_gateway = !of_one_gateway(list);
	size_t used = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < list->count; i++) {
		char one[DG_DEVICE_TEXT_MAX * 2 + DG_NAME_MAX + 64];
		if (among && !fits(among, &list->devices[i]))
			continue;
		describe_candidate(&list->devices[i], with_gateway, one, sizeof(one));
		if (used + strlen(one) + 8 > size) {
			snprintf(buf + used, size - used, ", ...");
			return;
		}
		used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", one);
	}
}

static dg_err not_found(const dg_device_list *list, const wanted *want, dg_error *reterr)
{
	char candidates[320];
	for (size_t i = 0; i < list->problem_count; i++) {
		if (!list->problems[i].is_gateway)
			continue;
		/* The device may well be on the gateway that does not answer. */
		const dg_problem *problem = &list->problems[i];
		return dg_error_native(reterr, problem->error.code, problem->error.origin,
			problem->error.native_code, "%s: %s", problem->source, problem->error.text);
	}
	list_candidates(list, NULL, candidates, sizeof(candidates));
	return dg_error_set(reterr, DG_ENODEVICE, "no device is called '%.80s'%s%s%s", want->text,
		want->at_gateway ? " there" : "", *candidates ? "; there are: " : "; there is none",
		candidates);
}

/* Several names of one hardware are no ambiguity: the first healthy one counts. */
static dg_err pick(const dg_device_list *list, const wanted *want, const dg_listed **ret_listed,
	dg_error *reterr)
{
	const dg_listed *best = NULL;
	char candidates[320];
	for (size_t i = 0; i < list->count; i++) {
		const dg_listed *listed = &list->devices[i];
		if (!fits(want, listed))
			continue;
		if (best && !dg_info_same_hardware(&best->info, &listed->info)) {
			list_candidates(list, want, candidates, sizeof(candidates));
			return dg_error_set(reterr, DG_EINVALID, "'%.80s' fits several devices: %s",
				want->text, candidates);
		}
		if (!best || (best->info.state != DG_STATE_OK && listed->info.state == DG_STATE_OK))
			best = listed;
	}
	if (!best)
		return not_found(list, want, reterr);
	*ret_listed = best;
	return DG_OK;
}

static void set_label(dg__selected *selected, const dg_listed *listed)
{
	char device[DG_DEVICE_TEXT_MAX] = "";
	dg_device_format(selected->device, selected->text, sizeof(selected->text));
	if (!listed) {
		snprintf(selected->label, sizeof(selected->label), "%s", selected->text);
		return;
	}
	if (listed->gateway[0] && (listed->info.present & DG_HAS_DEVICE))
		dg_device_format(listed->info.device, device, sizeof(device));
	snprintf(selected->label, sizeof(selected->label), "%s (%.60s%s%s)", selected->text, device,
		*device ? ", " : "", listed->info.name);
}

/* Put the autodiff wrapper of the text around the device that it was found to mean. */
static dg_err rewrap(const wanted *want, dg_device found, dg_device *ret_device, dg_error *reterr)
{
	if (want->has_device && want->device.autodiff)
		return dg_device_autodiff(
			found, (dg_strategy)want->device.strategy, ret_device, reterr);
	*ret_device = found;
	return DG_OK;
}

static dg_err look_up(
	const dg__cli *cli, const wanted *want, dg__selected *ret_selected, dg_error *reterr)
{
	dg_enumerate_request request;
	dg_device_list *list = NULL;
	const dg_listed *listed = NULL;
	memset(&request, 0, sizeof(request));
	request.gateways = cli->args->gateways;
	request.gateway_count = cli->args->gateway_count;
	request.no_local = request.no_configured = request.gateway_count > 0;
	dg_err err = dg_enumerate(&request, &cli->call, &list, reterr);
	if (!err)
		err = pick(list, want, &listed, reterr);
	assert(err || listed);
	if (!err)
		err = rewrap(want, listed->device, &ret_selected->device, reterr);
	if (!err)
		set_label(ret_selected, listed);
	dg_device_list_free(list);
	return err;
}

/* A remote device named on the command gets the credentials of the command. */
static dg_err with_credentials(
	const dg__cli *cli, const wanted *want, dg__selected *ret_selected, dg_error *reterr)
{
	char url[DG_DEVICE_TEXT_MAX];
	uint32_t index;
	dg_device remote = want->device;
	if (dg_device_remote_address(dg_device_inner(want->device), url, sizeof(url), &index)) {
		dg_err err = dg_device_remote(url, index, &cli->call, &remote, reterr);
		if (err)
			return err;
		err = rewrap(want, remote, &remote, reterr);
		if (err)
			return err;
	}
	ret_selected->device = remote;
	set_label(ret_selected, NULL);
	return DG_OK;
}

/* Anything but a device, UUID or PCI address is a typing error; at gateways it may be a name. */
static dg_err read_wanted(const char *text, bool at_gateway, wanted *ret_want, dg_error *reterr)
{
	dg_error error = { 0 };
	memset(ret_want, 0, sizeof(*ret_want));
	ret_want->text = text;
	ret_want->at_gateway = at_gateway;
	dg_err err = dg_device_parse(text, &ret_want->device, &error);
	ret_want->has_device = !err;
	if (!err)
		return DG_OK;
	ret_want->has_pci = dg__select_pci(text, &ret_want->pci);
	if (ret_want->has_pci || dg__select_uuid(text, &ret_want->uuid))
		return DG_OK;
	ret_want->by_name = at_gateway && *text && err == DG_EDEVICE;
	ret_want->has_index = ret_want->by_name && dg__args_whole(text, "index", UINT32_MAX,
							   &ret_want->index, NULL) == DG_OK;
	if (ret_want->by_name)
		return DG_OK;
	if (reterr)
		*reterr = error;
	return err;
}

dg_err dg__select_find(const dg_device_list *list, const char *text, bool at_gateway,
	const dg_listed **ret_listed, dg_error *reterr)
{
	wanted want;
	dg_err err = read_wanted(text, at_gateway, &want, reterr);
	return err ? err : pick(list, &want, ret_listed, reterr);
}

dg_err dg__select_device(
	const dg__cli *cli, const char *text, dg__selected *ret_selected, dg_error *reterr)
{
	wanted want;
	bool at_gateway = cli->args->gateway_count > 0;
	dg_err err = read_wanted(text, at_gateway, &want, reterr);
	if (err)
		return err;
	if (want.has_device && (!at_gateway || dg_device_inner(want.device).variant == DG_REMOTE))
		return with_credentials(cli, &want, ret_selected, reterr);
	return look_up(cli, &want, ret_selected, reterr);
}
