/* SPDX-License-Identifier: MIT */
/* units_by_others.c - semaphores that begin with one unit: a hand-over, jobs that bring two more, a room of readers, a raised limit. */
#include "corpus.h"
#include <sched.h>

static sem_t handed, asked, jobs, room, limit;
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static int readers, open_jobs = 1, found = 1, both;

/* One thread takes, and the other thread gives back. */
static void *gives(void *unused)
{
	for (int i = 0; i < 50; i++) {
		sem_wait(&asked);
		sem_post(&handed);
	}
	return unused;
}

static void *takes(void *unused)
{
	sem_wait(&handed);
	sem_post(&handed);
	for (int i = 0; i < 50; i++) {
		sem_wait(&handed);
		sem_post(&asked);
	}
	return unused;
}

/* Each of the first jobs finds one more job, until five are found; then each finds two, up to 60. */
static void *walks(void *unused)
{
	for (;;) {
		int more, last;

		sem_wait(&jobs);
		pthread_mutex_lock(&door);
		more = found < 5 ? 1 : found < 60 ? 2 : 0;
		found += more;
		open_jobs += more - 1;
		last = open_jobs <= 0;
		pthread_mutex_unlock(&door);
		while (more--)
			sem_post(&jobs);
		if (last) {
			sem_post(&jobs);
			return unused;
		}
	}
}

/* The first reader takes the room for all readers, and the last reader gives it back. */
static void *reads(void *unused)
{
	for (int i = 0; i < 300; i++) {
		pthread_mutex_lock(&door);
		if (readers++ == 0)
			sem_wait(&room);
		pthread_mutex_unlock(&door);
		if (i % 10 == 0)
			sched_yield();
		pthread_mutex_lock(&door);
		if (--readers == 0)
			sem_post(&room);
		pthread_mutex_unlock(&door);
	}
	return unused;
}

static void *works(void *unused)
{
	for (int i = 0; i < 20; i++) {
		sem_wait(&limit);
		if (i == 19)
			meet(&both, 2);
		sem_post(&limit);
	}
	return unused;
}

int main(void)
{
	void *(*const all[])(void *) = {gives, takes, walks, walks, walks, reads, reads, reads, works, works};
	pthread_t threads[10];

	sem_init(&handed, 0, 1);
	sem_init(&asked, 0, 0);
	sem_init(&jobs, 0, 1);
	sem_init(&room, 0, 1);
	sem_init(&limit, 0, 1);
	for (int i = 0; i < 10; i++)
		threads[i] = start(all[i], NULL);
	/* Now two may work at a time. */
	sem_post(&limit);
	for (int i = 0; i < 10; i++)
		join(threads[i]);
	return 0;
}
