/*
 * What a worker gives up before it loads a driver.
 */
#ifndef DEVGATE_BACKENDS_WORKER_CONFINE_H
#define DEVGATE_BACKENDS_WORKER_CONFINE_H

#include <stdint.h>

/**
 * Close every descriptor above fd, leave no core dump, gain no privileges, be the first to go when
 * memory runs out, open no network (Linux, by seccomp; AF_UNIX and AF_NETLINK stay), and
 * keep to memory_bytes of address space (0: no limit). What the system cannot do is left out.
 */
void dg__confine(int fd, uint64_t memory_bytes);

#endif
