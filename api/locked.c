/*
 * See locked.h. Buckets of singly linked lists to which nodes are only ever added, at the head and
 * by compare-and-swap: a reader follows them without a lock, and of several writers of one id the
 * first wins, because every other one finds its node before it can add another.
 */
#include "api/locked.h"

#include <stdatomic.h>
#include <stdlib.h>

#define BUCKETS 4096u

typedef struct node {
	const struct node *next;
	dg_id id;
	dg_settings settings;
} node;

static _Atomic(const node *) buckets[BUCKETS];

static _Atomic(const node *) *bucket_of(dg_id id)
{
	uint32_t key = (uint32_t)id.type_id << 16 | id.index_id;
	return &buckets[(key * 2654435769u) >> 20];
}

static const node *find_until(const node *from, const node *end, dg_id id)
{
	for (; from != end; from = from->next)
		if (dg_id_compare(from->id, id) == 0)
			return from;
	return NULL;
}

static const node *find(dg_id id)
{
	return find_until(atomic_load_explicit(bucket_of(id), memory_order_acquire), NULL, id);
}

/* What is kept then: found already (ret_won false), or made of settings. NULL: no memory. */
static const node *keep(dg_id id, const dg_settings *settings, bool *ret_won)
{
	_Atomic(const node *) *bucket = bucket_of(id);
	const node *head = atomic_load_explicit(bucket, memory_order_acquire);
	const node *found = find_until(head, NULL, id);
	*ret_won = false;
	if (found)
		return found;
	node *made = malloc(sizeof(*made));
	if (!made)
		return NULL;
	*made = (node){ .next = head, .id = id, .settings = *settings };
	while (!atomic_compare_exchange_weak_explicit(
		bucket, &head, made, memory_order_acq_rel, memory_order_acquire)) {
		/* Only what came in since has not been looked at. */
		found = find_until(head, made->next, id);
		if (found) {
			free(made);
			return found;
		}
		made->next = head;
	}
	*ret_won = true;
	return made;
}

dg_err dg__locked_configure(dg_id id, const dg_settings *settings, dg_error *reterr)
{
	bool won;
	if (!keep(id, settings, &won))
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	return won ? DG_OK
		   : dg_error_set(reterr, DG_EINITIALIZED,
			     "the settings of device type_id %u index_id %u are already "
			     "initialized",
			     (unsigned)id.type_id, (unsigned)id.index_id);
}

bool dg__locked_get(dg_id id, dg_settings *ret_settings)
{
	const node *found = find(id);
	if (found)
		*ret_settings = found->settings;
	return found != NULL;
}

dg_err dg__locked_first_read(
	dg_id id, const dg_settings *candidate, dg_settings *ret_settings, dg_error *reterr)
{
	bool won;
	const node *kept = keep(id, candidate, &won);
	if (!kept)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	*ret_settings = kept->settings;
	return DG_OK;
}
