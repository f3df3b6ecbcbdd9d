/* SPDX-License-Identifier: MIT */
/* writer.c - the slow path of recording: the chunk is full or taken, or the thread has no chunk yet. */
#include "writer.h"

#include "session.h"

/* ------------------------------------------------------------ revocation */

/* The collector has taken the chunk of change count @changes. Leave the chunk if the head is still there. */
static void leave_chunk(struct ptt_thread *self, uint32_t changes)
{
	uint64_t head = ptt_local_load(&self->head);
	struct ptt_segment *seg = ptt_segment_of(self);
	uint32_t owned = PTT_CHUNK_STATE(ptt_thread_index(self), changes, PTT_CHUNK_OWNED);

	if (PTT_HEAD_CHANGES(head) != changes)
		return;
	/* for frames of this thread that a signal handler interrupted: their reservations there are void */
	__atomic_compare_exchange_n(&ptt_chunk_states(seg)[ptt_chunk_index(seg, head - 1)], &owned,
				    owned | PTT_CHUNK_FULL | PTT_CHUNK_TAKEN, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	while (PTT_HEAD_CHANGES(head) == changes &&
	       !ptt_local_cas(&self->head, head, (head & ~PTT_HEAD_OFFSET_MASK) + PTT_HEAD_CHANGE))
		head = ptt_local_load(&self->head);
}

/*
 * settle_revoke - the revocation word has changed since a slot was reserved at @head. ptt_abi.h has the whole protocol.
 * Return: true if the slot still belongs to this thread, so it may be written.
 */
static bool settle_revoke(struct ptt_thread *self, uint64_t head)
{
	struct ptt_segment *seg = ptt_segment_of(self);
	uint32_t word, state, changes = PTT_HEAD_CHANGES(head);

	for (;;) {
		/* acq_rel throughout: the partner is the collector's compare and swap of this word */
		word = __atomic_load_n(&self->revoke, __ATOMIC_ACQUIRE);
		if (PTT_REVOKE_STATE(word) == PTT_REVOKE_NONE)
			break;
		if (PTT_REVOKE_STATE(word) == PTT_REVOKE_ASKED) {
			__atomic_compare_exchange_n(&self->revoke, &word, word & ~PTT_REVOKE_STATE_MASK, false,
						    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
			continue;
		}
		leave_chunk(self, word >> 2);
		__atomic_compare_exchange_n(&self->revoke, &word, PTT_REVOKE_WORD(PTT_REVOKE_NONE, (word >> 2) + 1), false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	}
	/* acquire: pairs with the collector's make_full() */
	state = __atomic_load_n(&ptt_chunk_states(seg)[ptt_chunk_index(seg, head)], __ATOMIC_ACQUIRE);
	return state == PTT_CHUNK_STATE(ptt_thread_index(self), changes, PTT_CHUNK_OWNED) ||
	       state == PTT_CHUNK_STATE(ptt_thread_index(self), changes, PTT_CHUNK_FULL);
}

/* ------------------------------------------------------------ recording */

#define BUFFER_WAIT (13u << 6) /* handler domain, event 0 */

/* Write an event into slots reserved at @head. A stack slot gets the time of its event. */
static void commit(const struct ptt_thread *self, uint64_t head, uint64_t w0, uint64_t w1, const struct ptt_slot *rest, uint32_t count)
{
	struct ptt_slot *slot = (struct ptt_slot *)(ptt_segment_base(self) + PTT_HEAD_OFFSET(head));
	uint32_t i;

	for (i = 0; i < count; i++) {
		slot[i + 1].w1 = rest[i].w1;
		__atomic_store_n(&slot[i + 1].w0,
				 rest[i].w0 == PTT_ID_STACK ? (w0 & ~(uint64_t)PTT_ID_MASK) | PTT_ID_STACK : rest[i].w0, __ATOMIC_RELAXED);
	}
	slot->w1 = w1;
	/* release: the collector's acquire load of w0 sees the whole event */
	__atomic_store_n(&slot->w0, w0, __ATOMIC_RELEASE);
}

/* End the current chunk early: an END slot, and the head moves to the boundary. */
static void end_chunk(struct ptt_thread *self, uint64_t head, uint32_t revoke)
{
	uint64_t boundary = (head | ptt_ring.chunk_mask) + 1;

	if (!ptt_local_cas(&self->head, head, boundary))
		return; /* a signal handler moved the head; the caller looks again */
	if (__atomic_load_n(&self->revoke, __ATOMIC_RELAXED) != revoke && !settle_revoke(self, head))
		return;
	commit(self, head, PTT_ID_END, 0, NULL, 0);
}

/* Return: true if there may be room for @slots at the new head; the caller looks again. */
static bool make_room(struct ptt_thread *self, uint64_t head, uint32_t revoke, uint32_t slots, uint64_t now,
		      uint64_t *waited_ns)
{
	uint64_t offset = head & PTT_HEAD_OFFSET_MASK;

	if (!(offset & ptt_ring.chunk_mask)) {
		enum ptt_refill done = ptt_chunk_refill(self, head, waited_ns);

		/* only the function that moved the head away from the old chunk may close that chunk */
		if (done == PTT_REFILL_DONE && offset)
			ptt_chunk_close(self, head);
		return done != PTT_REFILL_LOST;
	}
	if (ptt_ring.chunk_mask + 1 - (offset & ptt_ring.chunk_mask) < (uint64_t)slots * PTT_SLOT_SIZE ||
	    (now - self->t_base) >> PTT_TIME_BITS)
		end_chunk(self, head, revoke);
	return true;
}

static bool has_room(const struct ptt_thread *self, uint64_t head, uint32_t slots, uint64_t now)
{
	uint64_t at = head & ptt_ring.chunk_mask;

	return at && at + (uint64_t)slots * PTT_SLOT_SIZE <= ptt_ring.chunk_mask + 1 &&
	       !((now - self->t_base) >> PTT_TIME_BITS);
}

void ptt_ring_put_revoked(struct ptt_thread *self, uint64_t head, uint64_t w0, uint64_t w1, bool fence)
{
	if (settle_revoke(self, head))
		commit(self, head, w0, w1, NULL, 0);
	else
		ptt_ring_put_slow((uint32_t)w0 & PTT_ID_MASK, w1, NULL, 0, fence);
}

void ptt_ring_put_slow(uint64_t id, uint64_t w1, const struct ptt_slot *rest, uint32_t count, bool fence)
{
	uint64_t waited_ns = 0;
	struct ptt_thread *self = ptt_ring_self;

	if (ptt_segment_of(self) != ptt_session.segment) {
		self = ptt_ring_enter_thread();
		if (!self)
			return;
		fence = true; /* the last taker's mark stood for all threads without an entry */
	}
	for (;;) {
		uint32_t revoke = __atomic_load_n(&self->revoke, __ATOMIC_RELAXED) & ~PTT_REVOKE_STATE_MASK;
		uint64_t head = ptt_local_load(&self->head);
		uint64_t now = fence ? ptt_clock_fenced(ptt_ring.clock) : ptt_clock(ptt_ring.clock);

		if (!has_room(self, head, count + 1, now)) {
			if (!make_room(self, head, revoke, count + 1, now, &waited_ns))
				return;
			continue;
		}
		if (!ptt_local_cas(&self->head, head, head + (uint64_t)(count + 1) * PTT_SLOT_SIZE))
			continue;
		/* read after the reservation: pairs with the collector's ASKED, barrier, read of head */
		if (__atomic_load_n(&self->revoke, __ATOMIC_RELAXED) != revoke && !settle_revoke(self, head))
			continue;
		commit(self, head, PTT_SLOT_W0(id, ptt_ring_cpu(), now), w1, rest, count);
		break;
	}
	if (waited_ns)
		ptt_ring_put_slow(BUFFER_WAIT, 0, &(const struct ptt_slot){.w0 = PTT_ID_MORE, .w1 = waited_ns}, 1, false);
}
