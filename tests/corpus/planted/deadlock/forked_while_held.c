/* SPDX-License-Identifier: MIT */
/* forked_while_held.c - a process forks while another thread holds a lock; the child asks for that lock. */
/* expect: deadlock threads=child,holder objects=settings sites=forks,locks */
/* run: hangs 1 */
/* status: 0 */
#include "corpus.h"

static pthread_mutex_t settings = PTHREAD_MUTEX_INITIALIZER;
static int held, forked;

static void *holder(void *unused)
{
	i_am("holder");
	pthread_mutex_lock(&settings);
	arrive(&held);
	await(&forked, 1);
	pthread_mutex_unlock(&settings);
	return unused;
}

int main(void)
{
	pthread_t thread = start(holder, NULL);
	pid_t child;

	OBJECT(settings);
	await(&held, 1);
	child = fork(); /* SITE forks */
	if (child == 0) {
		i_am("child");
		for_ever();
		pthread_mutex_lock(&settings); /* SITE locks */
		pthread_mutex_unlock(&settings);
		_exit(0);
	}
	arrive(&forked);
	join(thread);
	waitpid(child, NULL, 0);
	return 0;
}
