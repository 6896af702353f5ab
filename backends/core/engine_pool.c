/* The large buffers that memory is measured in. See engine_run.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "backends/core/clock.h"
#include "backends/core/engine_run.h"

#define GRAIN ((uint64_t)2 << 20)
/* Memory that is cold has to be several caches long. */
#define CACHES_WANTED 4
#define CACHES_NEEDED 2

static dg_err make_pattern(dg__run *run, dg_error *reterr)
{
	if (run->pattern)
		return DG_OK;
	run->pattern = malloc(sizeof(*run->pattern));
	if (!run->pattern)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg__pattern_init(run->pattern);
	return DG_OK;
}

static dg_err stopped(const dg__run *run, dg_error *reterr)
{
	if (run->stop.cancel && atomic_load(run->stop.cancel))
		return dg_error_set(reterr, DG_ECANCELLED, NULL);
	if (run->stop.deadline_ns && dg__clock_ns() >= run->stop.deadline_ns)
		return dg_error_set(reterr, DG_ETIMEOUT, NULL);
	return DG_OK;
}

static dg_err fill(dg__run *run, dg__buf *buf, uint64_t bytes, dg_error *reterr)
{
	for (uint64_t at = 0; at < bytes; at += DG__PATTERN_BYTES) {
		uint64_t left = bytes - at;
		size_t size = left < DG__PATTERN_BYTES ? (size_t)left : DG__PATTERN_BYTES;
		dg_err err = stopped(run, reterr);
		if (!err)
			err = run->backend->buf_write(
				run->dev, buf, at, run->pattern->words, size, reterr);
		if (err)
			return err;
	}
	return DG_OK;
}

dg_err dg__pool_buffer(
	dg__run *run, uint64_t bytes, bool filled, dg__buf **ret_buf, dg_error *reterr)
{
	dg__buf *buf = NULL;
	dg_err err = make_pattern(run, reterr);
	if (!err)
		err = run->backend->buf_create(run->dev, bytes, &run->stop, &buf, reterr);
	if (!err && filled)
		err = fill(run, buf, bytes, reterr);
	if (err)
		run->backend->buf_destroy(run->dev, buf);
	else
		*ret_buf = buf;
	return err;
}

void dg__pool_finish(dg__run *run)
{
	if (run->dev) {
		run->backend->buf_destroy(run->dev, run->pool.src);
		run->backend->buf_destroy(run->dev, run->pool.dst);
	}
	run->pool = (dg__pool){ 0 };
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Both buffers are counted even where one is used: a later key must not find less. */
static dg_err choose_size(dg__run *run, uint64_t bytes, dg_error *reterr)
{
	dg__room room = { 0 };
	dg_err err = run->backend->room(run->dev, &room, reterr);
	if (err)
		return err;
	uint64_t each =
		room.total_bytes / 2 < room.buffer_bytes ? room.total_bytes / 2 : room.buffer_bytes;
	uint64_t want = larger(run->pace.pool_bytes, (bytes + GRAIN - 1) / GRAIN * GRAIN);
	if (!run->quick)
		want = larger(want, room.cache_bytes * CACHES_WANTED);
	if (want > each)
		want = each;
	if (want > GRAIN)
		want -= want % GRAIN;
	if (want < bytes)
		return dg_error_set(reterr, DG_ENOTSUP,
			"%" PRIu64 " bytes per buffer do not fit; %" PRIu64 " can be used", bytes,
			want);
	if (want < 256 || (!run->quick && want < room.cache_bytes * CACHES_NEEDED))
		return dg_error_set(reterr, DG_ENOTSUP,
			"buffers of %" PRIu64 " bytes are all the memory "
			"that can be used, too little beside a cache of %" PRIu64 " bytes",
			want, room.cache_bytes);
	run->pool = (dg__pool){ .bytes = want, .cache_bytes = room.cache_bytes };
	return DG_OK;
}

dg_err dg__pool_prepare(dg__run *run, dg_access access, uint64_t bytes, dg_error *reterr)
{
	dg__pool *pool = &run->pool;
	dg_err err = DG_OK;
	if (!pool->bytes || pool->bytes < bytes) {
		dg__pool_finish(run);
		err = choose_size(run, bytes, reterr);
	}
	if (!err && !pool->src && access != DG_WRITE)
		err = dg__pool_buffer(run, pool->bytes, true, &pool->src, reterr);
	if (!err && !pool->dst && access != DG_READ)
		err = dg__pool_buffer(run, pool->bytes, false, &pool->dst, reterr);
	return err;
}
