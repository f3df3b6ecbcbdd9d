/* SPDX-License-Identifier: MIT */
/* syscall_numbers.h - the system calls that are traced if a program makes them through syscall(); see syscall.c. */
#ifndef PTT_SYSCALL_NUMBERS_H
#define PTT_SYSCALL_NUMBERS_H

#include <stdbool.h>
#include <sys/syscall.h>

#include "platform/missing.h"
#include "tracer.h"

/* Linux 5.16 and 6.7. The numbers are the same on every processor. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wake
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif

/* Each function makes the call with six arguments, reports it, and returns the result of syscall(). */
long ptt_syscall_fork(long number, const long *arg, void *site) HIDDEN;    /* process/fork.c */
long ptt_syscall_exec(long number, const long *arg, void *site) HIDDEN;    /* process/exec.c */
long ptt_syscall_confine(long number, const long *arg, void *site) HIDDEN; /* process/confine.c */
long ptt_syscall_sched(long number, const long *arg, void *site) HIDDEN;   /* hooks/sched.c */
long ptt_syscall_futex2(long number, const long *arg, void *site) HIDDEN;  /* syscall/futex.c */
long ptt_syscall_alone(long number, const long *arg) HIDDEN;		   /* attach/alone.c */

bool ptt_prctl_is_ours(long option) HIDDEN;
bool ptt_syscall_forks(long number, long a, long b) HIDDEN; /* makes a child on a copy of the caller's stack, so that C code can make the call */

#endif
