/* SPDX-License-Identifier: MIT */
/* cases.c - times operations of the thread library: cases CASE THREADS COUNT prints ns per operation, twice. */
/*
 * The first number is wall time, the second is the processor time of the working threads. If each thread has its own
 * objects, the numbers are means over the threads. If the threads share an object, the numbers count the operations of
 * all threads together. Every thread does a tenth of its work before the clock starts.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64
#define SECTION_NS 1000

struct worker {
	int number;
	double wall, cpu;
};

struct timed_case {
	const char *name;
	void (*run)(const struct worker *self, long n);
	int shared;
};

static const struct timed_case *chosen;
static long count;
static int threads;
static pthread_barrier_t go;

static pthread_mutex_t shared_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t meeting;
static int turn;

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- a thread's own objects: no thread ever waits ---- */

static void mutex(const struct worker *self, long n)
{
	pthread_mutex_t *lock = aligned_alloc(256, 256);

	(void)self;
	pthread_mutex_init(lock, NULL);
	while (n--) {
		pthread_mutex_lock(lock);
		pthread_mutex_unlock(lock);
	}
	pthread_mutex_destroy(lock);
	free(lock);
}

/* The same operation at the end of some nested calls, all in the call stack. */
static __attribute__((noinline)) void call(int left, const struct worker *self, long n)
{
	if (left)
		call(left - 1, self, n);
	else
		mutex(self, n);
	__asm__ volatile("");
}

/* Stacks of 8 and of 16 frames, with the first frames of the thread. */
static void deep_8(const struct worker *self, long n)
{
	call(2, self, n);
}

static void deep_16(const struct worker *self, long n)
{
	call(10, self, n);
}

#ifdef GLIB
typedef struct {
	void *word;
} GMutex;
void g_mutex_lock(GMutex *mutex);
void g_mutex_unlock(GMutex *mutex);

static void gmutex(const struct worker *self, long n)
{
	GMutex *lock = calloc(1, 256);

	(void)self;
	while (n--) {
		g_mutex_lock(lock);
		g_mutex_unlock(lock);
	}
	free(lock);
}
#endif

static void sem(const struct worker *self, long n)
{
	sem_t *tokens = aligned_alloc(256, 256);

	(void)self;
	sem_init(tokens, 0, 1);
	while (n--) {
		sem_wait(tokens);
		sem_post(tokens);
	}
	sem_destroy(tokens);
	free(tokens);
}

static void rdlock(const struct worker *self, long n)
{
	pthread_rwlock_t *lock = aligned_alloc(256, 256);

	(void)self;
	pthread_rwlock_init(lock, NULL);
	while (n--) {
		pthread_rwlock_rdlock(lock);
		pthread_rwlock_unlock(lock);
	}
	pthread_rwlock_destroy(lock);
	free(lock);
}

static void wrlock(const struct worker *self, long n)
{
	pthread_rwlock_t *lock = aligned_alloc(256, 256);

	(void)self;
	pthread_rwlock_init(lock, NULL);
	while (n--) {
		pthread_rwlock_wrlock(lock);
		pthread_rwlock_unlock(lock);
	}
	pthread_rwlock_destroy(lock);
	free(lock);
}

static void *nothing(void *unused)
{
	return unused;
}

static void create(const struct worker *self, long n)
{
	(void)self;
	while (n--) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, nothing, NULL))
			abort();
		pthread_join(thread, NULL);
	}
}

/* ---- objects that all threads share ---- */

static void contended(const struct worker *self, long n)
{
	(void)self;
	while (n--) {
		double end;

		pthread_mutex_lock(&shared_mutex);
		for (end = now(CLOCK_MONOTONIC) + SECTION_NS; now(CLOCK_MONOTONIC) < end;)
			;
		pthread_mutex_unlock(&shared_mutex);
	}
}

static void cond(const struct worker *self, long n)
{
	while (n--) {
		pthread_mutex_lock(&shared_mutex);
		while (turn != self->number)
			pthread_cond_wait(&turned, &shared_mutex);
		turn = (turn + 1) % threads;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&shared_mutex);
	}
}

static void barrier(const struct worker *self, long n)
{
	(void)self;
	while (n--)
		pthread_barrier_wait(&meeting);
}

static const struct timed_case cases[] = {
	{"mutex", mutex, 0},         {"sem", sem, 0},   {"rdlock", rdlock, 0},   {"wrlock", wrlock, 0}, {"create", create, 0},
	{"deep-8", deep_8, 0},       {"deep-16", deep_16, 0},
#ifdef GLIB
	{"gmutex", gmutex, 0},
#endif
	{"contended", contended, 1}, {"cond", cond, 1}, {"barrier", barrier, 1},
};

/* Put each thread on its own processor: otherwise, the scheduler does so in one run and not in the next. */
static void pin(int number)
{
	cpu_set_t allowed, one;
	int cpu, left;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) || threads > CPU_COUNT(&allowed))
		return;
	for (cpu = 0, left = number; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && left-- == 0)
			break;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* The calls that count: benchmarks/instructions.py counts instructions from here on, and only in this function's calls. */
static __attribute__((noinline)) void counted(const struct worker *self)
{
	chosen->run(self, count);
	__asm__ volatile("");
}

static void *work(void *argument)
{
	struct worker *self = argument;
	double wall, cpu;

	if (threads > 1)
		pin(self->number);
	pthread_barrier_wait(&go);
	chosen->run(self, count / 10);
	wall = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_THREAD_CPUTIME_ID);
	counted(self);
	self->cpu = (now(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)count;
	self->wall = (now(CLOCK_MONOTONIC) - wall) / (double)count;
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker worker[THREADS_MAX];
	pthread_t thread[THREADS_MAX];
	double wall = 0, cpu = 0;
	int i;

	for (i = 0; argc == 4 && i < (int)(sizeof(cases) / sizeof(*cases)); i++)
		if (!strcmp(cases[i].name, argv[1]))
			chosen = &cases[i];
	threads = argc == 4 ? atoi(argv[2]) : 0;
	count = argc == 4 ? atol(argv[3]) : 0;
	if (!chosen || threads < 1 || threads > THREADS_MAX || count < 1)
		return 2;
	pthread_barrier_init(&go, NULL, (unsigned int)threads);
	pthread_barrier_init(&meeting, NULL, (unsigned int)threads);
	for (i = 0; i < threads; i++) {
		worker[i].number = i;
		pthread_create(&thread[i], NULL, work, &worker[i]);
	}
	for (i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		wall += worker[i].wall / threads;
		cpu += worker[i].cpu / threads;
	}
	/* Threads that share an object did `threads` times as many operations together. */
	if (chosen->shared && chosen->run != barrier)
		wall /= threads;
	printf("%.3f %.3f\n", wall, cpu);
	return 0;
}
