/* SPDX-License-Identifier: MIT */
/* holds.h - who holds which lock: the lists of threads and of objects, and the places in which holds are drawn. */
#ifndef PTTMODEL_HOLDS_H
#define PTTMODEL_HOLDS_H

#include "internal.h"

/* The first free place, which is taken; the last one has room for all that find no other. */
static inline uint8_t md_take_place(uint64_t *places)
{
	uint8_t place = ~*places ? (uint8_t)__builtin_ctzll(~*places) : PTT_MODEL_PLACES - 1;

	if (place < PTT_MODEL_PLACES - 1)
		*places |= UINT64_C(1) << place;
	return place;
}

/* md_hold_begin - a hold that nobody is blamed for yet; there may be no memory for it. Inline, for every lock comes here. */
static inline void md_hold_begin(struct ptt_model *m, const struct md_event *e, uint32_t object, uint32_t pair,
				 uint32_t site, uint8_t mode)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_thread *t = MD_THREAD(m, e->thread);
	uint32_t number = m->free_hold;

	if (number)
		m->free_hold = MD_HOLD(m, number)->thread_next;
	else
		number = md_new(m, &m->holds);
	if (!number)
		return;
	*MD_HOLD(m, number) = (struct md_hold){
		.since = e->ts,
		.share = o->share,
		.address = e->object,
		.thread = e->thread,
		.object = object,
		.pair = pair,
		.site = site,
		.depth = 1,
		.max_waiters = o->pub.waiters,
		.thread_next = t->holds,
		.object_next = o->holds,
		.mode = mode,
		.thread_place = md_take_place(&t->places),
		.object_place = md_take_place(&o->places),
	};
	if (o->holds)
		MD_HOLD(m, o->holds)->object_prev = number;
	if (t->holds)
		MD_HOLD(m, t->holds)->thread_prev = number;
	o->holds = t->holds = number;
	o->pub.holders++;
	o->pub.holder = e->thread;
	t->pub.held++;
}

uint32_t md_hold_find(const struct ptt_model *m, uint32_t thread, uint32_t object);
void md_hold_unlink(struct ptt_model *m, uint32_t number);
/* md_drop_holds - forgets holds whose end cannot be known; they are blamed up to now. */
void md_drop_holds(struct ptt_model *m, uint32_t object, int64_t ts);

#endif
