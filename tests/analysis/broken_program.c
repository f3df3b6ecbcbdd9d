/* SPDX-License-Identifier: MIT */
/* broken_program.c - broken_program RULE: calls that show, under broken_library.c, that this promise is broken. */
/* Two threads take turns by a step counter; no thread library can disturb that. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int broken_step;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, checked, robust, tried;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t cond;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t sem;

static void until(int step)
{
	while (__atomic_load_n(&broken_step, __ATOMIC_SEQ_CST) < step)
		sched_yield();
}

static void reach(int step)
{
	until(step - 1);
	__atomic_store_n(&broken_step, step, __ATOMIC_SEQ_CST);
}

/* One thread is inside the once routine while another thread comes and goes. */
#define IN_THE_MIDDLE(name, take, give) \
	static void *name##_first(void *arg) \
	{ \
		take; \
		reach(1); \
		until(2); \
		give; \
		return arg; \
	} \
	static void *name##_second(void *arg) \
	{ \
		until(1); \
		take; \
		give; \
		reach(2); \
		return arg; \
	}

IN_THE_MIDDLE(mutex, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))
IN_THE_MIDDLE(rwlock, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))
IN_THE_MIDDLE(spin, pthread_spin_lock(&spin), pthread_spin_unlock(&spin))

static void *robust_first(void *arg)
{
	pthread_mutex_lock(&robust);
	reach(1);
	until(2);
	return arg;
}

static void *robust_second(void *arg)
{
	until(1);
	pthread_mutex_trylock(&robust);
	reach(2);
	return arg;
}

static void *owner_first(void *arg)
{
	pthread_mutex_lock(&checked);
	reach(1);
	until(2);
	pthread_mutex_unlock(&checked);
	return arg;
}

static void *owner_second(void *arg)
{
	until(1);
	pthread_mutex_unlock(&checked);
	reach(2);
	return arg;
}

static void *cond_first(void *arg)
{
	pthread_mutex_lock(&mutex);
	reach(1);
	pthread_cond_wait(&cond, &mutex);
	reach(3);
	return arg;
}

static void *cond_second(void *arg)
{
	until(1);
	pthread_mutex_lock(&mutex);
	reach(2);
	until(3);
	pthread_mutex_unlock(&mutex);
	return arg;
}

/* Then goes on for a while, to show that the program has not stopped. */
static void *wakeup_second(void *arg)
{
	struct timespec now, end;

	until(1);
	pthread_mutex_lock(&mutex);
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec++;
	do {
		sched_yield();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	pthread_mutex_lock(&tried);
	pthread_mutex_unlock(&tried);
	exit(arg != NULL);
}

static void *early_first(void *arg)
{
	pthread_barrier_wait(&barrier);
	reach(1);
	return arg;
}

static void *early_second(void *arg)
{
	until(1);
	pthread_barrier_wait(&barrier);
	return arg;
}

static void *serial_both(void *arg)
{
	pthread_barrier_wait(&barrier);
	return arg;
}

static void *sem_first(void *arg)
{
	sem_wait(&sem);
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static void routine(void)
{
	if (__atomic_load_n(&broken_step, __ATOMIC_SEQ_CST) == 0) {
		reach(1);
		until(2);
	} else {
		reach(2);
	}
}

static void *once_first(void *arg)
{
	pthread_once(&once, routine);
	return arg;
}

static void *once_second(void *arg)
{
	until(1);
	pthread_once(&once, routine);
	return arg;
}

/* Often enough for its initialization to lie far back in the trace. */
static void *try_first(void *arg)
{
	for (int i = 0; i < 1000; i++)
		pthread_mutex_trylock(&tried);
	return arg;
}

static void *timeout_second(void *arg)
{
	struct timespec deadline;

	until(1);
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += 3600;
	pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &deadline);
	reach(2);
	return arg;
}

static void *result_first(void *arg)
{
	pthread_cond_signal(&cond);
	return arg;
}

static void *join_first(void *arg)
{
	reach(1);
	until(2);
	return arg;
}

static const struct {
	const char *rule;
	void *(*first)(void *), *(*second)(void *);
} rules[] = {
	{ "mutex-exclusion", mutex_first, mutex_second },
	{ "mutex-owner", owner_first, owner_second },
	{ "mutex-robust", robust_first, robust_second },
	{ "rwlock-exclusion", rwlock_first, rwlock_second },
	{ "spin-exclusion", spin_first, spin_second },
	{ "cond-mutex", cond_first, cond_second },
	{ "cond-wakeup", cond_first, wakeup_second },
	{ "barrier-early", early_first, early_second },
	{ "barrier-serial", serial_both, serial_both },
	{ "sem-value", sem_first, nothing },
	{ "once-twice", once_first, once_second },
	{ "join-end", join_first, nothing },
	{ "try-busy", try_first, nothing },
	{ "timeout-early", mutex_first, timeout_second },
	{ "result", result_first, nothing },
};

static void prepare(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutex_init(&tried, &attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&checked, &attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_NORMAL);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &attr);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	pthread_cond_init(&cond, NULL);
	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&sem, 0, 0);
}

int main(int argc, char **argv)
{
	pthread_t first, second;

	prepare();
	for (size_t i = 0; argc > 1 && i < sizeof(rules) / sizeof(*rules); i++) {
		if (strcmp(rules[i].rule, argv[1]) != 0)
			continue;
		pthread_create(&first, NULL, rules[i].first, NULL);
		pthread_create(&second, NULL, rules[i].second, NULL);
		if (strcmp(argv[1], "join-end") == 0) {
			until(1);
			pthread_join(first, NULL); /* too early */
			reach(2);
		}
		pthread_join(first, NULL);
		pthread_join(second, NULL);
		return 0;
	}
	return 2;
}
