/* SPDX-License-Identifier: MIT */
/* story.c - a chain of waits, a wait for work, and two orders of two locks; it takes the same course every time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue = PTHREAD_COND_INITIALIZER;
static int there_is_work;
static volatile int about_to_wait, turn;

/* Returns when the thread that said it would wait sleeps. */
static void until_it_sleeps(void)
{
	char path[64], state = 0;

	while (!about_to_wait)
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", about_to_wait);
	while (state != 'S') {
		FILE *file = fopen(path, "r");

		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(file);
		sched_yield();
	}
	about_to_wait = 0;
}

static void *middle(void *unused)
{
	pthread_setname_np(pthread_self(), "middle");
	pthread_mutex_lock(&outer);
	about_to_wait = gettid();
	pthread_mutex_lock(&hot);
	pthread_mutex_unlock(&hot);
	pthread_mutex_unlock(&outer);
	return unused;
}

static void *last(void *unused)
{
	pthread_setname_np(pthread_self(), "last");
	about_to_wait = gettid();
	pthread_mutex_lock(&outer);
	pthread_mutex_unlock(&outer);
	return unused;
}

static void *idler(void *unused)
{
	pthread_setname_np(pthread_self(), "idler");
	pthread_mutex_lock(&queue_lock);
	about_to_wait = gettid();
	while (!there_is_work)
		pthread_cond_wait(&queue, &queue_lock);
	pthread_mutex_unlock(&queue_lock);
	return unused;
}

static void *one_order(void *unused)
{
	pthread_setname_np(pthread_self(), "one-order");
	pthread_mutex_lock(&first);
	pthread_mutex_lock(&second);
	pthread_mutex_unlock(&second);
	pthread_mutex_unlock(&first);
	turn = 1;
	return unused;
}

static void *other_order(void *unused)
{
	pthread_setname_np(pthread_self(), "other-order");
	while (!turn)
		sched_yield();
	pthread_mutex_lock(&second);
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
	pthread_mutex_unlock(&second);
	return unused;
}

int main(void)
{
	pthread_t a, b;

	pthread_mutex_lock(&hot);
	pthread_create(&a, NULL, middle, NULL);
	until_it_sleeps();
	pthread_create(&b, NULL, last, NULL);
	until_it_sleeps();
	pthread_mutex_unlock(&hot);
	pthread_join(a, NULL);
	pthread_join(b, NULL);

	pthread_create(&a, NULL, idler, NULL);
	until_it_sleeps();
	pthread_mutex_lock(&queue_lock);
	there_is_work = 1;
	pthread_cond_signal(&queue);
	pthread_mutex_unlock(&queue_lock);
	pthread_join(a, NULL);

	pthread_create(&a, NULL, other_order, NULL);
	pthread_create(&b, NULL, one_order, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
