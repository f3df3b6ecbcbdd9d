/* SPDX-License-Identifier: MIT */
/* threads.c - a thread gets an entry in the segment with its first event, and gives the entry back at its end. */
#include "../platform/confined.h"
#include "../platform/signals.h"
#include "session.h"
#include "writer.h"

static struct ptt_thread *claim_thread(void)
{
	struct ptt_segment *seg = ptt_session.segment;
	uint32_t n, i, *owner = ptt_thread_owners(seg), count = seg->thread_count;
	/* relaxed: only a hint; when many threads begin at once, each cannot look at the entries of all others */
	uint32_t hint = __atomic_load_n(&seg->thread_hint, __ATOMIC_RELAXED);

	for (n = 0, i = hint; n < count; n++, i++) {
		uint32_t expected = 0;

		if (i >= count)
			i = 0;
		/* relaxed: the swap looks again */
		if (__atomic_load_n(&owner[i], __ATOMIC_RELAXED))
			continue;
		/* acquire: pairs with the collector's release when it gave the entry back */
		if (__atomic_compare_exchange_n(&owner[i], &expected, ptt_session.process_index + 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			ptt_raise_high(&seg->thread_high, i + 1);
			/* relaxed: a failure means that a lower entry was given back, which is to be used first */
			__atomic_compare_exchange_n(&seg->thread_hint, &hint, i + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
			return &ptt_threads(seg)[i];
		}
	}
	return NULL;
}

static struct ptt_thread *enter_thread(void)
{
	struct ptt_thread *self;

	if (!ptt_session.segment)
		return NULL;
	self = claim_thread();
	if (!self) {
		/* relaxed: a count */
		__atomic_fetch_add(&ptt_session.process->lost_threads, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	ptt_take_from_others();
	self->head = (self->head & ~PTT_HEAD_OFFSET_MASK) + PTT_HEAD_CHANGE;
	self->t_base = ptt_clock(ptt_ring.clock);
	self->pid = ptt_session.pid;
	self->tid = ptt_own_tid();
	self->process = ptt_session.image;
	self->hint = (uint32_t)(self - ptt_threads(ptt_session.segment)) * PTT_HOME_STRIDE;
	if (!ptt_ring_take_entry(self)) {
		/* a signal handler claimed an entry for this thread meanwhile */
		__atomic_store_n(&ptt_thread_owners(ptt_session.segment)[self - ptt_threads(ptt_session.segment)], 0,
				 __ATOMIC_RELEASE);
		return ptt_ring_self;
	}
	ptt_schedstat_begin_thread();
	/* release: the collector's acquire load of LIVE sees the entry */
	__atomic_store_n(&self->state, PTT_THREAD_LIVE, __ATOMIC_RELEASE);
	return self;
}

/*
 * Signals are held for two reasons. A child that a handler forked in between would take the parent's entry for its own. And
 * a handler that came just before may have given the thread an entry; if that entry were forgotten, the events would seem
 * to come from two threads.
 */
struct ptt_thread *ptt_ring_enter_thread(void)
{
	uint64_t before = ptt_hold_signals();
	struct ptt_thread *self = ptt_ring_self;
	bool enters = ptt_segment_of(self) != ptt_session.segment;

	if (enters) {
		ptt_ring_forget_thread(); /* the entry of an earlier session, or none */
		self = enter_thread();
	}
	ptt_let_signals(before);
	if (enters && self)
		ptt_upcalls.thread_enters();
	return self;
}

void ptt_ring_thread_end(void)
{
	uint64_t before = ptt_hold_signals();
	struct ptt_thread *self = ptt_ring_self;

	ptt_schedstat_end_thread();
	if (!ptt_ring_is_nowhere(self)) {
		ptt_ring_forget_thread();
		ptt_leave_to_others();
		/* release: the collector's acquire load of ENDED sees the thread's last slots */
		__atomic_store_n(&self->state, PTT_THREAD_ENDED, __ATOMIC_RELEASE);
	}
	ptt_let_signals(before);
}
