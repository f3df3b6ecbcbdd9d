/* SPDX-License-Identifier: MIT */
/* equals.c - two threads of the same real-time priority wait for each other's lock; a thread of lower priority waits for a thread of higher priority. */
#include "corpus.h"
#include <sched.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int turn, tids[2];

struct rank {
	int priority, turn;
};

static void *run(void *argument)
{
	const struct rank *rank = argument;
	struct sched_param param = {.sched_priority = rank->priority};

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		exit(77);
	await(&turn, rank->turn);
	if (rank->turn)
		set_tid(&tids[rank->turn - 1]);
	pthread_mutex_lock(&lock);
	arrive(&turn);
	if (rank->turn < 2)
		await_asleep(&tids[rank->turn]);
	nap_ms(10);
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	/* The first thread holds while the second waits; the second holds while the third waits. */
	static struct rank ranks[] = {{20, 0}, {20, 1}, {5, 2}};
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		threads[i] = start(run, &ranks[i]);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
