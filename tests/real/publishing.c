/* SPDX-License-Identifier: MIT */
/* publishing.c - locks in a known order, and publishes the number of committed events. */
/*
 * publishing FILE THREADS
 *
 * Works until it is killed. Each thread takes and releases its MUTEXES mutexes in turn. After each acquisition and each release
 * it stores the number of such events in FILE, so that no kill can hide an event. FILE is an array of struct progress. Its
 * first element has the process id and the number of threads that have started.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MUTEXES 251
#define THREADS 16

struct progress {
	volatile uint64_t id;
	volatile uint64_t first; /* address of the first mutex */
	volatile uint64_t events;
	uint64_t pad[5];
};

static struct progress *progress;
static pthread_mutex_t mutex[THREADS][MUTEXES];

static void *work(void *argument)
{
	uintptr_t number = (uintptr_t)argument;
	struct progress *mine = &progress[number + 1];
	uint64_t events = 0;

	mine->first = (uintptr_t)mutex[number];
	mine->id = (uint64_t)syscall(SYS_gettid);
	__atomic_fetch_add(&progress->events, 1, __ATOMIC_SEQ_CST);
	for (unsigned int i = 0;; i = (i + 1) % MUTEXES) {
		pthread_mutex_lock(&mutex[number][i]);
		mine->events = ++events;
		pthread_mutex_unlock(&mutex[number][i]);
		mine->events = ++events;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	uintptr_t threads;
	int fd;

	if (argc < 3)
		return 2;
	threads = strtoul(argv[2], NULL, 10);
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (threads > THREADS || fd < 0 || ftruncate(fd, 4096))
		return 2;
	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	progress->id = (uint64_t)getpid();
	for (uintptr_t i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i))
			return 2;
	pthread_join(thread[0], NULL);
	return 0;
}
