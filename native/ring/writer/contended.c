/* SPDX-License-Identifier: MIT */
/* contended.c - keeps the table of locks that threads wait for. */
#include "contended.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "../platform/clock.h"
#include "../platform/upcalls.h"
#include "taker.h"

#define WAITER (UINT64_C(1) << 48)
#define WAITERS(entry) ((entry) >> 48 & 0xff)
#define WAITERS_MAX 0xffu
#define CALM (UINT64_C(1) << 56)
#define CALM_MAX 64u
#define CALM_OF(entry) ((entry) >> 56 & 0x7f)
#define OWED (UINT64_C(1) << 63)

/*
 * After one acquisition of a lock at a place has had its stack recorded, a thread records no other for an interval, about a
 * millisecond. Holds that block other threads for longer do have their stack, because the stack before is an interval old.
 * If many holds in a row end at once, finding their stacks takes longer than the holds. At such a place, for all locks, one
 * stack in INTERVALS_IF_SHORT intervals is enough, until a hold there lasts longer.
 */
#define TICKS_SHIFT PTT_RECENT_SHIFT
#define INTERVAL 512u /* in 2^12 ticks: of a processor's counter or nanoseconds */
#define RECENT (INTERVAL / 8)
#define SHORT 3u /* in the same unit: a hold of some microseconds */
#define SHORT_IN_A_ROW 8u
#define INTERVALS_IF_SHORT 16u
#define PLACES_BITS 4

/* A place where locks are taken. */
struct place {
	uint32_t last;	/* time of the last acquisition with a recorded stack */
	uint32_t short_in_a_row;
};

/*
 * State of the calling thread. @last: time of the last stack, by lock and place. @place: by place. @held: the held lock of
 * the last recorded stack, taken at @held_from.
 */
static __thread struct {
	uint32_t last[1u << PLACES_BITS];
	struct place place[1u << PLACES_BITS];
	struct place *held_from;
	uint64_t held;
	bool seldom; /* its events are far apart: the time of the previous event tells little */
} this_thread __attribute__((tls_model("initial-exec")));

/* In glibc's word for a mutex's type, protocol and robustness: waiters of all kinds but these make the lock word 2 and sleep. */
#define MUTEX_SPINS 3
#define MUTEX_TYPE 3
#define MUTEX_OTHER_WORD 0x70 /* robust, with priority inheritance, with a ceiling */

__thread struct ptt_contended_quiet ptt_contended_quiet[1u << PTT_CONTENDED_QUIET_BITS]
	__attribute__((tls_model("initial-exec")));
uint64_t ptt_contended_table[1u << PTT_CONTENDED_BITS];
uint64_t ptt_contended_ever[(1u << PTT_CONTENDED_BITS) / 64];

