/* SPDX-License-Identifier: MIT */
/* threads.c - a thread gets an entry in the segment with its first event, and gives the entry back at its end. */
#include "bell.h"
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

/*
 * ------------------------------------------------------------ black box: nobody gives entries back, so threads take them over
 * tests/models/entries.pml checks this part.
 */

/* An entry that no thread had. Return: NULL if there is none. */
static struct ptt_thread *claim_fresh(struct ptt_segment *seg)
{
	/* relaxed, both: readers of the box look at the entry itself */
	uint32_t high = __atomic_load_n(&seg->thread_high, __ATOMIC_RELAXED);

	do {
		if (high >= seg->thread_count)
			return NULL;
	} while (!__atomic_compare_exchange_n(&seg->thread_high, &high, high + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	/* relaxed: claim_ended() leaves the entry alone, because no thread has ended in it */
	__atomic_store_n(&ptt_thread_owners(seg)[high], ptt_session.process_index + 1, __ATOMIC_RELAXED);
	return &ptt_threads(seg)[high];
}

/*
 * Has a thread ended in this entry? claim_fresh() raises thread_high before it stores the owner, so a fresh entry may look
 * free for a moment.
 */
static bool had_thread(struct ptt_segment *seg, uint32_t index)
{
	/* acquire: pairs with the release of ENDED; who sees ENDED sees the first owner, too, so the swap comes behind that owner */
	return __atomic_load_n(&ptt_threads(seg)[index].state, __ATOMIC_ACQUIRE) == PTT_THREAD_ENDED;
}

/* The entry of a thread that has ended, one of the first to end. Return: NULL if there is none. */
static struct ptt_thread *claim_ended(struct ptt_segment *seg)
{
	/* relaxed: a hint; the swap looks again */
	uint32_t n, *owner = ptt_thread_owners(seg), high = __atomic_load_n(&seg->thread_high, __ATOMIC_RELAXED);
	uint32_t i = __atomic_load_n(&seg->thread_hint, __ATOMIC_RELAXED);

	for (n = 0; n < high; n++, i++) {
		uint32_t expected = 0;

		if (i >= high)
			i = 0;
		/* acquire: pairs with the release in give_back_in_box() */
		if (__atomic_load_n(&owner[i], __ATOMIC_RELAXED) || !had_thread(seg, i) ||
		    !__atomic_compare_exchange_n(&owner[i], &expected, ptt_session.process_index + 1, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&seg->thread_hint, i + 1, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&seg->ended, 1, __ATOMIC_RELAXED); /* a count */
		return &ptt_threads(seg)[i];
	}
	return NULL;
}

static struct ptt_thread *claim_in_box(struct ptt_segment *seg)
{
	/* relaxed: with a late count, a few more threads that have ended are kept, or fewer */
	bool keep = __atomic_load_n(&seg->ended, __ATOMIC_RELAXED) < PTT_BOX_ENDED;
	struct ptt_thread *self = keep ? claim_fresh(seg) : claim_ended(seg);

	if (!self)
		self = keep ? claim_ended(seg) : claim_fresh(seg);
	return self;
}

/* Other threads may claim the entry from now on. */
static void give_back_in_box(struct ptt_thread *self)
{
	struct ptt_segment *seg = ptt_segment_of(self);

	/* release: pairs with the acquire in had_thread() */
	__atomic_store_n(&self->state, PTT_THREAD_ENDED, __ATOMIC_RELEASE);
	__atomic_fetch_add(&seg->ended, 1, __ATOMIC_RELAXED); /* a count */
	/* release: pairs with the acquire in claim_ended() */
	__atomic_store_n(&ptt_thread_owners(seg)[self - ptt_threads(seg)], 0, __ATOMIC_RELEASE);
	/* release: pairs with has_no_entry(), in a thread that found no entry before */
	__atomic_fetch_add(&seg->space, 1, __ATOMIC_RELEASE);
}

/* The thread is over: its chunk and its entry may be used again. Signals are held, and nobody else writes to the chunk. */
static void leave_box(struct ptt_thread *self)
{
	struct ptt_segment *seg = ptt_segment_of(self);
	uint64_t head = ptt_local_load(&self->head), boundary = (head | ptt_ring.chunk_mask) + 1;

	if (head & ptt_ring.chunk_mask) {
		/* release: pairs with a reader that finds the slot written */
		__atomic_store_n(&((struct ptt_slot *)((char *)seg + PTT_HEAD_OFFSET(head)))->w0, PTT_ID_END, __ATOMIC_RELEASE);
		ptt_local_cas(&self->head, head, boundary);
		ptt_chunk_close(self, boundary);
	}
	give_back_in_box(self);
}

/* The box where this thread last looked for an entry in vain, and the value of segment.space then; see has_no_entry(). */
static __thread const struct ptt_segment *looked_in __attribute__((tls_model("initial-exec")));
static __thread uint32_t looked_at __attribute__((tls_model("initial-exec")));

/* Is it known that there is no entry for this thread? It must not search for each event. */
static bool has_no_entry(const struct ptt_segment *seg)
{
	/* acquire: pairs with the release in give_back_in_box() */
	return seg && seg == looked_in && __atomic_load_n(&seg->space, __ATOMIC_ACQUIRE) == looked_at;
}

/* ------------------------------------------------------------ any segment */

static struct ptt_thread *enter_thread(void)
{
	struct ptt_thread *self;

	if (!ptt_session.segment)
		return NULL;
	if (ptt_session.segment->box) {
		/* before the search: a thread that ends meanwhile changes the value */
		looked_at = __atomic_load_n(&ptt_session.segment->space, __ATOMIC_ACQUIRE);
		self = claim_in_box(ptt_session.segment);
		looked_in = self ? NULL : ptt_session.segment;
	} else {
		self = claim_thread();
	}
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
	self->hint = (uint32_t)(self - ptt_threads(ptt_session.segment)) * (ptt_session.segment->box ? 2 : PTT_HOME_STRIDE);
	if (!ptt_ring_take_entry(self)) {
		/* a signal handler claimed an entry for this thread meanwhile */
		if (ptt_session.segment->box)
			give_back_in_box(self);
		else
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
	struct ptt_thread *self = ptt_ring_self;
	uint64_t before;
	bool enters;

	if (has_no_entry(ptt_session.segment)) {
		/* relaxed: a count */
		__atomic_fetch_add(&ptt_session.process->lost_threads, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	before = ptt_hold_signals();
	self = ptt_ring_self;
	enters = ptt_segment_of(self) != ptt_session.segment;
	if (enters) {
		ptt_ring_forget_thread(); /* the entry of an earlier session, or none */
		self = enter_thread();
	}
	ptt_let_signals(before);
	if (enters && self)
		ptt_upcalls.thread_enters();
	return self;
}

/*
 * An entry comes back when the collector has written its events. If many threads come and go, and the collector does not look
 * in time, each thread takes another entry, another buffer whose pages are new to the process, and another file.
 */
#define ENDS_PER_CALL 64u

static void note_end(struct ptt_segment *seg)
{
	/* relaxed: a count */
	uint32_t ends = __atomic_add_fetch(&seg->ends, 1, __ATOMIC_RELAXED);

	if (ends % ENDS_PER_CALL == 0 && seg->policy == PTT_POLICY_FLUSH && !ptt_is_confined())
		ptt_ring_the_bell(seg);
}

void ptt_ring_thread_end(void)
{
	uint64_t before = ptt_hold_signals();
	struct ptt_thread *self = ptt_ring_self;
	struct ptt_segment *seg = ptt_segment_of(self);

	ptt_schedstat_end_thread();
	if (!ptt_ring_is_nowhere(self)) {
		ptt_ring_forget_thread();
		ptt_leave_to_others();
		if (seg->box) {
			leave_box(self);
		} else {
			/* release: the collector's acquire load of ENDED sees the thread's last slots; the entry is not ours any more */
			__atomic_store_n(&self->state, PTT_THREAD_ENDED, __ATOMIC_RELEASE);
			note_end(seg);
		}
	}
	ptt_let_signals(before);
}
