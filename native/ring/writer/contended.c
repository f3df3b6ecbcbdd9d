/* SPDX-License-Identifier: MIT */
/* contended.c - keeps the table of locks that are waited for. */
#include "contended.h"

#include "taker.h"

#define WAITER (UINT64_C(1) << 48)
#define WAITERS(entry) ((entry) >> 48 & 0xff)
#define WAITERS_MAX 0xffu
#define CALM (UINT64_C(1) << 56)
#define CALM_MAX 64u
#define CALM_OF(entry) ((entry) >> 56)

uint64_t ptt_contended_table[1u << PTT_CONTENDED_BITS];

/* Relaxed throughout: an entry is all there is, and only says what is worth a stack. */
static bool change(uint64_t *entry, uint64_t *from, uint64_t to)
{
	return __atomic_compare_exchange_n(entry, from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void ptt_contended_wait(uint64_t object)
{
	uint64_t *entry = ptt_contended_entry(object), now = __atomic_load_n(entry, __ATOMIC_RELAXED), next;

	do {
		bool same = (now & PTT_OBJECT_MASK) == object;

		if ((!same && WAITERS(now)) || WAITERS(now) == WAITERS_MAX)
			return;
		next = object | (same ? WAITERS(now) + 1 : 1) * WAITER | CALM_MAX * CALM;
	} while (!change(entry, &now, next));
	/* its holder is to look here when it releases */
	ptt_taker_doubt(object);
}

void ptt_contended_waited(uint64_t object)
{
	uint64_t *entry = ptt_contended_entry(object), now = __atomic_load_n(entry, __ATOMIC_RELAXED);

	while ((now & PTT_OBJECT_MASK) == object && WAITERS(now) && !change(entry, &now, now - WAITER))
		;
	/* others may wait for what it has now */
	if ((now & PTT_OBJECT_MASK) == object)
		ptt_taker_doubt(object);
}

bool ptt_contended_take(uint64_t object)
{
	/*
	 * Three in a row of a thread, then it may go by the short way again until somebody waits: a stack that is walked with the
	 * lock in hand makes others wait longer.
	 */
	static __thread uint8_t takes __attribute__((tls_model("initial-exec")));
	uint64_t *entry = ptt_contended_entry(object), now = __atomic_load_n(entry, __ATOMIC_RELAXED);

	if ((now & PTT_OBJECT_MASK) != object || !CALM_OF(now) || takes++ % 4 == 3)
		return false;
	if (!WAITERS(now))
		change(entry, &now, now - CALM); /* or somebody else did, and the next one does */
	/* nor is the next acquisition to go by the short way */
	ptt_taker_doubt(object);
	return true;
}

bool ptt_contended_release(uint64_t object)
{
	uint64_t entry = __atomic_load_n(ptt_contended_entry(object), __ATOMIC_RELAXED);

	return (entry & PTT_OBJECT_MASK) == object && WAITERS(entry);
}