/* Relaxed throughout: an entry leads to no other memory, and only decides which events are worth a stack. */
static bool change(uint64_t *entry, uint64_t *from, uint64_t to)
{
	return __atomic_compare_exchange_n(entry, from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void note_use(uint32_t place)
{
	uint64_t *word = &ptt_contended_ever[place / 64], bit = UINT64_C(1) << place % 64;

	/* relaxed: a thread that does not see the bit yet assumes that nobody waits for the lock. Most of the time the bit is set. */
	if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

void ptt_contended_wait(uint64_t object)
{
	uint64_t *entry = ptt_contended_entry(object), value = __atomic_load_n(entry, __ATOMIC_RELAXED), next;

	do {
		bool same = (value & PTT_OBJECT_MASK) == object;

		if ((!same && WAITERS(value)) || WAITERS(value) == WAITERS_MAX)
			return;
		next = object | (same ? WAITERS(value) + 1 : 1) * WAITER | CALM_MAX * CALM | OWED;
	} while (!change(entry, &value, next));
	note_use(ptt_contended_place(object));
	/* the holder must look here when it releases the lock */
	ptt_taker_doubt(object);
}

void ptt_contended_waited(uint64_t object)
{
	uint64_t *entry = ptt_contended_entry(object), value = __atomic_load_n(entry, __ATOMIC_RELAXED);

	while ((value & PTT_OBJECT_MASK) == object && WAITERS(value) && !change(entry, &value, value - WAITER))
		;
	/* other threads may wait for the lock, which this thread has now */
	if ((value & PTT_OBJECT_MASK) == object)
		ptt_taker_doubt(object);
}

static uint32_t ticks(void)
{
	return (uint32_t)(ptt_clock(ptt_ring.clock) >> TICKS_SHIFT);
}

static uint32_t slot(uint64_t key)
{
	return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PLACES_BITS));
}

/* Forget the answers "not due": they may change from now on. */
static void forget_quiet(void)
{
	memset(ptt_contended_quiet, 0, sizeof(ptt_contended_quiet));
}

/*
 * Has the calling thread recorded no stack of an acquisition of @object at @site for a while? The time of the thread's
 * previous event mostly answers that.
 * Return: for how many intervals, or 0.
 */
static uint32_t is_due(uint64_t object, uint64_t site)
{
	struct place *place = &this_thread.place[slot(site)];
	uint32_t *last = &this_thread.last[slot(object ^ site)], recent, now;
	uint32_t intervals = place->short_in_a_row < SHORT_IN_A_ROW ? 1 : INTERVALS_IF_SHORT;
	uint32_t since = intervals > 1 ? place->last : *last;

	if (!ptt_ring_recent(&recent))
		recent = ticks();
	else if (!this_thread.seldom && ptt_contended_between(since, recent) < intervals * INTERVAL) {
		uint64_t key = ptt_contended_key(object, site);

		ptt_contended_quiet[key >> (64 - PTT_CONTENDED_QUIET_BITS)] =
			(struct ptt_contended_quiet){key, since, intervals * INTERVAL};
		return 0;
	}
	forget_quiet();
	now = ticks();
	this_thread.seldom = ptt_contended_between(recent, now) > RECENT;
	if (ptt_contended_between(*last, now) < INTERVAL || ptt_contended_between(since, now) < intervals * INTERVAL)
		return 0;
	*last = place->last = now;
	return intervals;
}

bool ptt_contended_is_due(uint64_t object, uint64_t site)
{
	uint64_t *entry = ptt_contended_entry(object), value = __atomic_load_n(entry, __ATOMIC_RELAXED);
	uint32_t wanted, calm = CALM_OF(value);

	if ((value & PTT_OBJECT_MASK) != object || !calm)
		return false;
	wanted = is_due(object, site);
	if (!wanted)
		return false;
	if (!WAITERS(value)) /* if another thread changed the entry, the next acquisition does it */
		change(entry, &value, value - (wanted < calm ? wanted : calm) * CALM);
	/* the acquisition must take the slow path */
	ptt_taker_doubt(object);
	return true;
}

void ptt_contended_taken(uint64_t object, uint64_t site, bool recorded)
{
	uint64_t value = __atomic_load_n(ptt_contended_entry(object), __ATOMIC_RELAXED);

	if (recorded) {
		this_thread.held_from = &this_thread.place[slot(site)];
		this_thread.held_from->last = ticks();
		this_thread.held = object;
	}
	/* so must a release that ends this hold, or that another thread waits for */
	if (recorded || ((value & PTT_OBJECT_MASK) == object && WAITERS(value) && value & OWED))
		ptt_taker_doubt(object);
}

/* The calling thread is about to release @object: note whether the hold was short. */
static void note_end(uint64_t object)
{
	struct place *place = this_thread.held_from;

	if (!place || this_thread.held != object)
		return;
	place->short_in_a_row = ptt_contended_between(place->last, ticks()) < SHORT ? place->short_in_a_row + 1 : 0;
	forget_quiet();
	this_thread.held_from = NULL;
}

bool ptt_contended_release(uint64_t object)
{
	uint64_t entry = __atomic_load_n(ptt_contended_entry(object), __ATOMIC_RELAXED);

	note_end(object);
	return (entry & PTT_OBJECT_MASK) == object && WAITERS(entry);
}

/* Does a thread sleep until the calling thread releases the mutex? */
static bool has_sleeper(uint64_t object)
{
	const pthread_mutex_t *mutex = (const pthread_mutex_t *)(uintptr_t)object;
	int kind;

	if (ptt_upcalls.other_lock(object) != PTT_OTHER_NONE)
		return true;
	/* relaxed: the kind never changes, and the holder's release orders a waiter's write of the word */
	kind = __atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED);
	if ((kind & MUTEX_OTHER_WORD) || (kind & MUTEX_TYPE) == MUTEX_SPINS)
		return true;
	return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) > 1;
}

bool ptt_contended_wakes(uint64_t object)
{
	uint64_t *entry = ptt_contended_entry(object), value = __atomic_load_n(entry, __ATOMIC_RELAXED);

	if (!ptt_contended_release(object) || !has_sleeper(object))
		return false;
	while ((value & PTT_OBJECT_MASK) == object && value & OWED && !change(entry, &value, value & ~OWED))
		;
	return true;
}
