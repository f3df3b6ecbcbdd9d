/* SPDX-License-Identifier: MIT */
/* in_child.c - a child process forgets its thread. */
/* expect: thread-leak threads=worker */
#include "corpus.h"

static void *worker(void *unused)
{
	i_am("worker");
	return unused;
}

int main(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		start(worker, NULL);
		await_threads(1);
		return 0;
	}
	waitpid(child, &status, 0);
	return status;
}
