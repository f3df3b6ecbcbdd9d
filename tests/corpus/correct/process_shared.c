/* SPDX-License-Identifier: MIT */
/* process_shared.c - parent and child work at one queue in shared memory, with its mutex and its conditions. */
#include "corpus.h"

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	int item;
};

static void run(struct queue *queue, int put)
{
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&queue->lock);
		while (queue->item == put)
			pthread_cond_wait(put ? &queue->emptied : &queue->filled, &queue->lock);
		queue->item = put;
		pthread_cond_signal(put ? &queue->filled : &queue->emptied);
		pthread_mutex_unlock(&queue->lock);
	}
}

int main(void)
{
	struct queue *queue = mmap(NULL, sizeof(*queue), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t mutex_attr;
	pthread_condattr_t cond_attr;
	int status;
	pid_t child;

	pthread_mutexattr_init(&mutex_attr);
	pthread_mutexattr_setpshared(&mutex_attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&queue->lock, &mutex_attr);
	pthread_condattr_init(&cond_attr);
	pthread_condattr_setpshared(&cond_attr, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&queue->filled, &cond_attr);
	pthread_cond_init(&queue->emptied, &cond_attr);
	child = fork();
	if (child == 0) {
		run(queue, 0);
		return 0;
	}
	run(queue, 1);
	waitpid(child, &status, 0);
	pthread_cond_destroy(&queue->filled);
	pthread_cond_destroy(&queue->emptied);
	pthread_mutex_destroy(&queue->lock);
	return status;
}
