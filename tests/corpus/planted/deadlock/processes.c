/* SPDX-License-Identifier: MIT */
/* processes.c - parent and child lock two mutexes in shared memory in opposite orders. */
/* expect: deadlock threads=parent,child objects=ours,theirs sites=parent-wants,child-wants */
/* also: lock-order-inversion */
/* run: hangs 2 */
#include "corpus.h"

struct shared {
	pthread_mutex_t ours, theirs;
	int both;
};

int main(void)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->ours, &attr);
	pthread_mutex_init(&shared->theirs, &attr);
	object("ours", &shared->ours);
	object("theirs", &shared->theirs);
	if (fork() == 0) {
		i_am("child");
		pthread_mutex_lock(&shared->theirs);
		meet(&shared->both, 2);
		for_ever();
		pthread_mutex_lock(&shared->ours); /* SITE child-wants */
		return 0;
	}
	i_am("parent");
	pthread_mutex_lock(&shared->ours);
	meet(&shared->both, 2);
	for_ever();
	pthread_mutex_lock(&shared->theirs); /* SITE parent-wants */
	return 0;
}
