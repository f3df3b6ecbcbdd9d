/* SPDX-License-Identifier: MIT */
/* clock.h - the trace clock: the processor's counter if the kernel trusts it, else CLOCK_MONOTONIC. */
#ifndef PTT_CLOCK_H
#define PTT_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "../layout/ptt_abi.h"

/* ptt_clock_choose - PTT_CLOCK_TSC if the kernel itself keeps time by it now, else PTT_CLOCK_MONOTONIC. Opens a file of /sys. */
uint32_t ptt_clock_choose(void);

/* ptt_clock_monotonic_ns - CLOCK_MONOTONIC in ns; no system call if the kernel has a vDSO clock. Safe in signal handlers. */
static inline uint64_t ptt_clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ptt_clock - the time in ticks of clock @kind; may run ahead of earlier instructions that have not completed. */
static inline uint64_t ptt_clock(uint32_t kind)
{
#if defined(__x86_64__)
	if (__builtin_expect(kind == PTT_CLOCK_TSC, 1))
		return __builtin_ia32_rdtsc();
#else
	(void)kind;
#endif
	return ptt_clock_monotonic_ns();
}

/* ptt_clock_fenced - the same, after all earlier loads, atomic operations among them, have completed. */
static inline uint64_t ptt_clock_fenced(uint32_t kind)
{
#if defined(__x86_64__)
	__builtin_ia32_lfence();
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	return ptt_clock(kind);
}

#endif
