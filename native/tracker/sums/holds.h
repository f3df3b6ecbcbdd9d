/* SPDX-License-Identifier: MIT */
/* holds.h - which thread holds which lock: the lists of threads and of objects, and the places in which holds are drawn. */
#ifndef PTTMODEL_HOLDS_H
#define PTTMODEL_HOLDS_H

#include "sums.h"

/* The first free place, which is taken; the last one has room for all that find no other. */
static inline uint8_t md_take_place(uint64_t *places)
{
	uint8_t place = ~*places ? (uint8_t)__builtin_ctzll(~*places) : PTT_MODEL_PLACES - 1;

	if (place < PTT_MODEL_PLACES - 1)
		*places |= UINT64_C(1) << place;
	return place;
}

/* md_hold_begin - a hold that nobody is blamed for yet; there may be no memory for it. Inline, for every lock comes here. */
static inline void md_hold_begin(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t pair,
				 uint32_t site, uint8_t mode)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_hold *h;
	uint32_t number;

	if (unlikely(o->crowd))
		md_crowd_pass(m, o);
	number = tk_hold_begin(&m->t, e, object, mode);
	h = MD_HOLD(m, number);
	h->share = o->share;
	h->sched = MD_THREAD(m, e->thread)->sched.now;
	h->pair = pair;
	h->site_row = site;
	h->max_waiters = o->pub.waiters;
	h->thread_place = md_take_place(&MD_THREAD(m, e->thread)->places);
	h->object_place = md_take_place(&o->places);
}

void md_hold_unlink(struct ptt_model *m, uint32_t number);
/*
 * md_no_lock - a semaphore turns out to be no lock: a unit that was taken has not been held, and nobody is blamed for the
 * waits that go on. Nothing is done where that is known.
 */
void md_no_lock(struct ptt_model *m, uint32_t object, int64_t ts);
/*
 * md_has_holder - an object has a holder that is known while it has not been given back. A unit of a semaphore may be meant
 * for another thread to give back: it is held if the semaphore is known to be a lock, or each unit has come back so far.
 */
static inline bool md_has_holder(const struct md_object *o)
{
	if (o->pub.kind == PTT_KIND_SEM && o->purpose != PTT_FOR_LOCK && !o->pub.releaser)
		return false;
	return o->pub.holds && !o->given_away;
}

/* md_taken_in - where a hold began; nowhere, if a lock of Python was taken when no stack was recorded: in the interpreter. */
static inline uint32_t md_taken_in(const struct md_object *o, const struct md_hold *h)
{
	return o->pub.kind == PTT_KIND_SEM && o->made_by_stack && !h->stack ? 0 : h->site_row;
}

/* md_taken_unseen - where a hold began is not known: no stack was recorded, and the call site is of the interpreter or a wrapper. */
static inline bool md_taken_unseen(const struct ptt_model *m, const struct md_object *o, const struct md_hold *h)
{
	return !h->stack && (md_taken_in(o, h) != h->site_row || MD_SITE(m, h->site_row)->use & PTT_SITE_IN_WRAPPER);
}

/* md_drop_holds - forgets holds whose end cannot be known; they are blamed up to now, unless it is a semaphore's. */
void md_drop_holds(struct ptt_model *m, uint32_t object, int64_t ts);

#endif
