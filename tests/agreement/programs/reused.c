/* SPDX-License-Identifier: MIT */
/* reused.c - short threads, a thread that keeps a lock, and several locks in turn at each of two addresses. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t named, kept = PTHREAD_MUTEX_INITIALIZER;

static void *keep(void *unused)
{
	pthread_mutex_lock(&kept);
	return unused;
}

static void *use(void *lock)
{
	struct timespec rest = {0, 200000};

	pthread_mutex_lock(lock);
	nanosleep(&rest, NULL);
	pthread_mutex_unlock(lock);
	return lock;
}

static void use_by(pthread_mutex_t *lock, int threads)
{
	pthread_t made[8];

	for (int i = 0; i < threads; i++)
		pthread_create(&made[i], NULL, use, lock);
	for (int i = 0; i < threads; i++)
		pthread_join(made[i], NULL);
	pthread_mutex_destroy(lock);
}

__attribute__((noinline)) static void make_order(pthread_mutex_t *lock)
{
	pthread_mutex_init(lock, NULL);
}

__attribute__((noinline)) static void make_account(pthread_mutex_t *lock)
{
	pthread_mutex_init(lock, NULL);
}

int main(void)
{
	pthread_mutex_t *lock = malloc(sizeof(*lock));
	pthread_t keeper;

	pthread_create(&keeper, NULL, keep, NULL);
	pthread_join(keeper, NULL);
	for (int i = 0; i < 6; i++) {
		(i % 3 ? make_order : make_account)(lock);
		use_by(lock, 2 + i);
		(i % 2 ? make_order : make_account)(&named);
		use_by(&named, 3);
	}
	free(lock);
	return 0;
}
