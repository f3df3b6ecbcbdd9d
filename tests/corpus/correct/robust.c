/* SPDX-License-Identifier: MIT */
/* robust.c - owners of robust mutexes die on purpose; the next owner makes the state consistent. */
#include "corpus.h"

static pthread_mutex_t lock;
static int deaths;

static void *dies(void *unused)
{
	int result = pthread_mutex_lock(&lock);

	if (result == EOWNERDEAD) {
		deaths++;
		pthread_mutex_consistent(&lock);
	}
	return unused; /* with the lock */
}

int main(void)
{
	pthread_mutexattr_t attr;

	needs_dead_owners_marked();
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&lock, &attr);
	for (int i = 0; i < 4; i++)
		join(start(dies, NULL));
	if (pthread_mutex_lock(&lock) != EOWNERDEAD)
		return 1;
	pthread_mutex_consistent(&lock);
	pthread_mutex_unlock(&lock);
	pthread_mutex_destroy(&lock);
	return deaths != 3;
}
