/* SPDX-License-Identifier: MIT */
/* queue_reader.c - a reader of a queue ends with its semaphore, while a thread of the other process is busy. */
/* expect: exit-holding-lock threads=child,parent sites=takes,asks */
/* run: hangs 1 */
#include "corpus.h"

static sem_t *gate;

static void *busy(void *unused)
{
	for (;;)
		nap_ms(1000);
	return unused;
}

static void in_turn(void)
{
	sem_wait(gate);
	sem_post(gate);
}

int main(void)
{
	pthread_t thread;
	pid_t child;

	gate = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sem_init(gate, 1, 1);
	in_turn();
	child = fork();
	if (child == 0) {
		i_am("child");
		in_turn();
		sem_wait(gate); /* SITE takes */
		_exit(0);
	}
	pthread_create(&thread, NULL, busy, NULL);
	i_am("parent");
	waitpid(child, NULL, 0);
	for_ever();
	sem_wait(gate); /* SITE asks */
	return 0;
}
