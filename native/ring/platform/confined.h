/* SPDX-License-Identifier: MIT */
/* confined.h - has the program given up system calls, and which answers need none? */
#ifndef PTT_CONFINED_H
#define PTT_CONFINED_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "raw_syscall.h"
#include "upcalls.h"

static inline bool ptt_is_confined(void)
{
	/* relaxed: set before the filter, by a system call of the same thread or by a call that all threads see */
	return __atomic_load_n(ptt_upcalls.confined, __ATOMIC_RELAXED);
}

/* ptt_own_tid - kernel id of the calling thread. The C library knows the id and encodes it in the id of the thread's clock. */
static inline uint32_t ptt_own_tid(void)
{
	clockid_t clock;

	if (ptt_is_confined() && pthread_getcpuclockid(pthread_self(), &clock) == 0)
		return ~(uint32_t)((int32_t)clock >> 3);
	return (uint32_t)ptt_raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/*
 * ptt_is_real_time - does the thread have a real-time policy? It must not wait for a collector that may never get the
 * processor.
 */
static inline bool ptt_is_real_time(void)
{
	long policy;

	if (ptt_is_confined())
		return false;
	policy = ptt_raw_syscall(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0) & ~(long)SCHED_RESET_ON_FORK;
	return policy == SCHED_FIFO || policy == SCHED_RR || policy == 6; /* SCHED_DEADLINE */
}

#endif
