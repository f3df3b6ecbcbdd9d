/* SPDX-License-Identifier: MIT */
/* syscall_numbers.h - the system calls that are traced when a program makes them through syscall(), see syscall.c. */
#ifndef PTT_SYSCALL_NUMBERS_H
#define PTT_SYSCALL_NUMBERS_H

#include <stdbool.h>
#include <sys/syscall.h>

#include "platform/missing.h"
#include "tracer.h"

/* Linux 5.16 and 6.7; the same numbers for every processor. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wake
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif

/* Each makes the call with six arguments, reports what it did, and returns what syscall() returns. */
long ptt_syscall_fork(long number, const long *arg, void *site) HIDDEN;    /* process/fork.c */
long ptt_syscall_exec(long number, const long *arg, void *site) HIDDEN;    /* process/exec.c */
long ptt_syscall_confine(long number, const long *arg, void *site) HIDDEN; /* process/confine.c */
long ptt_syscall_sched(long number, const long *arg, void *site) HIDDEN;   /* hooks/sched.c */
long ptt_syscall_futex2(long number, const long *arg, void *site) HIDDEN;  /* syscall/futex.c */
long ptt_syscall_alone(long number, const long *arg) HIDDEN;		   /* attach/alone.c */

bool ptt_prctl_is_ours(long option) HIDDEN;
bool ptt_syscall_forks(long number, long a, long b) HIDDEN; /* a child that C can make; others return on another stack */

#endif
