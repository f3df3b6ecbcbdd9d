/* SPDX-License-Identifier: MIT */
/* press.c - threads that take no lock of the program, and yet wait: for the allocator, and for standard output. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define SHEETS 5000
#define SIZE 3000 /* too large for a thread's own cache */

static pthread_barrier_t start;

static void *print_sheets(void *arg)
{
	long number = (long)arg;
	int i;

	pthread_barrier_wait(&start);
	for (i = 0; i < SHEETS; i++) {
		char *sheet = malloc(SIZE);

		if (!sheet)
			abort();
		memset(sheet, 'a' + (int)number, SIZE - 1);
		sheet[SIZE - 1] = '\0';
		printf("%ld: %.60s\n", number, sheet);
		free(sheet);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	long i;

	/* as on a machine with many more threads than processors */
	mallopt(M_ARENA_MAX, 1);
	pthread_barrier_init(&start, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, print_sheets, (void *)i))
			return 1;
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
