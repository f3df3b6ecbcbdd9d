/* SPDX-License-Identifier: MIT */
/* broken_library.c - preloaded behind the tracer: a thread library that breaks the promise named by BREAK. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The step that the program has reached: see broken_program.c. */
extern int broken_step __attribute__((weak));

static bool breaks(const char *what)
{
	const char *wanted = getenv("BREAK");

	return wanted && strcmp(wanted, what) == 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int pthread_mutex_lock(pthread_mutex_t *m)
{
	return breaks("mutex-exclusion") ? 0 : REAL(pthread_mutex_lock)(m);
}

int pthread_mutex_trylock(pthread_mutex_t *m)
{
	int result;

	if (breaks("mutex-exclusion"))
		return 0;
	if (breaks("try-busy"))
		return EBUSY;
	result = REAL(pthread_mutex_trylock)(m);
	return breaks("mutex-robust") && result == EBUSY ? EOWNERDEAD : result;
}

int pthread_mutex_unlock(pthread_mutex_t *m)
{
	int result = REAL(pthread_mutex_unlock)(m);

	return breaks("mutex-exclusion") || breaks("mutex-owner") ? 0 : result;
}

int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *deadline)
{
	return breaks("timeout-early") ? ETIMEDOUT : REAL(pthread_mutex_clocklock)(m, clock, deadline);
}

int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
	return breaks("rwlock-exclusion") ? 0 : REAL(pthread_rwlock_trywrlock)(l);
}

int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	return breaks("rwlock-exclusion") ? 0 : REAL(pthread_rwlock_unlock)(l);
}

int pthread_spin_trylock(pthread_spinlock_t *l)
{
	return breaks("spin-exclusion") ? 0 : REAL(pthread_spin_trylock)(l);
}

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	if (!breaks("cond-mutex"))
		return REAL(pthread_cond_wait)(c, m);
	/* until the program says so, and then without the mutex */
	pthread_mutex_unlock(m);
	while (__atomic_load_n(&broken_step, __ATOMIC_SEQ_CST) < 2)
		sched_yield();
	return 0;
}

int pthread_cond_signal(pthread_cond_t *c)
{
	if (breaks("result"))
		return EINTR;
	return breaks("cond-wakeup") ? 0 : REAL(pthread_cond_signal)(c);
}

int pthread_barrier_wait(pthread_barrier_t *b)
{
	int result = breaks("barrier-early") ? 0 : REAL(pthread_barrier_wait)(b);

	return breaks("barrier-serial") ? PTHREAD_BARRIER_SERIAL_THREAD : result;
}

int sem_trywait(sem_t *s)
{
	return breaks("sem-value") ? 0 : REAL(sem_trywait)(s);
}

int pthread_once(pthread_once_t *once, void (*routine)(void))
{
	if (!breaks("once-twice"))
		return REAL(pthread_once)(once, routine);
	routine();
	return 0;
}

int pthread_join(pthread_t thread, void **value)
{
	static int calls;

	if (breaks("join-end") && __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST) == 0)
		return 0;
	return REAL(pthread_join)(thread, value);
}
