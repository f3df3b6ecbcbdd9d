/* SPDX-License-Identifier: MIT */
/* units.c - a semaphore as a lock, a semaphore that hands over work, and a pool of three units; every wait is planted. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KEPT_NS 20000000L

static sem_t lock, work, pool, taken;
static int asking; /* the thread that is about to wait, 0 until it is */

/* Does the kernel say that a thread sleeps? */
static int sleeps(int tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		abort();
	fclose(file);
	return state == 'S';
}

/* Keeps a semaphore until the other thread sleeps, and KEPT_NS longer, without a function that the tracer knows. */
static void keep(void)
{
	struct timespec t = { .tv_nsec = KEPT_NS };
	int tid;

	while (!(tid = __atomic_load_n(&asking, __ATOMIC_ACQUIRE)) || !sleeps(tid))
		syscall(SYS_sched_yield);
	syscall(SYS_nanosleep, &t, NULL);
}

static void *asks(void *sem)
{
	__atomic_store_n(&asking, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	sem_wait(sem);
	return NULL;
}

static pthread_t start(void *(*routine)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, routine, arg))
		abort();
	return thread;
}

/* Another thread waits for the semaphore while this thread keeps it, or does not post. */
static void meet(sem_t *sem)
{
	pthread_t other;

	__atomic_store_n(&asking, 0, __ATOMIC_RELEASE);
	other = start(asks, sem);
	keep();
	sem_post(sem);
	pthread_join(other, NULL);
}

static void *takes(void *sem)
{
	sem_wait(sem);
	sem_post(&taken);
	return NULL;
}

int main(void)
{
	sem_init(&lock, 0, 1);
	sem_init(&work, 0, 0);
	sem_init(&pool, 0, 3);
	sem_init(&taken, 0, 0);
	sem_wait(&lock);
	meet(&lock);
	meet(&work);
	for (int i = 0; i < 2; i++) {
		pthread_t other = start(takes, &pool);

		sem_wait(&taken);
		pthread_join(other, NULL);
	}
	sem_wait(&pool);
	meet(&pool);
	return 0;
}
