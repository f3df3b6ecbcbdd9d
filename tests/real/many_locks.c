/* SPDX-License-Identifier: MIT */
/* many_locks.c - takes and releases locks of three kinds a known number of times, and counts. */
/*
 * many_locks THREADS OPERATIONS
 *
 * The threads share OPERATIONS lock operations; an acquisition and its release are two operations. Each thread takes a few
 * contended locks in turn with a lock of its own. The locks protect plain counters, so the program itself proves mutual
 * exclusion. It prints "KIND TAKEN" for each kind.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SHARED 4

static pthread_mutex_t mutex[SHARED];
static pthread_spinlock_t spin;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long by_mutex[SHARED], by_spin, by_writer;
static long rounds;

struct worker {
	pthread_t thread;
	pthread_mutex_t own;
	long number, by_own, read;
};

static void *work(void *argument)
{
	struct worker *me = argument;
	volatile long seen = 0;

	for (long i = 0; i < rounds; i++) {
		int which = (int)((i + me->number) % SHARED);

		pthread_mutex_lock(&mutex[which]);
		by_mutex[which]++;
		pthread_mutex_unlock(&mutex[which]);

		pthread_mutex_lock(&me->own);
		me->by_own++;
		pthread_mutex_unlock(&me->own);

		switch (i & 3) {
		case 0:
			pthread_spin_lock(&spin);
			by_spin++;
			pthread_spin_unlock(&spin);
			break;
		case 1:
			pthread_rwlock_wrlock(&rwlock);
			by_writer++;
			pthread_rwlock_unlock(&rwlock);
			break;
		case 2:
			pthread_rwlock_rdlock(&rwlock);
			seen += by_writer & 1;
			pthread_rwlock_unlock(&rwlock);
			me->read++;
			break;
		default:
			while (pthread_mutex_trylock(&mutex[which]))
				;
			by_mutex[which]++;
			pthread_mutex_unlock(&mutex[which]);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long threads, mutexes = 0, read = 0;
	struct worker *worker;

	if (argc < 3)
		return 2;
	threads = atol(argv[1]);
	rounds = atol(argv[2]) / 6 / threads;
	worker = calloc((size_t)threads, sizeof(*worker));
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	for (int i = 0; i < SHARED; i++)
		pthread_mutex_init(&mutex[i], NULL);
	for (long i = 0; i < threads; i++) {
		worker[i].number = i;
		pthread_mutex_init(&worker[i].own, NULL);
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
			return 2;
	}
	for (long i = 0; i < threads; i++) {
		pthread_join(worker[i].thread, NULL);
		mutexes += worker[i].by_own;
		read += worker[i].read;
	}
	for (int i = 0; i < SHARED; i++)
		mutexes += by_mutex[i];
	printf("MUTEX_TAKEN %ld\nSPIN_TAKEN %ld\nRWLOCK_TAKEN_WRITE %ld\nRWLOCK_TAKEN_READ %ld\n", mutexes, by_spin,
	       by_writer, read);
	free(worker);
	return 0;
}
