/* SPDX-License-Identifier: MIT */
/* module.c - a library to be opened: locks, a thread, a key with a destructor, its own lock functions if OWN is defined. */
#include "work.h"

#ifdef OWN
/* The module's own lock; some libraries bring their own. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	while (__atomic_exchange_n(&mutex->__data.__lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	__atomic_store_n(&mutex->__data.__lock, 0, __ATOMIC_RELEASE);
	return 0;
}
#endif

long module_run(int threads, long times);

long module_run(int threads, long times)
{
	return work_together(threads, times);
}
