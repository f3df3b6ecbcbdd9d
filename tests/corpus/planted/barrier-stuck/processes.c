/* SPDX-License-Identifier: MIT */
/* processes.c - a child process ends before it comes to the barrier where its parent waits. */
/* expect: barrier-stuck threads=parent objects=barrier sites=waits */
/* run: hangs 1 */
#include "corpus.h"

int main(void)
{
	pthread_barrierattr_t attr;
	pthread_barrier_t *barrier = mmap(NULL, sizeof(*barrier), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	i_am("parent");
	object("barrier", barrier);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attr, 2);
	child = fork();
	if (child == 0)
		return 1;
	waitpid(child, NULL, 0);
	for_ever();
	pthread_barrier_wait(barrier); /* SITE waits */
	return 0;
}
