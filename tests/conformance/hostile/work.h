/* SPDX-License-Identifier: MIT */
/* work.h - a little locking among threads, for programs that test something else. */
#ifndef WORK_H
#define WORK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t work_mutex = PTHREAD_MUTEX_INITIALIZER;
static long work_done;

static void *work(void *arg)
{
	long i;

	for (i = 0; i < (long)arg; i++) {
		pthread_mutex_lock(&work_mutex);
		work_done++;
		pthread_mutex_unlock(&work_mutex);
	}
	return NULL;
}

/* @threads threads take the mutex @times times each. Return: the total count. */
static inline long work_together(int threads, long times)
{
	pthread_t thread[16];
	int i, error;

	work_done = 0;
	for (i = 0; i < threads; i++) {
		error = pthread_create(&thread[i], NULL, work, (void *)times);
		if (error) {
			printf("no thread: %s\n", strerror(error));
			exit(1);
		}
	}
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	return work_done;
}

#endif
