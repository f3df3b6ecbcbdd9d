/* SPDX-License-Identifier: MIT */
/* thread.h - begin and end of threads, for the C11 functions and for a trace-enabled thread library. */
#ifndef PTT_THREAD_H
#define PTT_THREAD_H

#include "tracer.h"

/* ptt_create_c11 - thrd_create(), with the events of pthread_create(). */
int ptt_create_c11(thrd_t *thread, thrd_start_t routine, void *arg, void *site) HIDDEN;

/* ptt_report_name - report the new name of @thread. @length: at most PTT_NAME_MAX bytes */
void ptt_report_name(pthread_t thread, const char *name, size_t length, void *site) HIDDEN;
#define PTT_KERNEL_NAME 15 /* bytes of a thread's name that the kernel keeps (prctl(2), PR_SET_NAME) */

/* ptt_thread_leaves - the calling thread calls pthread_exit() or thrd_exit() with @value. */
void ptt_thread_leaves(void *value) HIDDEN;

/* ptt_thread_is_known - has the trace the begin of the calling thread, and not yet the end? */
bool ptt_thread_is_known(void) HIDDEN;

/* ptt_thread_starts - the thread library is about to run @routine as the calling thread. */
void ptt_thread_starts(void *routine) HIDDEN;

/* ptt_thread_dies - the thread library has finished with the calling thread. */
void ptt_thread_dies(void) HIDDEN;

/* ptt_thread_enters - see thread_enters() in platform/upcalls.h. */
void ptt_thread_enters(void) HIDDEN;

#endif
