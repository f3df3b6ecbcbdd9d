/* SPDX-License-Identifier: MIT */
/* switches.c - threads and processes with known context switches: switches WHAT. */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 12
#define NAPS 5
#define ROUNDS 30000

static sem_t ping, pong;

/* Not by a function that the tracer knows. */
static void nap(long ns)
{
	struct timespec t = { .tv_nsec = ns };

	syscall(SYS_nanosleep, &t, NULL);
}

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void *naps(void *unused)
{
	int64_t until;

	for (int i = 0; i < NAPS; i++)
		nap(4000000);
	until = now(CLOCK_THREAD_CPUTIME_ID) + 3000000;
	while (now(CLOCK_THREAD_CPUTIME_ID) < until)
		;
	dprintf(1, "%d %ld\n", (int)syscall(SYS_gettid), (long)now(CLOCK_THREAD_CPUTIME_ID));
	return unused;
}

static void threads(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, naps, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	fflush(stdout);
}

static void processes(const char *self)
{
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			if (i == 2)
				execl(self, self, "threads", NULL);
			threads();
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static void *answers(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		sem_wait(&ping);
		sem_post(&pong);
	}
	return unused;
}

/* Two threads wake each other, between two lines on standard input. */
static void many(void)
{
	pthread_t other;

	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	puts("ready");
	fflush(stdout);
	getchar();
	pthread_create(&other, NULL, answers, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		sem_post(&ping);
		sem_wait(&pong);
	}
	puts("done");
	fflush(stdout);
	getchar();
	pthread_join(other, NULL);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "processes"))
		processes(argv[0]);
	else if (argc > 1 && !strcmp(argv[1], "many"))
		many();
	else
		threads();
	return 0;
}
