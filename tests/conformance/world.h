/* SPDX-License-Identifier: MIT */
/* world.h - ends the objects and threads that world.c begins. */
#ifndef WORLD_H
#define WORLD_H

#include <pthread.h>
#include <stdbool.h>

/* Release everything held until now. */
void let_go(void);

/* Return whether the thread with this number has reached its end, or the place where its case's routine blocks or spins. */
bool blocks(pthread_t thread, pid_t tid);

/* The case is over: wait for its threads. */
void forget(void);

#endif
