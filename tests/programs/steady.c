/* SPDX-License-Identifier: MIT */
/* steady.c - threads do the same work with two locks in every run: with one they compute, with the other they sleep: steady [FACTOR]. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3
#define ROUNDS 30
#define COMPUTES 400000
#define SLEEPS_NS 500000L

static pthread_mutex_t computes = PTHREAD_MUTEX_INITIALIZER, sleeps = PTHREAD_MUTEX_INITIALIZER;
static long factor = 1;

static void compute(long rounds)
{
	for (volatile long i = 0; i < rounds; i++)
		;
}

/* Not by a function that the tracer knows. */
static void nap(long ns)
{
	struct timespec t = { .tv_nsec = ns };

	syscall(SYS_nanosleep, &t, NULL);
}

static void *work(void *unused)
{
	for (int round = 0; round < ROUNDS; round++) {
		pthread_mutex_lock(&computes);
		compute(COMPUTES * factor);
		pthread_mutex_unlock(&computes);
		compute(COMPUTES);
		pthread_mutex_lock(&sleeps);
		nap(SLEEPS_NS * factor);
		pthread_mutex_unlock(&sleeps);
		nap(SLEEPS_NS);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc > 1)
		factor = atol(argv[1]);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
