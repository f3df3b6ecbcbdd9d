/* SPDX-License-Identifier: MIT */
/* local.h - operations that are atomic against signal handlers of the same thread, and cheap because they promise no more. */
#ifndef PTT_LOCAL_H
#define PTT_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t ptt_local_load(const uint64_t *p)
{
	/* relaxed: the only other ones to write it are signal handlers of this thread */
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* ptt_local_cas - compare and swap of a word that only this thread and its signal handlers write. */
static inline bool ptt_local_cas(uint64_t *p, uint64_t expected, uint64_t wanted)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool done;

	/* one instruction is never split by a signal, so it needs no lock prefix */
	__asm__ volatile("cmpxchgq %3, %1"
			 : "=@ccz"(done), "+m"(*p), "+a"(expected)
			 : "r"(wanted)
			 : "memory");
	return done;
#else
	bool done = __atomic_compare_exchange_n(p, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);

	/* as the instruction above: the compiler moves no access across, such as that of the revocation word */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return done;
#endif
}

#endif
