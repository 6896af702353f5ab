/*
 * From what the user calls a device to the device.
 */
#ifndef DEVGATE_CLIENT_CLI_SELECT_H
#define DEVGATE_CLIENT_CLI_SELECT_H

#include "client/cli/cli.h"

typedef struct dg__selected {
	dg_device device;
	char text[DG_DEVICE_TEXT_MAX]; /**< its text form */
	char label[DG_DEVICE_TEXT_MAX + DG_NAME_MAX + 64]; /**< and its name, where that is known */
} dg__selected;

/**
 * Resolve a device:
 * - a text form: itself; a remote one with the credentials of the options;
 * - with --gateway, what names one device there: gateway index, text form of a device of its host,
 *   hardware UUID, PCI address, name;
 * - without it, a hardware UUID or PCI address of a device here or of a configured gateway.
 *
 * Connects, and looks for local devices, in the last two cases alone.
 *
 * @return DG_OK, DG_ENODEVICE (lists what is there), DG_EINVALID (several fit), what
 *         dg_device_parse() and dg_enumerate() return, or why a gateway could not be asked.
 */
dg_err dg__select_device(const dg__cli *cli, const char *text, dg__selected *ret_selected,
	dg_error *reterr) DG_MUST_CHECK;

/**
 * Find what a text names in a list.
 *
 * @param at_gateway  Index and name count, too.
 * @param[out] ret_listed  Borrowed from the list.
 * @return DG_OK, DG_ENODEVICE, DG_EINVALID (several fit), what dg_device_parse() returns for a text
 *         that can be nothing else, or the first gateway's problem where none fits.
 */
dg_err dg__select_find(const dg_device_list *list, const char *text, bool at_gateway,
	const dg_listed **ret_listed, dg_error *reterr) DG_MUST_CHECK;

/**
 * Read a PCI address, "0000:17:00.0", also with 8 digits of domain or none.
 *
 * @param[out] ret_address  Domain << 16 | bus << 8 | device << 3 | function.
 */
bool dg__select_pci(const char *text, uint64_t *ret_address);
/** Whether text is a hardware UUID, with or without "GPU-" or "MIG-"; *ret_plain is past that. */
bool dg__select_uuid(const char *text, const char **ret_plain);

#endif
