/* SPDX-License-Identifier: MIT */
/* signals.h - blocks signals around code that no signal handler may interrupt, by bare system calls. */
/*
 * A signal to the process, rather than to one thread, is pending for all threads until the thread that the kernel woke for
 * it runs. If another thread unblocks the signal first, that thread takes the signal: the handler runs in the wrong thread,
 * and the wait that the signal was meant to interrupt goes on. So both functions first leave such signals to the other
 * threads.
 */
#ifndef PTT_SIGNALS_H
#define PTT_SIGNALS_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "confined.h"
#include "raw_syscall.h"

#define PTT_SIGSET_SIZE 8 /* bytes of the kernel's signal set */

/* A signal that was pending before belongs to another thread; a signal that came since may belong to the caller. */
#define PTT_LEAVE_OLD_NS 100000000L
#define PTT_LEAVE_NEW_NS 2000000L
#define PTT_LEAVE_FIRST_NS 20000L

typedef uint64_t ptt_signal_set;

/*
 * ptt_leave_signals - with all signals blocked, wait until no signal is pending that @before lets through
 * @patience: ns to wait at most
 * Does nothing in a program that has given up system calls, which may not allow these calls.
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

/* ptt_hold_signals - as ptt_block_signals(), until ptt_let_signals(). Does nothing in a program that has given up system calls. */
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

