/* SPDX-License-Identifier: MIT */
/* mutex_kinds.c - the results of every kind of mutex: free, held, held by the caller, left by a thread that died. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct way {
	const char *name;
	int (*lock)(pthread_mutex_t *mutex);
};

static struct timespec soon(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += 20000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static int timed(pthread_mutex_t *mutex)
{
	struct timespec until = soon(CLOCK_REALTIME);

	return pthread_mutex_timedlock(mutex, &until);
}

static int clocked(pthread_mutex_t *mutex)
{
	struct timespec until = soon(CLOCK_MONOTONIC);

	return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
}

/* The routine reads it only if it would block. */
static int bad_deadline(pthread_mutex_t *mutex)
{
	struct timespec never = {0, -1};

	return pthread_mutex_timedlock(mutex, &never);
}

static const struct way ways[] = {
	{"lock", pthread_mutex_lock}, {"timed", timed}, {"clock", clocked}, {"bad", bad_deadline}};

static void say(const char *what, int result)
{
	printf(" %s=%s", what, result ? strerrorname_np(result) : "0");
	fflush(stdout);
}

struct owner {
	pthread_mutex_t *mutex;
	pthread_barrier_t *have, *let_go;
};

static void *hold(void *arg)
{
	struct owner *owner = arg;

	pthread_mutex_lock(owner->mutex);
	pthread_barrier_wait(owner->have);
	pthread_barrier_wait(owner->let_go);
	pthread_mutex_unlock(owner->mutex);
	return NULL;
}

static void *die(void *mutex)
{
	pthread_mutex_lock(mutex);
	return NULL;
}

/* May @way be used on a mutex that another thread, or a dead thread, has? Only if the call returns. */
static int comes_back(const struct way *way)
{
	return way->lock != pthread_mutex_lock;
}

static void try_held(pthread_mutex_t *mutex, const struct way *way)
{
	pthread_barrier_t have, let_go;
	struct owner owner = {mutex, &have, &let_go};
	pthread_t thread;

	pthread_barrier_init(&have, NULL, 2);
	pthread_barrier_init(&let_go, NULL, 2);
	pthread_create(&thread, NULL, hold, &owner);
	pthread_barrier_wait(&have);
	if (comes_back(way))
		say("held", way->lock(mutex));
	pthread_barrier_wait(&let_go);
	pthread_join(thread, NULL);
}

static void try_dead(pthread_mutex_t *mutex, const struct way *way, int robust)
{
	pthread_t thread;
	int i, result;

	pthread_create(&thread, NULL, die, mutex);
	pthread_join(thread, NULL);
	if (!robust && !comes_back(way))
		return;
	say("dead", result = way->lock(mutex));
	if (result != EOWNERDEAD)
		return;
	say("consistent", pthread_mutex_consistent(mutex));
	say("unlock", pthread_mutex_unlock(mutex));
	say("again", way->lock(mutex));
	say("unlock", pthread_mutex_unlock(mutex));
	pthread_create(&thread, NULL, die, mutex);
	pthread_join(thread, NULL);
	say("dead", way->lock(mutex));
	say("unlock", pthread_mutex_unlock(mutex));
	for (i = 0; i < 3; i++)
		say("lost", way->lock(mutex));
	say("destroy", pthread_mutex_destroy(mutex));
}

static void try_kind(const pthread_mutexattr_t *attr, int type, int robust, const struct way *way)
{
	pthread_mutex_t mutex;
	int result = pthread_mutex_init(&mutex, attr);

	if (result) {
		say("init", result);
		return;
	}
	say("free", result = way->lock(&mutex));
	if (result == 0) {
		if (comes_back(way) || type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
			say("own", way->lock(&mutex));
		say("unlock", pthread_mutex_unlock(&mutex));
		say("unlock", type == PTHREAD_MUTEX_RECURSIVE ? pthread_mutex_unlock(&mutex) : 0);
		try_held(&mutex, way);
		try_dead(&mutex, way, robust);
	}
}

int main(void)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
				    PTHREAD_MUTEX_ADAPTIVE_NP};
	static const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT};
	struct sched_param fifo = {.sched_priority = 1};
	unsigned int type, protocol, robust, way;

	/* without it a mutex with a ceiling cannot be taken */
	sched_setscheduler(0, SCHED_FIFO, &fifo);
	for (type = 0; type < 4; type++)
		for (protocol = 0; protocol < 3; protocol++)
			for (robust = 0; robust < 2; robust++)
				for (way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
					pthread_mutexattr_t attr;

					pthread_mutexattr_init(&attr);
					pthread_mutexattr_settype(&attr, types[type]);
					pthread_mutexattr_setprotocol(&attr, protocols[protocol]);
					pthread_mutexattr_setrobust(&attr, robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
					printf("type %d protocol %d robust %u %s:", types[type], protocols[protocol], robust,
					       ways[way].name);
					try_kind(&attr, types[type], (int)robust, &ways[way]);
					printf("\n");
				}
	return 0;
}
