/* SPDX-License-Identifier: MIT */
/*
 * cache.c - a cache that makes a server slow: the program of the tutorial "Find which lock makes a program slow".
 *
 *     cc -g -pthread -o cache cache.c
 *     ./cache
 *
 * Four workers answer requests. A worker that does not find a value in the cache loads it from the database, which
 * takes 2 ms.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define WORKERS 4
#define REQUESTS 100
#define KEYS 400

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static int cache[KEYS];

static int load(int key)
{
	usleep(2000); /* the database answers */
	return key + 1;
}

static int lookup(int key)
{
	int value;

	pthread_mutex_lock(&cache_lock);
	if (!cache[key])
		cache[key] = load(key);
	value = cache[key];
	pthread_mutex_unlock(&cache_lock);
	return value;
}

static void *worker(void *arg)
{
	unsigned next = (unsigned)(long)arg;
	long sum = 0;

	pthread_setname_np(pthread_self(), "worker");
	for (int i = 0; i < REQUESTS; i++) {
		next = next * 1103515245 + 12345;
		sum += lookup((int)(next / 65536 % KEYS));
	}
	return (void *)sum;
}

int main(void)
{
	pthread_t workers[WORKERS];

	for (long i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, worker, (void *)i);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	printf("%d requests answered\n", WORKERS * REQUESTS);
	return 0;
}
