/* profiled.c - holds two locks for known times while other threads wait for them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER, log_lock = PTHREAD_MUTEX_INITIALIZER;
static int rounds;

/* Holds of two places, of which one is longer. Threads sleep in them, so a busy machine changes little. */
__attribute__((noinline)) void update_table(void)
{
	pthread_mutex_lock(&table_lock);
	usleep(3000);
	pthread_mutex_unlock(&table_lock);
}

__attribute__((noinline)) void read_table(void)
{
	pthread_mutex_lock(&table_lock);
	usleep(500);
	pthread_mutex_unlock(&table_lock);
}

__attribute__((noinline)) void write_log(void)
{
	pthread_mutex_lock(&log_lock);
	usleep(1000);
	pthread_mutex_unlock(&log_lock);
}

static void *work(void *number)
{
	char name[16];

	snprintf(name, sizeof(name), "worker-%d", (int)(intptr_t)number);
	pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < rounds; i++) {
		update_table();
		read_table();
		write_log();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];

	rounds = argc > 1 ? atoi(argv[1]) : 100;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
