/* waits.c - threads that never continue, each case in another way: waits CASE. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t never = PTHREAD_COND_INITIALIZER;
sem_t empty;
static pthread_barrier_t meeting;
static pthread_t threads[3];

static void *cross(void *argument)
{
	pthread_mutex_t *first = argument, *second = first == &left ? &right : &left;

	pthread_mutex_lock(first);
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(second);
	return NULL;
}

static void *write_then_lock(void *argument)
{
	(void)argument;
	pthread_rwlock_wrlock(&table);
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(&left);
	return NULL;
}

static void *lock_then_read(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&left);
	pthread_barrier_wait(&meeting);
	pthread_rwlock_rdlock(&table);
	return NULL;
}

static void *join_other(void *argument)
{
	pthread_barrier_wait(&meeting);
	pthread_join(*(pthread_t *)argument, NULL);
	return NULL;
}

static void *twice(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&left);
	pthread_mutex_lock(&left);
	return NULL;
}

static void *leave_locked(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&left);
	return NULL;
}

static void *wait_for_ever(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&right);
	for (;;)
		pthread_cond_wait(&never, &right);
}

static void *take(void *argument)
{
	(void)argument;
	sem_wait(&empty);
	return NULL;
}

static void *serve(void *argument)
{
	(void)argument;
	for (;;)
		poll(NULL, 0, 1000);
}

static void *look_now_and_then(void *argument)
{
	struct timespec until;

	(void)argument;
	pthread_mutex_lock(&right);
	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 1000;
		pthread_cond_timedwait(&never, &right, &until);
	}
}

static void of_kind(int robust, int shared, int protocol)
{
	pthread_mutexattr_t kind;

	pthread_mutexattr_init(&kind);
	pthread_mutexattr_setrobust(&kind, robust);
	pthread_mutexattr_setpshared(&kind, shared);
	pthread_mutexattr_setprotocol(&kind, protocol);
	pthread_mutex_init(&left, &kind);
	pthread_mutex_init(&right, &kind);
}

static void start(int which, void *(*routine)(void *), void *argument)
{
	pthread_create(&threads[which], NULL, routine, argument);
}

int main(int count, char **arguments)
{
	const char *name = count > 1 ? arguments[1] : "";

	pthread_barrier_init(&meeting, NULL, 2);
	sem_init(&empty, 0, 0);
	if (!strcmp(name, "shared"))
		of_kind(PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_SHARED, PTHREAD_PRIO_NONE);
	else if (!strcmp(name, "robust"))
		of_kind(PTHREAD_MUTEX_ROBUST, PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_NONE);
	else if (!strcmp(name, "inherits"))
		of_kind(PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_INHERIT);

	if (strstr("mutexes shared robust inherits", name) && *name) {
		start(0, cross, &left);
		start(1, cross, &right);
	} else if (!strcmp(name, "rwlock")) {
		start(0, write_then_lock, NULL);
		start(1, lock_then_read, NULL);
	} else if (!strcmp(name, "joins")) {
		start(0, join_other, &threads[1]);
		start(1, join_other, &threads[0]);
	} else if (!strcmp(name, "self")) {
		start(0, twice, NULL);
	} else if (!strcmp(name, "ended")) {
		start(0, leave_locked, NULL);
		pthread_join(threads[0], NULL);
		start(0, leave_locked, NULL);
	} else if (!strcmp(name, "stuck")) {
		start(0, wait_for_ever, NULL);
		start(1, take, NULL);
	} else {
		start(0, serve, NULL);
		start(1, look_now_and_then, NULL);
	}
	pthread_join(threads[0], NULL);
	return 0;
}
