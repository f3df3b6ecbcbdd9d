/* SPDX-License-Identifier: MIT */
/*
 * contention.c - known contention: three threads in five phases. Each phase prints the least and the most time that threads can
 * have waited, by the program's own clock: `KIND NAME AT-LEAST AT-MOST` in ns.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "show.h"

enum { HOT, TABLE, SLOTS, MEET, DOOR, PHASES };

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, door = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static sem_t slots;
static pthread_barrier_t start, meet;
static int there_is_work;
static int asking[PHASES][3]; /* threads that are about to wait */
static long asleep, gave; /* since then the other threads sleep; the release came after that */
static long least[PHASES], most[PHASES];

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
}

/* The calling thread is about to wait: stores the time. */
static long ask(int phase, long me)
{
	__atomic_store_n(&asking[phase][me], gettid(), __ATOMIC_RELEASE);
	return now();
}

/* Returns when these threads wait. */
static void await_asking(int phase, long first, long last)
{
	for (long other = first; other <= last; other++) {
		while (!__atomic_load_n(&asking[phase][other], __ATOMIC_ACQUIRE))
			nap();
		await_asleep(asking[phase][other]);
	}
}

static void add(int phase, long at_least, long at_most)
{
	__atomic_fetch_add(&least[phase], at_least, __ATOMIC_RELAXED);
	__atomic_fetch_add(&most[phase], at_most, __ATOMIC_RELAXED);
}

/* The calling thread has the lock now: it asked for the lock at `asked`, and waited for the last holder. */
static void waited(int phase, long asked)
{
	add(phase, gave - asleep, now() - asked);
}

/* The first thread has the object that the other threads wait for. */
static void hold(int phase, long ms)
{
	await_asking(phase, 1, 2);
	asleep = now();
	pause_ms(ms);
	gave = now();
}

/* The first thread signals, and keeps the mutex that the second needs to go on; the third only locks the mutex. */
static void wait_for_work(long me)
{
	long began = now(), signals;

	pthread_mutex_lock(&door);
	add(DOOR, 0, now() - began);
	if (me == 1) {
		ask(DOOR, me);
		while (!there_is_work)
			pthread_cond_wait(&work, &door);
		add(DOOR, 0, now() - asleep);
	} else if (me == 0) {
		pthread_mutex_unlock(&door);
		await_asking(DOOR, 1, 1);
		began = now();
		pthread_mutex_lock(&door);
		add(DOOR, 0, now() - began);
		there_is_work = 1;
		asleep = now();
		pthread_cond_signal(&work);
		signals = now();
		pause_ms(30);
		add(DOOR, now() - signals, 0);
	}
	pthread_mutex_unlock(&door);
}

static void *run(void *number)
{
	long me = (long)number, asked;

	if (me == 0)
		pthread_mutex_lock(&hot);
	pthread_barrier_wait(&start);
	if (me == 0) {
		hold(HOT, 60);
	} else {
		asked = ask(HOT, me);
		pthread_mutex_lock(&hot);
		waited(HOT, asked);
		pause_ms(20);
		gave = now();
	}
	pthread_mutex_unlock(&hot);

	if (me == 0)
		pthread_rwlock_wrlock(&table);
	pthread_barrier_wait(&start);
	if (me == 0) {
		hold(TABLE, 40);
	} else {
		asked = ask(TABLE, me);
		pthread_rwlock_rdlock(&table);
		waited(TABLE, asked);
	}
	pthread_rwlock_unlock(&table);

	if (me == 0)
		sem_wait(&slots);
	pthread_barrier_wait(&start);
	if (me == 0) {
		hold(SLOTS, 30);
	} else {
		asked = ask(SLOTS, me);
		sem_wait(&slots);
		waited(SLOTS, asked);
		gave = now();
	}
	sem_post(&slots);

	pthread_barrier_wait(&start);
	if (me == 0) {
		hold(MEET, 50);
		asked = now();
		pthread_barrier_wait(&meet);
		add(MEET, 0, now() - asked);
	} else {
		asked = ask(MEET, me);
		pthread_barrier_wait(&meet);
		waited(MEET, asked);
	}

	pthread_barrier_wait(&start);
	wait_for_work(me);
	return NULL;
}

int main(void)
{
	static const char *const names[] = {"mutex hot", "rwlock table", "semaphore slots", "barrier meet",
					    "mutex door"};
	pthread_t threads[3];

	sem_init(&slots, 0, 1);
	pthread_barrier_init(&start, NULL, 3);
	pthread_barrier_init(&meet, NULL, 3);
	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < PHASES; i++)
		printf("%s %ld %ld\n", names[i], least[i], most[i]);
	return 0;
}
