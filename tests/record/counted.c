/* SPDX-License-Identifier: MIT */
/* counted.c - locks and unlocks in threads, and stores the counts in a file, so that a kill cannot hide them. */
/*
 * counted FILE THREADS OPERATIONS
 *
 * Each thread has its own mutex; after each pair of operations it stores their number in its word of FILE. With 0
 * operations it goes on forever.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint64_t *word;
static uint64_t operations;
static pthread_mutex_t mutex[64];

static void *work(void *argument)
{
	uintptr_t number = (uintptr_t)argument;

	for (uint64_t i = 1; !operations || i <= operations; i++) {
		pthread_mutex_lock(&mutex[number]);
		pthread_mutex_unlock(&mutex[number]);
		word[number * 8] = i;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t id[64];
	unsigned long threads, i;
	int fd;

	if (argc < 4)
		return 2;
	threads = strtoul(argv[2], NULL, 10);
	operations = strtoull(argv[3], NULL, 10);
	if (!operations)
		alarm(240); /* ends if the test fails to end it: traces grow */
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (threads > 64 || fd < 0 || ftruncate(fd, 4096) < 0)
		return 2;
	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (i = 0; i < threads; i++) {
		pthread_mutex_init(&mutex[i], NULL);
		if (pthread_create(&id[i], NULL, work, (void *)(uintptr_t)i))
			return 2;
	}
	for (i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	return 0;
}
