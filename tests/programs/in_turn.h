/* SPDX-License-Identifier: MIT */
/* in_turn.h - for test programs: threads that surely wait for one another, on a machine with any load. Include it first. */
#ifndef IN_TURN_H
#define IN_TURN_H

#include <stdbool.h>

#include "show.h"

enum { IN_TURN_ROUNDS = 200 }; /* ms; after that, the other threads have ended */

static int in_turn_comer, in_turn_takes;

static inline void in_turn_come(void)
{
	__atomic_store_n(&in_turn_comer, gettid(), __ATOMIC_RELAXED);
}

/* Waits until another thread arrives and sleeps: the thread can only sleep for the mutex. */
static inline int in_turn_hold(void)
{
	int mine = __atomic_add_fetch(&in_turn_takes, 1, __ATOMIC_RELAXED), self = gettid(), comer;

	__atomic_compare_exchange_n(&in_turn_comer, &self, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	for (int round = 0; round < IN_TURN_ROUNDS; round++) {
		comer = __atomic_load_n(&in_turn_comer, __ATOMIC_RELAXED);
		if (comer) {
			await_asleep(comer);
			break;
		}
		nap();
	}
	return mine;
}

/* Waits until another thread has had the mutex. */
static inline void in_turn_pass(int mine)
{
	for (int round = 0; round < IN_TURN_ROUNDS; round++) {
		if (__atomic_load_n(&in_turn_takes, __ATOMIC_RELAXED) != mine)
			return;
		nap();
	}
}

/* Takes and releases a mutex in turn with other threads. A macro, so that the calling function itself takes the mutex. */
#define TAKE_IN_TURN(lock)                    \
	do {                                  \
		int mine_;                    \
                                              \
		in_turn_come();               \
		pthread_mutex_lock(lock);     \
		mine_ = in_turn_hold();       \
		pthread_mutex_unlock(lock);   \
		in_turn_pass(mine_);          \
	} while (0)

#endif
