/* SPDX-License-Identifier: MIT */
/* philosophers.c - each of five philosophers holds the left fork and wants the right fork. */
/* expect: deadlock threads=0,1,2,3,4 objects=fork0,fork1,fork2,fork3,fork4 sites=right */
/* also: lock-order-inversion */
/* run: hangs 6 */
#include "corpus.h"

#define SEATS 5

static pthread_mutex_t forks[SEATS];
static int seated;

static void *philosopher(void *number)
{
	long seat = (long)number;
	char name[8];

	snprintf(name, sizeof(name), "%ld", seat);
	i_am(name);
	pthread_mutex_lock(&forks[seat]); /* SITE left */
	meet(&seated, SEATS);
	for_ever();
	pthread_mutex_lock(&forks[(seat + 1) % SEATS]); /* SITE right */
	pthread_mutex_unlock(&forks[(seat + 1) % SEATS]);
	pthread_mutex_unlock(&forks[seat]);
	return NULL;
}

int main(void)
{
	pthread_t threads[SEATS];
	char name[8];

	for (long i = 0; i < SEATS; i++) {
		pthread_mutex_init(&forks[i], NULL);
		snprintf(name, sizeof(name), "fork%ld", i);
		object(name, &forks[i]);
	}
	for (long i = 0; i < SEATS; i++)
		threads[i] = start(philosopher, (void *)i);
	for_ever();
	for (int i = 0; i < SEATS; i++)
		join(threads[i]);
	return 0;
}
