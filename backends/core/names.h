/*
 * The names of the backends this build knows, without their code: for processes that load no
 * driver.
 */
#ifndef DEVGATE_BACKENDS_CORE_NAMES_H
#define DEVGATE_BACKENDS_CORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/** Room for a backend's name with NUL. */
#define DG__BACKEND_NAME_MAX 16

/** All names, in registry order; static. Threads: safe. Blocks: no. */
const char *const *dg__backend_names(size_t *ret_count);
/** Whether name is one of them. */
bool dg__backend_known(const char *name);

#endif
