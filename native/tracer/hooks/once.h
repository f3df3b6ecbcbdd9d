/* SPDX-License-Identifier: MIT */
/* once.h - running a once routine under pthread_once or call_once, for both of their hooks. */
#ifndef PTT_ONCE_H
#define PTT_ONCE_H

#include "tracer.h"

/* glibc's control word: bit 1 when the routine has been run, bit 0 while it is being run. */
#define PTT_ONCE_RUNNING 1
#define PTT_ONCE_DONE 2

typedef int ptt_once_function(pthread_once_t *control, void (*routine)(void));

/*
 * ptt_once - call @real, and report which thread runs the routine and which ones wait for it
 * @real: is given @control and either @routine or one of the tracer's that calls it
 */
int ptt_once(ptt_once_function *real, pthread_once_t *control, void (*routine)(void), void *site) HIDDEN;

#endif
