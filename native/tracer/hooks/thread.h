/* SPDX-License-Identifier: MIT */
/* thread.h - beginning and end of threads, for the C11 functions and for a thread library that reports them itself. */
#ifndef PTT_THREAD_H
#define PTT_THREAD_H

#include "tracer.h"

/* thrd_create(), with the events that pthread_create() has. */
int ptt_create_c11(thrd_t *thread, thrd_start_t routine, void *arg, void *site) HIDDEN;

/* ptt_report_name - @thread has a new name, of at most PTT_NAME_MAX bytes. */
void ptt_report_name(pthread_t thread, const char *name, size_t length, void *site) HIDDEN;
#define PTT_KERNEL_NAME 15 /* so many bytes of one the kernel keeps */

/* ptt_thread_leaves - the calling thread ends with @value, by pthread_exit or thrd_exit. */
void ptt_thread_leaves(void *value) HIDDEN;

/* ptt_thread_is_known - has the calling thread begun, as the trace has it, and not yet ended? */
bool ptt_thread_is_known(void) HIDDEN;

/* ptt_thread_starts - the thread library is about to run @routine as the calling thread. */
void ptt_thread_starts(void *routine) HIDDEN;

/* ptt_thread_dies - the thread library is done with the calling thread. */
void ptt_thread_dies(void) HIDDEN;

/* ptt_thread_enters - see thread_enters() in platform/upcalls.h. */
void ptt_thread_enters(void) HIDDEN;

#endif
