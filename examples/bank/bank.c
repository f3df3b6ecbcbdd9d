/* SPDX-License-Identifier: MIT */
/* bank.c - tellers move money between two accounts, an auditor reads one account, a clerk writes reports. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define TELLERS 4
#define MOVES 25

static pthread_mutex_t savings = PTHREAD_MUTEX_INITIALIZER, checking = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t book = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t entry = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t opening;
static int entries, written;

static void think(long us)
{
	struct timespec time = {0, us * 1000};

	nanosleep(&time, NULL);
}

static void move(pthread_mutex_t *from, pthread_mutex_t *to)
{
	pthread_mutex_lock(from);
	think(100);
	pthread_mutex_lock(to);
	think(100);
	pthread_mutex_unlock(to);
	pthread_mutex_unlock(from);
}

static void report(void)
{
	pthread_mutex_lock(&book);
	entries++;
	pthread_cond_signal(&entry);
	pthread_mutex_unlock(&book);
}

static void *teller(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "teller");
	pthread_barrier_wait(&opening);
	for (int i = 0; i < MOVES; i++) {
		move(&savings, &checking);
		report();
	}
	return NULL;
}

static void *manager(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "manager");
	move(&checking, &savings); /* in the other order, before the other threads begin */
	return NULL;
}

static void *auditor(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "auditor");
	pthread_barrier_wait(&opening);
	for (int i = 0; i < MOVES; i++) {
		pthread_mutex_lock(&checking);
		think(500);
		pthread_mutex_unlock(&checking);
		think(100);
	}
	return NULL;
}

static void *clerk(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "clerk");
	pthread_mutex_lock(&book);
	while (written < TELLERS * MOVES) {
		while (entries == written)
			pthread_cond_wait(&entry, &book);
		written++;
	}
	pthread_mutex_unlock(&book);
	return NULL;
}

int main(void)
{
	pthread_t tellers[TELLERS], audit, other;

	pthread_create(&other, NULL, manager, NULL);
	pthread_join(other, NULL);
	pthread_barrier_init(&opening, NULL, TELLERS + 1);
	pthread_create(&other, NULL, clerk, NULL);
	pthread_create(&audit, NULL, auditor, NULL);
	for (int i = 0; i < TELLERS; i++)
		pthread_create(&tellers[i], NULL, teller, NULL);
	for (int i = 0; i < TELLERS; i++)
		pthread_join(tellers[i], NULL);
	pthread_join(audit, NULL);
	pthread_join(other, NULL);
	pthread_barrier_destroy(&opening);
	printf("%d moves\n", written);
	return 0;
}
