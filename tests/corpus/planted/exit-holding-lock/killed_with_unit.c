/* SPDX-License-Identifier: MIT */
/* killed_with_unit.c - a process is killed while it holds a named semaphore that serves as a lock. */
/* expect: exit-holding-lock threads=child,parent sites=takes,asks */
/* run: hangs 1 */
#include "corpus.h"

int main(void)
{
	int ready[2];
	char name[32], byte = 0;
	sem_t *gate;
	pid_t child;

	snprintf(name, sizeof(name), "/gate-%d", getpid());
	gate = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
	if (gate == SEM_FAILED || sem_unlink(name) || pipe(ready))
		return 1;
	child = fork();
	if (child == 0) {
		i_am("child");
		sem_wait(gate); /* SITE takes */
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
	sem_wait(gate); /* SITE asks */
	return 0;
}
