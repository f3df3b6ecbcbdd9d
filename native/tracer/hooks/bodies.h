/* SPDX-License-Identifier: MIT */
/* bodies.h - the calls that generated hooks (plain.c) leave to functions written by hand. */
/*
 * Each makes the call as the real function does and reports all that happens in between, but not the routine's _IN and
 * _OUT events. Return: what the real function returns.
 */
#ifndef PTT_BODIES_H
#define PTT_BODIES_H

#include "request.h"
#include "tracer.h"

int ptt_mutex_take(pthread_mutex_t *mutex, const struct ptt_request *r, void *site) HIDDEN; /* with a deadline */

int ptt_rwlock_read(pthread_rwlock_t *rwlock, const struct ptt_request *r, void *site) HIDDEN;
int ptt_rwlock_write(pthread_rwlock_t *rwlock, const struct ptt_request *r, void *site) HIDDEN;

/* A cancellation point: reports the _OUT event too. */
int ptt_sem_take(sem_t *sem, const struct ptt_request *r, void *site) HIDDEN;

int ptt_mtx_take(mtx_t *mutex, const struct ptt_request *r, void *site) HIDDEN;

/* ptt_error_of_thrd - the error number that a result of <threads.h> stands for. */
int ptt_error_of_thrd(int result) HIDDEN;

#endif
