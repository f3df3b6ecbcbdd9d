/* SPDX-License-Identifier: MIT */
/* thread.h - creation and end of threads, for the C11 functions that glibc does not build on the POSIX ones' symbols. */
#ifndef PTT_THREAD_H
#define PTT_THREAD_H

#include "tracer.h"

/* thrd_create(), with the events that pthread_create() has. */
int ptt_create_c11(thrd_t *thread, thrd_start_t routine, void *arg, void *site) HIDDEN;

/* ptt_thread_leaves - the calling thread ends with @value, by pthread_exit or thrd_exit. */
void ptt_thread_leaves(void *value) HIDDEN;

#endif
