/*
 * A place to wait for peers that close, for deadlines, and for who wakes it.
 */
#ifndef DEVGATE_SERVER_HTTP_WATCH_H
#define DEVGATE_SERVER_HTTP_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#define DG__WATCH_BATCH 64

typedef struct dg__watch {
	int set, bell[2]; /* descriptors; -1: none */
} dg__watch;

/** Zero-initialised before. False: no descriptors. */
bool dg__watch_init(dg__watch *watch);
void dg__watch_finish(dg__watch *watch);

/** Tell of fd once, with user, when its peer has closed. A closed fd is forgotten by itself. Where
 * the system has no such notice, none is given. Threads: safe. */
void dg__watch_add(dg__watch *watch, int fd, void *user);
/** Whether the peer of fd has closed. */
bool dg__watch_closed(int fd);

/** Wait for at most timeout_ms. @return how many of ret_users (room for DG__WATCH_BATCH) are told
 * of. */
size_t dg__watch_wait(dg__watch *watch, int timeout_ms, void **ret_users);
/** End a wait under way, or the next. Threads: safe. */
void dg__watch_ring(dg__watch *watch);

#endif
