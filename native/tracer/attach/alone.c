/* SPDX-License-Identifier: MIT */
/* alone.c - unshare() and setns(): what a program of one thread may do, it may do while it is attached. */
/*
 * The kernel refuses some of these calls to a process with several threads, and to a process whose threads share their current
 * directory. A call that it refuses changes nothing. So a call that failed, and may have failed for the agent's thread, is made again
 * without that thread. All others leave the thread where it is.
 */
#include <errno.h>
#include <sched.h>

#include "attach.h"
#include "syscall_numbers.h"

/* The errors that a process with several threads gets; setns() has an error of its own where the clock is concerned. */
static bool may_be_for_agent(long result)
{
	return result < 0 && (errno == EINVAL || errno == EUSERS);
}

/* Make the call; errno and the result come from the last attempt. */
#define CALL_ALONE(call)                                               \
	({                                                             \
		long result_ = (call);                                 \
		uint64_t mask_;                                        \
		int error_ = errno;                                    \
                                                                       \
		if (may_be_for_agent(result_)) {                       \
			bool away_ = ptt_send_agent_away(&mask_);      \
                                                                       \
			if (away_ || ptt_see_agent_off()) {            \
				result_ = (call);                      \
				error_ = errno;                        \
			}                                              \
			if (away_)                                     \
				ptt_bring_agent_back(&mask_);          \
		}                                                      \
		errno = error_;                                        \
		result_;                                               \
	})

EXPORT int unshare(int flags)
{
	return (int)CALL_ALONE(ptt_real.unshare(flags));
}

EXPORT int setns(int fd, int type)
{
	return (int)CALL_ALONE(ptt_real.setns(fd, type));
}

long ptt_syscall_alone(long number, const long *arg)
{
	return CALL_ALONE(ptt_real.syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]));
}
