/* SPDX-License-Identifier: MIT */
/* process_shared.c - parent and children share a queue with its mutex and conditions; each process maps the queue at another address. */
#include "corpus.h"

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	int item;
};

static struct queue *map(int file)
{
	return mmap(NULL, sizeof(struct queue), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static void run(struct queue *queue, int put, int times)
{
	for (int i = 0; i < times; i++) {
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
	int file = memfd_create("queue", 0), status, failed = 0;
	struct queue *queue;
	pthread_mutexattr_t mutex_attr;
	pthread_condattr_t cond_attr;

	if (file < 0 || ftruncate(file, sizeof(*queue)))
		return 1;
	queue = map(file);
	pthread_mutexattr_init(&mutex_attr);
	pthread_mutexattr_setpshared(&mutex_attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&queue->lock, &mutex_attr);
	pthread_condattr_init(&cond_attr);
	pthread_condattr_setpshared(&cond_attr, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&queue->filled, &cond_attr);
	pthread_cond_init(&queue->emptied, &cond_attr);
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			run(map(file), 0, 20);
			return 0;
		}
	run(queue, 1, 40);
	while (wait(&status) > 0)
		failed |= status;
	pthread_cond_destroy(&queue->filled);
	pthread_cond_destroy(&queue->emptied);
	pthread_mutex_destroy(&queue->lock);
	return failed;
}
