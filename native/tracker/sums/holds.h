/* SPDX-License-Identifier: MIT */
/* holds.h - holds of locks, in the lists of their threads and objects, and their places in drawings. */
#ifndef PTTMODEL_HOLDS_H
#define PTTMODEL_HOLDS_H

#include "sums.h"

/* Takes the first free place. The last place has room for any number of holds. */
static inline uint8_t md_take_place(uint64_t *places)
{
	uint8_t place = ~*places ? (uint8_t)__builtin_ctzll(~*places) : PTT_MODEL_PLACES - 1;

	if (place < PTT_MODEL_PLACES - 1)
		*places |= UINT64_C(1) << place;
	return place;
}

/* md_hold_begin - begins a hold without any blame. Without memory, element 0 is written. Inline, because every acquisition calls it. */
static inline void md_hold_begin(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t pair,
				 uint32_t site, uint8_t mode)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_hold *h;
	uint32_t number;

	if (unlikely(o->crowd))
		md_crowd_tell_holds(m, o);
	number = tk_hold_begin(&m->t, e, object, mode);
	h = MD_HOLD(m, number);
	h->share = h->cut_share = o->share;
	h->watched = false;
	h->sched = tk_sched_mark(&MD_THREAD(m, e->thread)->sched, e->ts, MD_THREAD(m, e->thread)->pub.last_ns);
	h->pair = pair;
	h->site_row = site;
	h->max_waiters = o->pub.waiters;
	h->thread_place = md_take_place(&MD_THREAD(m, e->thread)->places);
	h->object_place = md_take_place(&o->places);
	if (unlikely(md_sharing(o)))
		md_watch_hold(m, number);
}

void md_hold_unlink(struct ptt_model *m, uint32_t number);
/*
 * md_no_lock - a semaphore turns out not to be a lock
 *
 * Its hold ends, and no thread is blamed for the waits that go on. Has no effect if this is known already.
 */
void md_no_lock(struct ptt_model *m, uint32_t object, int64_t ts);
/*
 * md_has_holder - whether an object has a known holder
 *
 * Another thread may be supposed to give back the unit of a semaphore. So a unit counts as held only if the semaphore is known
 * to be a lock, or if threads gave back their own units so far.
 */
static inline bool md_has_holder(const struct md_object *o)
{
	if (o->pub.kind == PTT_KIND_SEM && o->purpose != PTT_FOR_LOCK && !o->pub.releaser)
		return false;
	return o->pub.holds && !o->given_away;
}

/* md_taken_in - the call site where a hold began; 0: a lock of Python, taken without a stack. That site is in the interpreter. */
static inline uint32_t md_taken_in(const struct md_object *o, const struct md_hold *h)
{
	return o->pub.kind == PTT_KIND_SEM && o->made_by_stack && !h->stack ? 0 : h->site_row;
}

/* md_taken_unseen - whether the place of an acquisition is unknown: without a stack, its site is in the interpreter or a wrapper. */
static inline bool md_taken_unseen(const struct ptt_model *m, const struct md_object *o, const struct md_hold *h)
{
	return !h->stack && (md_taken_in(o, h) != h->site_row || MD_SITE(m, h->site_row)->use & PTT_SITE_IN_WRAPPER);
}

/* md_drop_holds - ends holds with an unknown end. They are blamed up to @ts, except holds of semaphores. */
void md_drop_holds(struct ptt_model *m, uint32_t object, int64_t ts);

#endif
