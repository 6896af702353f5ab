/*
 * The backends of this build, with their code. Whatever uses one takes a list, so that tests can
 * pass their own.
 */
#ifndef DEVGATE_BACKENDS_CORE_REGISTRY_H
#define DEVGATE_BACKENDS_CORE_REGISTRY_H

#include "backends/core/backend.h"
#include "backends/core/names.h"

/** All backends, in registry order; static. Each defines dg__backend_NAME. Threads: safe. */
const dg__backend *const *dg__registry_all(size_t *ret_count);

/** The backend of a list that has the name; borrowed from the list; NULL: none has. */
const dg__backend *dg__backend_find(const dg__backend *const *list, size_t count, const char *name);

/**
 * Whether a backend can be used: its abi is this build's, its name is well-formed, no slot is
 * missing.
 *
 * @return DG_OK, DG_EINTERNAL (names the backend and what is wrong).
 */
dg_err dg__backend_check(const dg__backend *backend, dg_error *reterr) DG_MUST_CHECK;

#endif
