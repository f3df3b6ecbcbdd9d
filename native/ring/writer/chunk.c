/* SPDX-License-Identifier: MIT */
/* chunk.c - how a writer gets room: claim a chunk, prepare it, make it the current chunk, wait if no chunk is free. */
#include "session.h"

#include <string.h>

#include "bell.h"
#include "../mapping/private_segment.h"
#include "../platform/confined.h"
#include "writer.h"

/*
 * The time that a writer sleeps before it checks again that somebody collects. With thousands of waiting writers, these
 * checks must not keep all processors busy.
 */
static struct timespec wait_slice(uint32_t waiters)
{
	uint64_t ms = 50 + (uint64_t)waiters;

	if (ms > 2000)
		ms = 2000;
	return (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
}

/*
 * Room gets short: call the collector before threads have to wait.
 * @rung_at: the value of segment.space at the last call for this reason; one call for each value is enough
 */
static void call_collector_early(struct ptt_segment *seg, uint32_t *rung_at)
{
	/* relaxed: an extra call does no harm, nor does a call that comes with the next chunk */
	uint32_t space = __atomic_load_n(&seg->space, __ATOMIC_RELAXED);

	if (ptt_is_confined() || __atomic_exchange_n(rung_at, space, __ATOMIC_RELAXED) == space)
		return;
	ptt_ring_the_bell(seg);
}

/* Wait until chunks may be free. Return: false if nothing will free chunks, or this thread does not wait. */
static bool wait_for_space(struct ptt_thread *self, uint32_t seen, struct ptt_patience *patience)
{
	struct ptt_segment *seg = ptt_segment_of(self);
	struct timespec slice;
	uint32_t waiters;

	if (seg->when_full != PTT_WHEN_FULL_WAIT || seg->policy != PTT_POLICY_FLUSH || !ptt_is_collected(seg))
		return false;
	/* relaxed, both: counts */
	if (ptt_is_stalled(seg)) {
		__atomic_fetch_add(&self->lost_stalled, 1, __ATOMIC_RELAXED);
		return false;
	}
	if (ptt_is_real_time()) {
		__atomic_fetch_add(&self->lost_real_time, 1, __ATOMIC_RELAXED);
		return false;
	}
	/* seq_cst: pairs with the collector's bump of space, then load */
	waiters = __atomic_fetch_add(&seg->waiters, 1, __ATOMIC_SEQ_CST);
	slice = wait_slice(waiters);
	/* relaxed: for the collector, in case the thread is killed while it waits */
	__atomic_fetch_add(&self->waiting, 1, __ATOMIC_RELAXED);
	/* while a writer waits, the collector comes by itself */
	if (!waiters)
		ptt_ring_the_bell(seg);
	ptt_wait_for_collector(seg, patience, &seg->space, seen, &slice);
	__atomic_fetch_sub(&self->waiting, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&seg->waiters, 1, __ATOMIC_RELAXED);
	return true;
}

/*
 * An entry comes back when the collector has written its events. If threads come and go faster than that, each thread takes
 * another entry, and the collector makes another file for it, which makes the collector even slower. So a new thread waits
 * for a moment while many threads that have ended have their entries.
 */
#define ENDED_MOST 128
#define ENTRY_PATIENCE_NS UINT64_C(500000000)

/* @began: when the thread began to wait, or 0 */
static bool are_entries_short(const struct ptt_segment *seg, uint64_t began)
{
	static uint32_t in_vain_at = UINT32_MAX; /* value of taken_back when a thread had waited in vain */
	/* relaxed, all: counts and a flag that hand nothing over */
	uint32_t back = __atomic_load_n(&seg->taken_back, __ATOMIC_RELAXED);
	uint32_t ended = __atomic_load_n(&seg->ends, __ATOMIC_RELAXED) - back;

	/* a program that overwrites the counts must not wait for them */
	if (ended < ENDED_MOST || ended > seg->thread_count || back == __atomic_load_n(&in_vain_at, __ATOMIC_RELAXED))
		return false;
	if (began && ptt_clock_monotonic_ns() - began >= ENTRY_PATIENCE_NS) {
		__atomic_store_n(&in_vain_at, back, __ATOMIC_RELAXED);
		return false;
	}
	return seg->when_full == PTT_WHEN_FULL_WAIT && seg->policy == PTT_POLICY_FLUSH && !ptt_is_confined() &&
	       ptt_is_collected(seg) && !ptt_is_stalled(seg) && !ptt_is_real_time();
}

static uint64_t chunk_offset(const struct ptt_segment *seg, uint32_t index)
{
	return seg->chunk_offset + (uint64_t)index * seg->chunk_size;
}

static struct ptt_chunk *chunk_at(struct ptt_segment *seg, uint32_t index)
{
	return (struct ptt_chunk *)((char *)seg + chunk_offset(seg, index));
}

/* Claim a chunk if its state is still @seen. */
static bool claim_index(struct ptt_segment *seg, uint32_t index, uint32_t seen, uint32_t claimed)
{
	/* acquire: pairs with the release that freed the chunk, so that its dirty_end is right */
	if (!__atomic_compare_exchange_n(&ptt_chunk_states(seg)[index], &seen, claimed, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	/*
	 * release: pairs with same_life() of the collector, and with readers of a black box: who reads what this owner writes sees
	 * the claim. Also for a FREE chunk: a reader may have seen an owner from before it was freed.
	 */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return true;
}

/* The chunks of a search: @count chunks from @first on. After @before of them the search skips the reserve. */
struct chunk_range {
	uint32_t first, count, before;
};

/*
 * Look for a free chunk, beginning at @home.
 * @passed: number of chunks that were not free
 * Return: index of a chunk that is now CLAIMED, or -1 if no chunk is free.
 */
static int64_t claim_in_range(struct ptt_segment *seg, const struct chunk_range *range, uint32_t home, uint32_t claimed, uint32_t *passed)
{
	uint32_t reserve = seg->chunk_reserve, n = range->count ? home % range->count : 0;

	for (*passed = 0; *passed < range->count; ++*passed) {
		uint32_t index = range->first + n + (n < range->before ? 0 : reserve);

		/* relaxed: the swap looks again */
		if (__atomic_load_n(&ptt_chunk_states(seg)[index], __ATOMIC_RELAXED) == PTT_CHUNK_FREE &&
		    claim_index(seg, index, PTT_CHUNK_FREE, claimed))
			return index;
		if (++n == range->count)
			n = 0;
	}
	return -1;
}

/* Return: index of a chunk that is now CLAIMED for @self, or -1 if no chunk is free. */
static int64_t claim_free(struct ptt_thread *self, uint32_t claimed)
{
	static uint32_t rung_at = UINT32_MAX;
	struct ptt_segment *seg = ptt_segment_of(self);
	/* acquire: pairs with the release in ptt_private_segment_grow(); a recorder's chunk is FREE only if it has its pages */
	uint32_t present = __atomic_load_n(&seg->chunks_there, __ATOMIC_ACQUIRE), passed;
	struct chunk_range range = {.count = present, .before = seg->chunk_reserve_at};
	int64_t index;

	if (present > seg->chunk_reserve_at)
		range.count = present - seg->chunk_reserve_at > seg->chunk_reserve ? present - seg->chunk_reserve
										 : seg->chunk_reserve_at;
	index = claim_in_range(seg, &range, self->hint, claimed, &passed);
	if (index >= 0 && passed >= range.count / 2 && seg->policy == PTT_POLICY_FLUSH)
		call_collector_early(seg, &rung_at);
	return index;
}

/* A real-time thread does not wait for room: the reserve is only for such threads. */
static int64_t claim_reserved(struct ptt_thread *self, uint32_t claimed)
{
	static uint32_t rung_at = UINT32_MAX;
	struct ptt_segment *seg = ptt_segment_of(self);
	/* chunks without pages are not FREE */
	struct chunk_range range = {seg->chunk_reserve_at, seg->chunk_reserve, seg->chunk_reserve};
	uint32_t passed;
	int64_t index;

	if (!range.count)
		return -1;
	index = claim_in_range(seg, &range, self->hint, claimed, &passed);
	call_collector_early(seg, &rung_at);
	return index;
}

/* Are all slots up to the chunk's end written? A signal handler may have interrupted a writer between reserving and writing. */
static bool is_whole(struct ptt_segment *seg, uint32_t index)
{
	const struct ptt_chunk *chunk = chunk_at(seg, index);
	const struct ptt_slot *slot = (const struct ptt_slot *)((const char *)chunk + PTT_CHUNK_HEAD);
	uint32_t i = 0, count = (seg->chunk_size - PTT_CHUNK_HEAD) / PTT_SLOT_SIZE;

	/* relaxed, all: only whether the slot is written; the state was read with acquire, and is compared again */
	for (; i + 4 <= count; i += 4)
		if (!__atomic_load_n(&slot[i].w0, __ATOMIC_RELAXED) || !__atomic_load_n(&slot[i + 1].w0, __ATOMIC_RELAXED) ||
		    !__atomic_load_n(&slot[i + 2].w0, __ATOMIC_RELAXED) || !__atomic_load_n(&slot[i + 3].w0, __ATOMIC_RELAXED))
			break;
	/* a hole, or the slots behind an END */
	for (i = i < 4 ? 0 : i - 4; i < count; i++) {
		uint64_t w0 = __atomic_load_n(&slot[i].w0, __ATOMIC_RELAXED);

		if (!w0)
			return false;
		if ((w0 & PTT_ID_MASK) == PTT_ID_END)
			return true;
	}
	return true;
}

/* Claim a FULL chunk that is whole. Compares with the state from before the look: a chunk that was reused meanwhile may have a hole. */
static bool claim_whole(struct ptt_segment *seg, uint32_t index, uint32_t claimed)
{
	/* acquire: pairs with the writer's release of FULL, so that its slots are seen */
	uint32_t seen = __atomic_load_n(&ptt_chunk_states(seg)[index], __ATOMIC_ACQUIRE);

	if (PTT_CHUNK_STATUS(seen) != PTT_CHUNK_FULL || !is_whole(seg, index) || !claim_index(seg, index, seen, claimed))
		return false;
	__atomic_fetch_add(&seg->overwritten, seg->chunk_size - PTT_CHUNK_HEAD, __ATOMIC_RELAXED); /* a count */
	chunk_at(seg, index)->dirty_end = seg->chunk_size;
	return true;
}

/*
 * LOOP: take a free chunk, or take over the chunk that was claimed longest ago. The search goes round the chunks like the hand of
 * a clock. All claims go by the hand, so of each thread the oldest chunk is taken over first.
 */
static int64_t claim_by_hand(struct ptt_segment *seg, uint32_t claimed)
{
	uint32_t i;

	/* relaxed: as in claim_free(); all chunks of a recorder have pages in LOOP */
	uint32_t count = seg->box ? __atomic_load_n(&seg->chunks_there, __ATOMIC_RELAXED) : seg->chunk_count;

	for (i = 0; i < count; i++) {
		/* relaxed: a place to look */
		uint32_t index = __atomic_fetch_add(&seg->chunk_hand, 1, __ATOMIC_RELAXED) % count;

		/* relaxed: the swap looks again */
		if (__atomic_load_n(&ptt_chunk_states(seg)[index], __ATOMIC_RELAXED) == PTT_CHUNK_FREE &&
		    claim_index(seg, index, PTT_CHUNK_FREE, claimed))
			return index;
		if (claim_whole(seg, index, claimed))
			return index;
	}
	return -1;
}

/* ------------------------------------------------------------ black box: the chunks of an entry in turn */

static bool is_own(struct ptt_thread *self, uint32_t index)
{
	/* relaxed: claim_whole() looks again */
	uint32_t state = __atomic_load_n(&ptt_chunk_states(ptt_segment_of(self))[index], __ATOMIC_RELAXED);

	return PTT_CHUNK_STATUS(state) == PTT_CHUNK_FULL && PTT_CHUNK_THREAD(state) == ptt_thread_index(self);
}

/* The older of the entry's full chunks. A thread of before may have left both. Return: -1 if there is none without a hole. */
static int64_t claim_own(struct ptt_thread *self, uint32_t claimed)
{
	struct ptt_segment *seg = ptt_segment_of(self);
	int64_t index = -1;

	for (int i = 0; i < 2; i++) {
		uint32_t own = self->own[i];

		if (own && is_own(self, own - 1) && (index < 0 || chunk_at(seg, own - 1)->serial < chunk_at(seg, (uint32_t)index)->serial))
			index = own - 1;
	}
	return index >= 0 && claim_whole(seg, (uint32_t)index, claimed) ? index : -1;
}

/*
 * The entry uses the chunk @index now, and its chunk at @head before. A signal handler between the two stores may leave a
 * chunk in neither place. Then that chunk stays as it is until there is no other chunk.
 */
static void note_own(struct ptt_thread *self, uint32_t index, uint64_t head)
{
	uint32_t before = head & PTT_HEAD_OFFSET_MASK ? 1 + ptt_chunk_index(ptt_segment_of(self), head - 1) : 0;
	uint32_t kept = before ? before : self->own[self->own[0] == index + 1];

	self->own[0] = index + 1;
	self->own[1] = kept;
}

/* @now: the trace's clock. A thread that comes while another thread writes leaves the other thread's readings. */
static void note_clocks(struct ptt_segment *seg, uint64_t now)
{
	/* acquire, and release below: one thread at a time; a reader takes the fields only if the word is 0 */
	if (__atomic_exchange_n(&seg->later_busy, 1, __ATOMIC_ACQUIRE))
		return;
	seg->later_clock = now;
	seg->later_monotonic_ns = ptt_clock_monotonic_ns();
	__atomic_store_n(&seg->later_busy, 0, __ATOMIC_RELEASE);
}

/* The entry's own chunk, else a free chunk, else new memory, else the oldest chunk of all. */
static int64_t claim_in_box(struct ptt_thread *self, uint32_t claimed)
{
	struct ptt_segment *seg = ptt_segment_of(self);
	int64_t index = claim_own(self, claimed);

	for (;;) {
		uint32_t present = __atomic_load_n(&seg->chunks_there, __ATOMIC_RELAXED); /* as in claim_free() */

		if (index < 0)
			index = claim_free(self, claimed);
		if (index >= 0)
			return index;
		if (ptt_is_confined() || !ptt_private_segment_grow(seg, present))
			return claim_by_hand(seg, claimed);
	}
}

/* ------------------------------------------------------------ any segment */

static int64_t claim(struct ptt_thread *self, uint32_t claimed)
{
	struct ptt_segment *seg = ptt_segment_of(self);
	int64_t index;

	if (seg->box)
		return claim_in_box(self, claimed);
	/* relaxed: a flag that hands nothing over; chunks that are not FREE stay as they are */
	if (__atomic_load_n(&seg->stopped, __ATOMIC_RELAXED))
		return -1;
	if (seg->policy == PTT_POLICY_LOOP)
		return claim_by_hand(seg, claimed);
	index = claim_free(self, claimed);
	if (index >= 0)
		return index;
	if (seg->policy == PTT_POLICY_UNTIL_FULL)
		__atomic_store_n(&seg->stopped, 1, __ATOMIC_RELAXED);
	return -1;
}

void ptt_chunk_close(struct ptt_thread *self, uint64_t head)
{
	struct ptt_segment *seg = ptt_segment_of(self);
	uint32_t index = ptt_chunk_index(seg, head - 1), changes = PTT_HEAD_CHANGES(head);
	uint32_t owned = PTT_CHUNK_STATE(ptt_thread_index(self), changes, PTT_CHUNK_OWNED);

	/* release: the collector's acquire load of FULL sees the slots of this thread */
	__atomic_compare_exchange_n(&ptt_chunk_states(seg)[index], &owned,
				    PTT_CHUNK_STATE(ptt_thread_index(self), changes, PTT_CHUNK_FULL), false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

/*
 * Prepare a claimed chunk and make it the current chunk.
 * Return: false if a signal handler installed a chunk first; then this chunk is freed.
 */
static bool install_chunk(struct ptt_thread *self, uint32_t index, uint64_t serial, uint64_t head)
{
	struct ptt_segment *seg = ptt_segment_of(self);
	struct ptt_chunk *chunk = chunk_at(seg, index);
	uint32_t *state = &ptt_chunk_states(seg)[index];
	uint32_t dirty;
	uint64_t now;

	ptt_take_from_others();
	dirty = chunk->dirty_end;
	if (dirty > PTT_CHUNK_HEAD)
		memset((char *)chunk + PTT_CHUNK_HEAD, 0, dirty - PTT_CHUNK_HEAD);
	now = ptt_clock_fenced(ptt_ring.clock);
	chunk->t_base = now;
	chunk->pid = self->pid;
	chunk->tid = self->tid;
	chunk->process = self->process;
	chunk->dirty_end = seg->chunk_size;
	/* release: a collector that sees this serial sees the claim too, and does not take the chunk for the last owner's */
	__atomic_store_n(&chunk->serial, serial, __ATOMIC_RELEASE);
	/* release: the collector's acquire load of OWNED sees the chunk's head and cleared slots */
	__atomic_store_n(state, PTT_CHUNK_STATE(ptt_thread_index(self), PTT_HEAD_CHANGES(head) + 1, PTT_CHUNK_OWNED),
			 __ATOMIC_RELEASE);
	if (ptt_local_cas(&self->head, head,
			  (head & ~PTT_HEAD_OFFSET_MASK) + PTT_HEAD_CHANGE + chunk_offset(seg, index) + PTT_CHUNK_HEAD)) {
		self->t_base = now;
		if (seg->box) {
			note_own(self, index, head);
			note_clocks(seg, now);
		}
		return true;
	}
	chunk->dirty_end = PTT_CHUNK_HEAD;
	__atomic_store_n(state, PTT_CHUNK_FREE, __ATOMIC_RELEASE); /* pairs with the next claim's acquire */
	/*
	 * A thread that searched meanwhile did not see this chunk free. seq_cst: a writer adds itself to waiters before it sleeps
	 * on the old value of space; one of the two sees the other.
	 */
	__atomic_fetch_add(&seg->space, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&seg->waiters, __ATOMIC_SEQ_CST))
		ptt_raw_futex(&seg->space, FUTEX_WAKE, 1, NULL);
	return false;
}

static void count_lost(struct ptt_thread *self, bool closed)
{
	/* relaxed: a count; the collector adds it up */
	__atomic_fetch_add(closed ? &self->lost_closed : &self->lost_full, 1, __ATOMIC_RELAXED);
}

/* Values of segment.space when this thread last searched all chunks, and the reserve, in vain. */
static __thread uint32_t searched_at __attribute__((tls_model("initial-exec"))) = UINT32_MAX;
static __thread uint32_t reserve_searched_at __attribute__((tls_model("initial-exec"))) = UINT32_MAX;
static __thread bool policy_asked __attribute__((tls_model("initial-exec")));

/* The collector keeps room free early, because real-time threads do not wait for room. */
static void announce_real_time(struct ptt_segment *seg)
{
	/* relaxed: a flag that hands nothing over */
	if (__atomic_load_n(&seg->real_time, __ATOMIC_RELAXED) || __atomic_exchange_n(&seg->real_time, 1, __ATOMIC_RELAXED))
		return;
	ptt_ring_the_bell(seg);
}

/* Make one attempt to claim a chunk for @self. Return: -1 if no chunk is free. */
static int64_t try_claim(struct ptt_thread *self, uint32_t space, uint64_t *serial)
{
	uint32_t claimed = PTT_CHUNK_STATE(ptt_thread_index(self), 0, PTT_CHUNK_CLAIMED);
	struct ptt_segment *seg = ptt_segment_of(self);
	/* a system call: made for the first chunk, and when no chunk is free */
	bool real_time = !policy_asked && !seg->box && ptt_is_real_time();
	int64_t index = -1;

	policy_asked = true;
	if (real_time)
		announce_real_time(seg);
	*serial = __atomic_fetch_add(&self->chunks, 1, __ATOMIC_RELAXED);
	/* In LOOP, chunks become available when other threads fill them, and nobody reports that. */
	if (space != searched_at || seg->policy != PTT_POLICY_FLUSH) {
		index = claim(self, claimed);
		if (index < 0)
			searched_at = space; /* until something has been freed */
	}
	if (index < 0 && !seg->box && space != reserve_searched_at && (real_time || ptt_is_real_time())) {
		announce_real_time(seg);
		index = claim_reserved(self, claimed);
		if (index < 0)
			reserve_searched_at = space;
	}
	return index;
}

enum ptt_refill ptt_chunk_refill(struct ptt_thread *self, uint64_t head, uint64_t *waited_ns)
{
	struct ptt_segment *seg = ptt_segment_of(self);
	enum ptt_refill done = PTT_REFILL_LOST;
	struct ptt_patience patience = {0};
	uint64_t serial, began = 0;

	for (;;) {
		/* acquire: pairs with the collector's release bump after it freed chunks */
		uint32_t space = __atomic_load_n(&seg->space, __ATOMIC_ACQUIRE);
		int64_t index;

		/* relaxed: behind the acquire of space, which the collector changes after it has set this */
		if (__atomic_load_n(&seg->closed, __ATOMIC_RELAXED)) {
			count_lost(self, true);
			break;
		}
		if (!(head & PTT_HEAD_OFFSET_MASK) && are_entries_short(seg, began)) {
			if (!began)
				began = ptt_clock_monotonic_ns();
			if (wait_for_space(self, space, &patience))
				continue;
		}
		index = try_claim(self, space, &serial);
		if (index >= 0) {
			done = install_chunk(self, (uint32_t)index, serial, head) ? PTT_REFILL_DONE : PTT_REFILL_BY_SIGNAL_HANDLER;
			break;
		}
		if (ptt_local_load(&self->head) != head) {
			done = PTT_REFILL_BY_SIGNAL_HANDLER;
			break;
		}
		if (!began)
			began = ptt_clock_monotonic_ns();
		if (!wait_for_space(self, space, &patience)) {
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
