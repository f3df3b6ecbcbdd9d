/* SPDX-License-Identifier: MIT */
/* mmap_reuse.c - a mapping with locks is unmapped; another mapping with other locks comes to the same place. */
#include "corpus.h"

static int turn;
static void *place;

static pthread_mutex_t *map(void)
{
	void *at = mmap(place, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	if (at == MAP_FAILED)
		exit(0); /* something else came to the place */
	place = at;
	return at;
}

static void lock_both(pthread_mutex_t *one, pthread_mutex_t *two)
{
	pthread_mutex_lock(one);
	pthread_mutex_lock(two);
	pthread_mutex_unlock(two);
	pthread_mutex_unlock(one);
}

static void *other(void *unused)
{
	pthread_mutex_t *locks;

	await(&turn, 1);
	locks = map();
	lock_both(&locks[1], &locks[0]);
	munmap(locks, 4096);
	return unused;
}

int main(void)
{
	pthread_t thread = start(other, NULL);
	pthread_mutex_t *locks = map();

	lock_both(&locks[0], &locks[1]);
	munmap(locks, 4096);
	arrive(&turn);
	join(thread);
	return 0;
}
