/* fight.c - a thread waits for a stream, another for the allocator, and two threads compete for the allocator. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCKS 400
#define BLOCK 65536
#define ROUNDS 20

static int main_tid, other_tid, may_allocate, over;

/* The kernel's state of a thread; neither allocates nor uses a stream. */
static int is_asleep(int tid)
{
	char path[64], text[256];
	const char *at = text;
	ssize_t length;
	int file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = open(path, O_RDONLY);
	length = file < 0 ? 0 : read(file, text, sizeof(text) - 1);
	close(file);
	text[length > 0 ? length : 0] = 0;
	while (*at && *at != ')')
		at++;
	return at[0] && at[1] && at[2] == 'S';
}

/* Returns when a thread sleeps; the thread has no other reason to sleep than the intended wait. */
static void until_asleep(int *tid)
{
	while (!__atomic_load_n(tid, __ATOMIC_ACQUIRE))
		sched_yield();
	while (!is_asleep(*tid))
		sched_yield();
}

static void *write_line(void *arg)
{
	__atomic_store_n(&other_tid, gettid(), __ATOMIC_RELEASE);
	puts("the other");
	return arg;
}

static void fight_for_stream(void)
{
	pthread_t thread;

	flockfile(stdout);
	pthread_create(&thread, NULL, write_line, NULL);
	until_asleep(&other_tid);
	puts("the first");
	funlockfile(stdout);
	pthread_join(thread, NULL);
}

/* A volatile pointer: otherwise the compiler would leave out both calls. */
static void allocate_and_free(void)
{
	void *volatile memory = malloc(4096);

	free(memory);
}

static void *allocate_once(void *arg)
{
	while (!__atomic_load_n(&may_allocate, __ATOMIC_ACQUIRE))
		sched_yield();
	__atomic_store_n(&other_tid, gettid(), __ATOMIC_RELEASE);
	allocate_and_free();
	return arg;
}

/* Lets the first thread go on when it sleeps with the arena and the other thread waits for the arena. */
static void *unblock(void *reader)
{
	char text[4096];

	until_asleep(&main_tid);
	__atomic_store_n(&may_allocate, 1, __ATOMIC_RELEASE);
	until_asleep(&other_tid);
	while (read(*(int *)reader, text, sizeof(text)) > 0)
		;
	return NULL;
}

/* malloc_stats() writes to a full pipe while it holds the arena's lock. */
static void fight_for_arena(void)
{
	pthread_t waiter, helper;
	char text[4096] = {0};
	int ends[2], kept = dup(STDERR_FILENO);

	if (kept < 0 || pipe(ends) || fcntl(ends[1], F_SETFL, O_NONBLOCK))
		abort();
	while (write(ends[1], text, sizeof(text)) > 0)
		;
	fcntl(ends[1], F_SETFL, 0);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	other_tid = 0;
	pthread_create(&waiter, NULL, allocate_once, NULL);
	pthread_create(&helper, NULL, unblock, &ends[0]);
	__atomic_store_n(&main_tid, gettid(), __ATOMIC_RELEASE);
	malloc_stats();
	dup2(kept, STDERR_FILENO);
	pthread_join(helper, NULL);
	pthread_join(waiter, NULL);
}

static void *allocate(void *arg)
{
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
		allocate_and_free();
	return arg;
}

/* The return of memory to the kernel takes long while the arena is locked. */
static void hurry_for_arena(void)
{
	static void *block[BLOCKS];
	pthread_t thread;
	int i;

	for (i = 0; i < BLOCKS; i++)
		block[i] = malloc(BLOCK);
	for (i = 0; i < BLOCKS; i += 2)
		free(block[i]);
	pthread_create(&thread, NULL, allocate, NULL);
	for (i = 0; i < ROUNDS; i++)
		malloc_trim(0);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	for (i = 1; i < BLOCKS; i += 2)
		free(block[i]);
}

int main(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 2 * BLOCK);
	fight_for_stream();
	fight_for_arena();
	hurry_for_arena();
	return 0;
}
