/* SPDX-License-Identifier: MIT */
/* children_of_threads.c - threads run other programs, by fork and exec, posix_spawn and system, with a lock held. */
#include "corpus.h"
#include <spawn.h>

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *how)
{
	char *const argv[] = {"true", NULL};
	int status = 0;
	pid_t child = 0;

	pthread_mutex_lock(&lock);
	switch (*(const char *)how) {
	case 'f':
		child = fork();
		if (child == 0) {
			execvp("true", argv);
			_exit(1);
		}
		break;
	case 's':
		if (posix_spawnp(&child, "true", NULL, NULL, argv, environ))
			abort();
		break;
	default:
		status = system("true");
	}
	if (child)
		waitpid(child, &status, 0);
	pthread_mutex_unlock(&lock);
	return status ? how : NULL;
}

int main(void)
{
	pthread_t threads[] = {start(run, "f"), start(run, "s"), start(run, "x")};

	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
