/* SPDX-License-Identifier: MIT */
/* local.h - operations that are atomic only against signal handlers of the same thread, and cheap for that reason. */
#ifndef PTT_LOCAL_H
#define PTT_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t ptt_local_load(const uint64_t *p)
{
	/* relaxed: only this thread and its signal handlers write the word */
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* ptt_local_cas - compare and swap of a word that only this thread and its signal handlers write. */
static inline bool ptt_local_cas(uint64_t *p, uint64_t expected, uint64_t wanted)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool done;

	/* a signal never splits one instruction, so it needs no lock prefix */
	__asm__ volatile("cmpxchgq %3, %1"
			 : "=@ccz"(done), "+m"(*p), "+a"(expected)
			 : "r"(wanted)
			 : "memory");
	return done;
#else
	bool done = __atomic_compare_exchange_n(p, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);

	/* as the instruction above: the compiler moves no access across it, such as the read of the revocation word */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return done;
#endif
}

/*
 * Tests of a word: a relaxed load and the comparison in one instruction. Compilers use two instructions for atomic loads.
 *
 * ptt_local_is32, ptt_local_is64 - does the word hold this value?
 * ptt_local_has_any - has it one of these bits?
 */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
static inline bool ptt_local_is32(const uint32_t *p, uint32_t value)
{
	bool same;

	__asm__ volatile("cmpl %2, %1" : "=@cce"(same) : "m"(*p), "r"(value));
	return same;
}

static inline bool ptt_local_is64(const uint64_t *p, uint64_t value)
{
	bool same;

	__asm__ volatile("cmpq %2, %1" : "=@cce"(same) : "m"(*p), "r"(value));
	return same;
}

static inline bool ptt_local_has_any(const uint64_t *p, uint64_t bits)
{
	bool any;

	__asm__ volatile("testq %2, %1" : "=@ccnz"(any) : "m"(*p), "r"(bits));
	return any;
}
#else
static inline bool ptt_local_is32(const uint32_t *p, uint32_t value)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED) == value;
}

static inline bool ptt_local_is64(const uint64_t *p, uint64_t value)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED) == value;
}

static inline bool ptt_local_has_any(const uint64_t *p, uint64_t bits)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED) & bits;
}
#endif

#endif
