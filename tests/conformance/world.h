/* SPDX-License-Identifier: MIT */
/* world.h - the ends of what world.c begins. */
#ifndef WORLD_H
#define WORLD_H

#include <pthread.h>
#include <stdbool.h>

/* Everything held until now is released. */
void let_go(void);

/* Whether a thread, of this number, has come to where the routine of its case blocks or spins, or to its end. */
bool blocks(pthread_t thread, pid_t tid);

/* The case is over: wait for its threads. */
void forget(void);

#endif
