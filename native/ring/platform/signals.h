/* SPDX-License-Identifier: MIT */
/* signals.h - code that no signal handler interrupts, by bare system calls. */
#ifndef PTT_SIGNALS_H
#define PTT_SIGNALS_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "raw_syscall.h"

#define PTT_SIGSET_SIZE 8 /* of the kernel's signal set */

typedef uint64_t ptt_signal_set;

/* ptt_block_signals - all of the calling thread, also those that the C library keeps to itself. errno stays. */
static inline void ptt_block_signals(ptt_signal_set *before)
{
	ptt_signal_set all = ~UINT64_C(0);

	ptt_raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)before, PTT_SIGSET_SIZE, 0, 0);
}

static inline void ptt_restore_signals(const ptt_signal_set *before)
{
	ptt_raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)before, 0, PTT_SIGSET_SIZE, 0, 0);
}

#endif
