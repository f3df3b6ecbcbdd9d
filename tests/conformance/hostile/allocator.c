/* SPDX-License-Identifier: MIT */
/* allocator.c - a program with its own allocator, which locks, and calls dlsym. */
#include "work.h"

#include <dlfcn.h>
#include <stdint.h>

static char room[64 << 20] __attribute__((aligned(64)));
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls;

void *malloc(size_t size)
{
	char *given;

	pthread_mutex_lock(&lock);
	calls++;
	size = (size + 31) & ~(size_t)15;
	given = used + size <= sizeof(room) ? room + used : NULL;
	if (given) {
		used += size;
		memcpy(given, &size, sizeof(size));
		given += 16;
	}
	pthread_mutex_unlock(&lock);
	return given;
}

void free(void *memory)
{
	if (!memory)
		return;
	pthread_mutex_lock(&lock);
	calls++;
	pthread_mutex_unlock(&lock);
}

void *calloc(size_t count, size_t size)
{
	return malloc(count * size); /* never used twice, so zero */
}

void *realloc(void *memory, size_t size)
{
	void *now = malloc(size);
	size_t old;

	if (memory && now) {
		memcpy(&old, (char *)memory - 16, sizeof(old));
		memcpy(now, memory, old - 16 < size ? old - 16 : size);
	}
	return now;
}

static void *allocate(void *arg)
{
	void *volatile given; /* otherwise the compiler would remove the allocation */
	int i;

	for (i = 0; i < 1000; i++) {
		given = malloc(16);
		free(given);
	}
	return arg;
}

int main(void)
{
	pthread_t thread[4];
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, allocate, NULL);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	printf("%s %s\n", calls >= 8000 ? "allocated" : "too few", dlsym(RTLD_DEFAULT, "nothing") ? "?" : "nothing");
	return 0;
}
