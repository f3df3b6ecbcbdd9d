/* SPDX-License-Identifier: MIT */
/* planted.c - keeps locks of all kinds from another thread, and prints how long that thread waited during and after each hold. */
/*
 * The holder computes and sleeps in turn. In the rounds `preempted` the holder shares its processor with a thread that
 * computes; in the rounds `delayed` the waiter does.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 6
#define KEPT_NS 12000000L

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static volatile int turn, asked, given, over;
static volatile int64_t begun, released, got;
static cpu_set_t all;

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Not by a function that the tracer knows. */
static void nap(long ns)
{
	struct timespec t = { .tv_nsec = ns };

	syscall(SYS_nanosleep, &t, NULL);
}

static void lock_mutex(void) { pthread_mutex_lock(&mutex); }
static void unlock_mutex(void) { pthread_mutex_unlock(&mutex); }
static void write_lock(void) { pthread_rwlock_wrlock(&rwlock); }
static void read_lock(void) { pthread_rwlock_rdlock(&rwlock); }
static void unlock_rwlock(void) { pthread_rwlock_unlock(&rwlock); }
static void take_unit(void) { sem_wait(&sem); }
static void give_unit(void) { sem_post(&sem); }

enum { NOBODY, HOLDER, WAITER };

static const struct {
	const char *name;
	void (*keep)(void), (*ask)(void), (*release)(void);
	int beside; /* the thread that shares a processor with another thread */
} kinds[] = {
	{ "mutex", lock_mutex, lock_mutex, unlock_mutex, NOBODY },
	{ "read", write_lock, read_lock, unlock_rwlock, NOBODY },
	{ "write", read_lock, write_lock, unlock_rwlock, NOBODY },
	{ "sem", take_unit, take_unit, give_unit, NOBODY },
	{ "preempted", lock_mutex, lock_mutex, unlock_mutex, HOLDER },
	{ "delayed", lock_mutex, lock_mutex, unlock_mutex, WAITER },
};
#define KINDS (int)(sizeof(kinds) / sizeof(*kinds))

static int beside(int round)
{
	return round < KINDS * ROUNDS ? kinds[round / ROUNDS].beside : NOBODY;
}

static void bind_if(int bound)
{
	cpu_set_t one;
	int cpu = 0;

	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(all), bound ? &one : &all);
}

static void *competes(void *unused)
{
	bind_if(1);
	while (!over)
		if (beside(given) == NOBODY)
			nap(1000000);
	return unused;
}

static void *asks(void *unused)
{
	for (int round = 0; round < KINDS * ROUNDS; round++) {
		bind_if(beside(round) == WAITER);
		while (turn <= round)
			nap(100000);
		begun = now(CLOCK_MONOTONIC);
		asked = round + 1;
		kinds[round / ROUNDS].ask();
		got = now(CLOCK_MONOTONIC);
		kinds[round / ROUNDS].release();
		given = round + 1;
	}
	return unused;
}

static void keep_for(int asleep)
{
	int64_t until = now(CLOCK_THREAD_CPUTIME_ID) + KEPT_NS;

	if (asleep)
		nap(KEPT_NS);
	else
		while (now(CLOCK_THREAD_CPUTIME_ID) < until)
			;
}

int main(void)
{
	pthread_t waiter, competitor;

	sched_getaffinity(0, sizeof(all), &all);
	sem_init(&sem, 0, 1);
	pthread_create(&waiter, NULL, asks, NULL);
	pthread_create(&competitor, NULL, competes, NULL);
	for (int round = 0; round < KINDS * ROUNDS; round++) {
		bind_if(beside(round) == HOLDER);
		kinds[round / ROUNDS].keep();
		turn = round + 1;
		while (asked <= round)
			nap(100000);
		keep_for(round % 2);
		released = now(CLOCK_MONOTONIC);
		kinds[round / ROUNDS].release();
		while (given <= round)
			nap(100000);
		printf("%s %ld %ld\n", kinds[round / ROUNDS].name, (long)(released - begun), (long)(got - released));
	}
	over = 1;
	pthread_join(waiter, NULL);
	pthread_join(competitor, NULL);
	return 0;
}
