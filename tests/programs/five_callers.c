/* SPDX-License-Identifier: MIT */
/* five_callers.c - five threads wait for the same lock, each in its own function, which calls a common wrapper. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 12
#define THREADS 5

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int ready;
static pid_t tid[THREADS];

static __attribute__((noinline)) void db_lock(void)
{
	pthread_mutex_lock(&g_lock);
	__asm__ volatile(""); /* the call above is no jump */
}

#define CALLER(name)                                       \
	static __attribute__((noinline)) void name(void)   \
	{                                                  \
		for (int i = 0; i < ROUNDS; i++) {         \
			db_lock();                         \
			usleep(500);                       \
			pthread_mutex_unlock(&g_lock);     \
		}                                          \
	}

CALLER(read_row)
CALLER(write_row)
CALLER(flush_log)
CALLER(take_snapshot)
CALLER(drop_table)

static void (*const callers[THREADS])(void) = {read_row, write_row, flush_log, take_snapshot, drop_table};

static void *run(void *arg)
{
	tid[(long)arg] = gettid();
	atomic_fetch_add(&ready, 1);
	callers[(long)arg]();
	return NULL;
}

/* Until all threads wait for the lock. */
static void await(pid_t thread)
{
	char path[64], state = 0;

	while (state != 'S') {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
		file = fopen(path, "r");
		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
		usleep(1000);
	}
}

int main(void)
{
	pthread_t thread[THREADS];

	pthread_mutex_lock(&g_lock);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	while (atomic_load(&ready) < THREADS)
		usleep(1000);
	for (int i = 0; i < THREADS; i++)
		await(tid[i]);
	pthread_mutex_unlock(&g_lock);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
