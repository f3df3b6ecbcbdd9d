/* fight.c - threads that wait for a stream and for the allocator, until they surely have. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 400
#define BLOCK 65536
#define ENOUGH 5

static int done, writer;

static int is_over(time_t end)
{
	return time(NULL) >= end;
}

/* How often the calling thread went to sleep: here, for a lock. */
static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/* The state of a thread, as the kernel has it. */
static int is_asleep(int tid)
{
	char path[64], text[256];
	FILE *file;
	int asleep = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (file && fgets(text, sizeof(text), file)) {
		char *name_end = text;

		while (*name_end && *name_end != ')')
			name_end++;
		asleep = name_end[0] && name_end[1] && name_end[2] == 'S';
	}
	if (file)
		fclose(file);
	return asleep;
}

static void *write_line(void *arg)
{
	__atomic_store_n(&writer, gettid(), __ATOMIC_RELEASE);
	puts("the other");
	return arg;
}

/* The stream is held until the other thread sleeps: it has nothing else to sleep for. */
static void fight_for_stream(time_t end)
{
	pthread_t thread;
	int tid;

	flockfile(stdout);
	pthread_create(&thread, NULL, write_line, NULL);
	while (!(tid = __atomic_load_n(&writer, __ATOMIC_ACQUIRE)) && !is_over(end))
		usleep(1000);
	while (!is_asleep(tid) && !is_over(end))
		usleep(1000);
	puts("the first");
	funlockfile(stdout);
	pthread_join(thread, NULL);
}

static void *allocate(void *arg)
{
	time_t end = time(NULL) + 60;
	long before = sleeps();

	while (sleeps() - before < ENOUGH && !is_over(end)) {
		void *volatile memory = malloc(4096);

		free(memory);
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	return arg;
}

/* Giving memory back to the kernel takes long, with the arena locked. */
static void fight_for_arena(void)
{
	static void *block[BLOCKS];
	pthread_t thread;
	int i;

	for (i = 0; i < BLOCKS; i++)
		block[i] = malloc(BLOCK);
	for (i = 0; i < BLOCKS; i += 2)
		free(block[i]);
	pthread_create(&thread, NULL, allocate, NULL);
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		malloc_trim(0);
	pthread_join(thread, NULL);
	for (i = 1; i < BLOCKS; i += 2)
		free(block[i]);
}

int main(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 2 * BLOCK);
	fight_for_stream(time(NULL) + 60);
	fight_for_arena();
	return 0;
}
