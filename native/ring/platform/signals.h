/* SPDX-License-Identifier: MIT */
/* signals.h - code that no signal handler interrupts, by bare system calls. */
/*
 * A signal that is sent to the process, and not to one thread, is pending for all threads until the thread that the kernel has
 * woken for it runs. A thread that unblocks it in between takes it instead: the handler then runs in a thread that was not meant,
 * and the wait that the signal was to interrupt goes on. So both functions leave such signals to the other threads first.
 */
#ifndef PTT_SIGNALS_H
#define PTT_SIGNALS_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "confined.h"
#include "raw_syscall.h"

#define PTT_SIGSET_SIZE 8 /* of the kernel's signal set */

/* A signal that was pending before is another thread's; a signal that has come since may be the caller's own. */
#define PTT_LEAVE_OLD_NS 100000000L
#define PTT_LEAVE_NEW_NS 2000000L
#define PTT_LEAVE_FIRST_NS 20000L

typedef uint64_t ptt_signal_set;

/*
 * ptt_leave_signals - with all signals blocked, wait until none that @before lets through is pending; not longer than @patience.
 * A program that has given up system calls may not allow these: there nothing is done.
 */
static inline void ptt_leave_signals(ptt_signal_set before, long patience)
{
	ptt_signal_set pending = 0;

	if (ptt_is_confined())
		return;
	for (long pause = PTT_LEAVE_FIRST_NS; patience > 0; patience -= pause, pause *= 2) {
		const struct timespec time = {.tv_nsec = pause};

		ptt_raw_syscall(SYS_rt_sigpending, (long)&pending, PTT_SIGSET_SIZE, 0, 0, 0, 0);
		if (!(pending & ~before))
			return;
		ptt_raw_syscall(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
	}
}

/* ptt_block_signals - block all signals of the calling thread, also the C library's own signals. Keeps errno. May sleep. */
static inline void ptt_block_signals(ptt_signal_set *before)
{
	ptt_signal_set all = ~UINT64_C(0);

	ptt_raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)before, PTT_SIGSET_SIZE, 0, 0);
	ptt_leave_signals(*before, PTT_LEAVE_OLD_NS);
}

/* ptt_restore_signals - end what ptt_block_signals() began. May sleep. */
static inline void ptt_restore_signals(const ptt_signal_set *before)
{
	ptt_leave_signals(*before, PTT_LEAVE_NEW_NS);
	ptt_raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)before, 0, PTT_SIGSET_SIZE, 0, 0);
}

/* ptt_hold_signals - as ptt_block_signals(), until ptt_let_signals(). In a confined program nothing is done. */
static inline uint64_t ptt_hold_signals(void)
{
	ptt_signal_set before = 0;

	if (!ptt_is_confined())
		ptt_block_signals(&before);
	return before;
}

static inline void ptt_let_signals(uint64_t before)
{
	if (!ptt_is_confined())
		ptt_restore_signals(&before);
}

#endif

