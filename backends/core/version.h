/*
 * Version of the measuring engine: part of every cache key, so that figures of different versions
 * are not compared.
 */
#ifndef DEVGATE_BACKENDS_CORE_VERSION_H
#define DEVGATE_BACKENDS_CORE_VERSION_H

#define DG__ENGINE_VERSION "1"

#endif
