/* SPDX-License-Identifier: MIT */
/* ring.c - the writer's slow paths: a new chunk, waiting for room, a revoked chunk, a new call site. */
#include "ring.h"

#include <errno.h>
#include <string.h>

#include "attach.h"
#include "bell.h"
#include "raw_syscall.h"

/* A head of 0 lies on a chunk boundary, so whoever has this entry takes the slow path at once. */
static struct ptt_thread nowhere;
static uint64_t own_sites[PTT_SITE_COUNT];

__thread struct ptt_thread *ptt_ring_self __attribute__((tls_model("initial-exec"))) = &nowhere;
static __thread uint32_t no_cpu __attribute__((tls_model("initial-exec"))) = UINT32_MAX;

struct ptt_ring ptt_ring = {.base = (char *)&nowhere, .sites = own_sites, .chunk_mask = PTT_CHUNK_SIZE - 1};
uint64_t ptt_ring_taker[PTT_TAKER_COUNT];

/* How long a writer sleeps before it looks again whether anybody still collects. */
static const struct timespec wait_slice = {.tv_nsec = 50 * 1000 * 1000};

bool ptt_ring_take_entry(struct ptt_thread *self)
{
	struct ptt_thread *expected = &nowhere;

	/* relaxed: against signal handlers of this thread only */
	return __atomic_compare_exchange_n(&ptt_ring_self, &expected, self, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void ptt_ring_forget_thread(void)
{
	ptt_ring_self = &nowhere;
}

bool ptt_ring_is_nowhere(const struct ptt_thread *self)
{
	return self == &nowhere;
}

ptrdiff_t ptt_ring_no_cpu_offset(void)
{
	return (char *)&no_cpu - (char *)__builtin_thread_pointer();
}

/* ------------------------------------------------------------ call sites */

static void announce_site(uint64_t at, uint64_t address, uint32_t id)
{
	struct ptt_site *site = ptt_session.site + at % PTT_SITE_JOURNAL;

	site->process = ptt_session.process_index;
	site->id = id;
	/* release: the collector's acquire load of address sees process and id */
	__atomic_store_n(&site->address, address, __ATOMIC_RELEASE);
}

/* Reserve an entry of the journal; false if it is full. */
static bool reserve_site(struct ptt_segment *seg, uint64_t *at)
{
	uint64_t head = __atomic_load_n(&seg->site_head, __ATOMIC_RELAXED);

	do {
		/* acquire: pairs with the collector's release of site_tail, after it zeroed the entry */
		if (head - __atomic_load_n(&seg->site_tail, __ATOMIC_ACQUIRE) >= PTT_SITE_JOURNAL)
			return false;
	} while (!__atomic_compare_exchange_n(&seg->site_head, &head, head + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	*at = head;
	return true;
}

/* Put @address into the empty table entry @id unless somebody else just did. */
static bool insert_site(uint32_t id, uint64_t address)
{
	struct ptt_segment *seg = ptt_session.segment;
	uint64_t at, expected = 0;

	if (!reserve_site(seg, &at)) {
		__atomic_fetch_add(&seg->site_lost, 1, __ATOMIC_RELAXED);
		return false;
	}
	if (__atomic_compare_exchange_n(&ptt_ring.sites[id], &expected, address, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED)) {
		announce_site(at, address, id);
		return true;
	}
	announce_site(at, PTT_SITE_VOID, 0);
	return expected == address;
}

uint32_t ptt_ring_site_slow(uint64_t address)
{
	uint32_t probe, id = PTT_SITE_HASH(address);

	if (!ptt_session.segment || !address)
		return PTT_SITE_NONE;
	for (probe = 0; probe < 64; probe++, id = (id + 1) % PTT_SITE_COUNT) {
		uint64_t found;

		if (id == PTT_SITE_NONE)
			continue;
		found = __atomic_load_n(&ptt_ring.sites[id], __ATOMIC_RELAXED);
		if (found == address)
			return id;
		if (!found && insert_site(id, address))
			return id;
		if (!found && !__atomic_load_n(&ptt_ring.sites[id], __ATOMIC_RELAXED))
			return PTT_SITE_NONE; /* the journal is full */
	}
	return PTT_SITE_NONE;
}

/* ------------------------------------------------------------ waiting for room */

/* Wait until chunks may be free. Return: false if nothing will ever free them. */
static bool wait_for_space(struct ptt_segment *seg, uint32_t seen)
{
	if (seg->when_full != PTT_WHEN_FULL_WAIT || seg->policy != PTT_POLICY_FLUSH || !ptt_is_collected(seg))
		return false;
	__atomic_fetch_add(&seg->waiters, 1, __ATOMIC_SEQ_CST); /* pairs with the collector's bump of space, then load */
	ptt_ring_the_bell(seg);
	ptt_raw_futex(&seg->space, FUTEX_WAIT, seen, &wait_slice);
	__atomic_fetch_sub(&seg->waiters, 1, __ATOMIC_RELAXED);
	return true;
}

/* ------------------------------------------------------------ chunks */

static struct ptt_chunk *chunk_at(uint32_t index)
{
	return (struct ptt_chunk *)(ptt_ring.base + ptt_session.segment->chunk_offset +
				    (uint64_t)index * ptt_session.segment->chunk_size);
}

static uint32_t chunk_index(uint64_t head)
{
	return (uint32_t)(((head & PTT_HEAD_OFFSET_MASK) - ptt_session.segment->chunk_offset) /
			  ptt_session.segment->chunk_size);
}

static uint64_t chunk_first_slot(uint32_t index)
{
	return ptt_session.segment->chunk_offset + (uint64_t)index * ptt_session.segment->chunk_size + PTT_CHUNK_HEAD;
}

static uint32_t thread_index(const struct ptt_thread *self)
{
	return (uint32_t)(self - ptt_session.thread);
}

static bool claim_index(uint32_t index, uint32_t status, uint32_t claimed)
{
	uint32_t *state = &ptt_session.chunk_state[index];
	uint32_t seen = __atomic_load_n(state, __ATOMIC_RELAXED);

	if (PTT_CHUNK_STATUS(seen) != status)
		return false;
	/* acquire: pairs with the release that freed the chunk, so that its dirty_end is right */
	return __atomic_compare_exchange_n(state, &seen, claimed, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Return: index of a chunk that now is CLAIMED for @self, or -1 if none is free. */
static int64_t claim_free(struct ptt_thread *self, uint32_t claimed)
{
	struct ptt_segment *seg = ptt_session.segment;
	uint32_t i, index = self->hint % seg->chunk_count;

	for (i = 0; i < seg->chunk_count; i++) {
		if (claim_index(index, PTT_CHUNK_FREE, claimed))
			return index;
		if (++index == seg->chunk_count)
			index = 0;
	}
	return -1;
}

/* Are all slots up to the chunk's end written? A signal handler may have interrupted a writer between reserving and writing. */
static bool is_whole(uint32_t index)
{
	const struct ptt_chunk *chunk = chunk_at(index);
	const struct ptt_slot *slot = (const struct ptt_slot *)((const char *)chunk + PTT_CHUNK_HEAD);
	uint32_t i, count = (ptt_session.segment->chunk_size - PTT_CHUNK_HEAD) / PTT_SLOT_SIZE;

	for (i = 0; i < count; i++) {
		uint64_t w0 = __atomic_load_n(&slot[i].w0, __ATOMIC_RELAXED);

		if (!w0)
			return false;
		if ((w0 & PTT_ID_MASK) == PTT_ID_END)
			return true;
	}
	return true;
}

/* LOOP: take over what was filled longest ago, going round the chunks like the hand of a clock. */
static int64_t claim_oldest(uint32_t claimed)
{
	struct ptt_segment *seg = ptt_session.segment;
	uint32_t i;

	for (i = 0; i < seg->chunk_count; i++) {
		uint32_t index = __atomic_fetch_add(&seg->chunk_hand, 1, __ATOMIC_RELAXED) % seg->chunk_count;

		if (is_whole(index) && claim_index(index, PTT_CHUNK_FULL, claimed)) {
			__atomic_fetch_add(&seg->overwritten, seg->chunk_size - PTT_CHUNK_HEAD, __ATOMIC_RELAXED);
			chunk_at(index)->dirty_end = seg->chunk_size;
			return index;
		}
	}
	return -1;
}

static int64_t claim(struct ptt_thread *self, uint32_t claimed)
{
	struct ptt_segment *seg = ptt_session.segment;
	int64_t index;

	if (__atomic_load_n(&seg->stopped, __ATOMIC_RELAXED))
		return -1;
	index = claim_free(self, claimed);
	if (index >= 0)
		return index;
	if (seg->policy == PTT_POLICY_LOOP)
		return claim_oldest(claimed);
	if (seg->policy == PTT_POLICY_UNTIL_FULL)
		__atomic_store_n(&seg->stopped, 1, __ATOMIC_RELAXED);
	return -1;
}

/* The head has moved on from the chunk that it was in at @head. */
static void close_chunk(struct ptt_thread *self, uint64_t head)
{
	uint32_t index = chunk_index(head - 1), changes = PTT_HEAD_CHANGES(head);
	uint32_t owned = PTT_CHUNK_STATE(thread_index(self), changes, PTT_CHUNK_OWNED);

	/* release: the collector's acquire load of FULL sees the slots of this thread */
	__atomic_compare_exchange_n(&ptt_session.chunk_state[index], &owned,
				    PTT_CHUNK_STATE(thread_index(self), changes, PTT_CHUNK_FULL), false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

/*
 * Prepare a claimed chunk and make it the current one.
 * Return: false if a signal handler did so first; then the chunk goes back.
 */
static bool install_chunk(struct ptt_thread *self, uint32_t index, uint64_t serial, uint64_t head)
{
	struct ptt_chunk *chunk = chunk_at(index);
	uint32_t *state = &ptt_session.chunk_state[index];
	uint32_t dirty = chunk->dirty_end;
	uint64_t now;

	if (dirty > PTT_CHUNK_HEAD)
		memset((char *)chunk + PTT_CHUNK_HEAD, 0, dirty - PTT_CHUNK_HEAD);
	now = ptt_clock_fenced(ptt_ring.clock);
	*chunk = (struct ptt_chunk){
		.t_base = now,
		.pid = self->pid,
		.tid = self->tid,
		.process = self->process,
		.dirty_end = ptt_session.segment->chunk_size,
		.serial = serial,
	};
	/* release: the collector's acquire load of OWNED sees the chunk's head and cleared slots */
	__atomic_store_n(state, PTT_CHUNK_STATE(thread_index(self), PTT_HEAD_CHANGES(head) + 1, PTT_CHUNK_OWNED),
			 __ATOMIC_RELEASE);
	if (ptt_local_cas(&self->head, head,
			  (head & ~PTT_HEAD_OFFSET_MASK) + PTT_HEAD_CHANGE + chunk_first_slot(index))) {
		self->t_base = now;
		self->hint = index + 1;
		return true;
	}
	chunk->dirty_end = PTT_CHUNK_HEAD;
	__atomic_store_n(state, PTT_CHUNK_FREE, __ATOMIC_RELEASE); /* pairs with the next claim's acquire */
	return false;
}

static void count_lost(struct ptt_thread *self, bool closed)
{
	__atomic_fetch_add(closed ? &self->lost_closed : &self->lost_full, 1, __ATOMIC_RELAXED);
}

enum refill { REFILL_DONE, REFILL_BY_SIGNAL_HANDLER, REFILL_LOST };

/* The value of segment.space at which this thread last searched all chunks in vain. */
static __thread uint32_t searched_at __attribute__((tls_model("initial-exec"))) = UINT32_MAX;

/* One attempt to get @self a chunk; -1 = none is free. */
static int64_t try_claim(struct ptt_thread *self, uint32_t space, uint64_t *serial)
{
	int64_t index;

	if (space == searched_at)
		return -1; /* nothing has been freed since */
	*serial = __atomic_fetch_add(&self->chunks, 1, __ATOMIC_RELAXED);
	index = claim(self, PTT_CHUNK_STATE(thread_index(self), 0, PTT_CHUNK_CLAIMED));
	if (index < 0)
		searched_at = space;
	return index;
}

/* Get @self a chunk with room, waiting if need be; a lost event is counted. */
static enum refill refill(struct ptt_thread *self, uint64_t head, uint64_t *waited_ns)
{
	struct ptt_segment *seg = ptt_session.segment;
	enum refill done = REFILL_LOST;
	uint64_t serial, began = 0;

	for (;;) {
		/* acquire: pairs with the collector's release bump after it freed chunks */
		uint32_t space = __atomic_load_n(&seg->space, __ATOMIC_ACQUIRE);
		int64_t index;

		if (__atomic_load_n(&seg->closed, __ATOMIC_RELAXED)) {
			count_lost(self, true);
			break;
		}
		index = try_claim(self, space, &serial);
		if (index >= 0) {
			done = install_chunk(self, (uint32_t)index, serial, head) ? REFILL_DONE : REFILL_BY_SIGNAL_HANDLER;
			break;
		}
		if (ptt_local_load(&self->head) != head) {
			done = REFILL_BY_SIGNAL_HANDLER;
			break;
		}
		if (!began)
			began = ptt_clock_monotonic_ns();
		if (!wait_for_space(seg, space)) {
			count_lost(self, !ptt_is_collected(seg) && seg->policy == PTT_POLICY_FLUSH);
			break;
		}
	}
	if (began) {
		uint64_t waited = ptt_clock_monotonic_ns() - began;

		*waited_ns += waited;
		__atomic_fetch_add(&self->wait_ns, waited, __ATOMIC_RELAXED);
	}
	return done;
}

/* ------------------------------------------------------------ revocation */

/* The collector has taken the chunk of change count @changes: if the head is still there, leave it. */
static void leave_chunk(struct ptt_thread *self, uint32_t changes)
{
	uint64_t head = ptt_local_load(&self->head);
	uint32_t owned = PTT_CHUNK_STATE(thread_index(self), changes, PTT_CHUNK_OWNED);

	if (PTT_HEAD_CHANGES(head) != changes)
		return;
	/* for frames of this thread that a signal handler interrupted: what they reserved there is void */
	__atomic_compare_exchange_n(&ptt_session.chunk_state[chunk_index(head - 1)], &owned,
				    owned | PTT_CHUNK_FULL | PTT_CHUNK_TAKEN, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	while (PTT_HEAD_CHANGES(head) == changes &&
	       !ptt_local_cas(&self->head, head, (head & ~PTT_HEAD_OFFSET_MASK) + PTT_HEAD_CHANGE))
		head = ptt_local_load(&self->head);
}

/*
 * settle_revoke - the revocation word is not what it was before a slot was reserved at @head
 * Return: true if the slot is still ours, so that it may be written. ptt_abi.h has the whole protocol.
 */
static bool settle_revoke(struct ptt_thread *self, uint64_t head)
{
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
	state = __atomic_load_n(&ptt_session.chunk_state[chunk_index(head)], __ATOMIC_ACQUIRE);
	return state == PTT_CHUNK_STATE(thread_index(self), changes, PTT_CHUNK_OWNED) ||
	       state == PTT_CHUNK_STATE(thread_index(self), changes, PTT_CHUNK_FULL);
}

/* ------------------------------------------------------------ recording */

/* Write an event into slots that have been reserved at @head. */
static void commit(uint64_t head, uint64_t w0, uint64_t w1, const struct ptt_slot *rest, uint32_t count)
{
	struct ptt_slot *slot = (struct ptt_slot *)(ptt_ring.base + (head & PTT_HEAD_OFFSET_MASK));
	uint32_t i;

	for (i = 0; i < count; i++) {
		slot[i + 1].w1 = rest[i].w1;
		__atomic_store_n(&slot[i + 1].w0, rest[i].w0, __ATOMIC_RELAXED);
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
		return; /* a signal handler moved it; the caller looks again */
	if (__atomic_load_n(&self->revoke, __ATOMIC_RELAXED) != revoke && !settle_revoke(self, head))
		return;
	commit(head, PTT_ID_END, 0, NULL, 0);
}

static void note_wait(uint64_t waited_ns)
{
	const uint32_t id = 13u << 6; /* handler domain, event 0: BUFFER_WAIT */
	struct ptt_slot rest = {.w0 = PTT_ID_MORE, .w1 = waited_ns};

	ptt_ring_put_slow(id, 0, &rest, 1, false);
}

/* Return: true if there is a chunk with room for @slots at the new head. */
static bool make_room(struct ptt_thread *self, uint64_t head, uint32_t revoke, uint32_t slots, uint64_t now,
		      uint64_t *waited_ns)
{
	uint64_t offset = head & PTT_HEAD_OFFSET_MASK;

	if (!(offset & ptt_ring.chunk_mask)) {
		enum refill done = refill(self, head, waited_ns);

		/* only who moved the head away from the old chunk may close it */
		if (done == REFILL_DONE && offset)
			close_chunk(self, head);
		return done != REFILL_LOST;
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

void ptt_ring_put_revoked(uint64_t head, uint64_t w0, uint64_t w1, bool fence)
{
	if (settle_revoke(ptt_ring_self, head))
		commit(head, w0, w1, NULL, 0);
	else
		ptt_ring_put_slow((uint32_t)w0 & PTT_ID_MASK, w1, NULL, 0, fence);
}

void ptt_ring_put_slow(uint32_t id, uint64_t w1, const struct ptt_slot *rest, uint32_t count, bool fence)
{
	uint64_t waited_ns = 0;
	struct ptt_thread *self = ptt_ring_self;

	if (ptt_ring_is_nowhere(self)) {
		self = ptt_ring_enter_thread();
		if (!self)
			return;
		fence = true; /* the mark of the last taker was that of any thread without an entry */
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
		if (__atomic_load_n(&self->revoke, __ATOMIC_RELAXED) != revoke && !settle_revoke(self, head))
			continue;
		commit(head, PTT_SLOT_W0(id, ptt_ring_cpu(), now), w1, rest, count);
		break;
	}
	if (waited_ns)
		note_wait(waited_ns);
}
