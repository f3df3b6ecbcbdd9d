/* SPDX-License-Identifier: MIT */
/* alone.c - unshare() and setns(): succeed in an attached process as they would without the agent's thread. */
/*
 * The kernel refuses some of these calls to a process with several threads, and to threads that share their current
 * directory (unshare(2), setns(2)). A refused call changes nothing. So if a call failed, and the agent's thread may
 * be the reason, the call is repeated without that thread.
 */
#include <errno.h>
#include <sched.h>

#include "attach.h"
#include "syscall_numbers.h"

/*
 * Make the call; errno and result are of the last attempt. The errors in a process with several threads are EINVAL
 * and, from setns() with a time namespace, EUSERS.
 */
#define CALL_ALONE(call)                                               \
	({                                                             \
		long result_ = (call);                                 \
		uint64_t mask_;                                        \
		int error_ = errno;                                    \
                                                                       \
		if (result_ < 0 && (error_ == EINVAL || error_ == EUSERS)) { \
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
