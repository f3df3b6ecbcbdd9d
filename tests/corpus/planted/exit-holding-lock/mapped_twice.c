/* SPDX-License-Identifier: MIT */
/* mapped_twice.c - a process is killed with a lock in memory that its parent maps at another address. */
/* expect: exit-holding-lock threads=child,parent sites=locks,asks */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t *map(int file)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	return (pthread_mutex_t *)((char *)at + 256);
}

int main(void)
{
	int file = memfd_create("locks", 0), ready[2];
	pthread_mutexattr_t attr;
	pthread_mutex_t *lock;
	char byte = 0;
	pid_t child;

	if (file < 0 || ftruncate(file, 4096) || pipe(ready))
		return 1;
	lock = map(file);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(lock, &attr);
	child = fork();
	if (child == 0) {
		i_am("child");
		pthread_mutex_lock(map(file)); /* SITE locks */
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	i_am("parent");
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for_ever();
	pthread_mutex_lock(lock); /* SITE asks */
	return 0;
}
