/* SPDX-License-Identifier: MIT */
/* show.h - for test programs: calls with what they returned and left in errno, and threads that surely block. */
#ifndef SHOW_H
#define SHOW_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* errno has a value that nobody returns, so that a function that leaves it alone shows. */
#define SHOW(call)                                                           \
	do {                                                                 \
		long result_;                                                \
                                                                             \
		errno = 777;                                                 \
		result_ = (long)(call);                                      \
		printf("%s = %ld, errno %d\n", #call, result_, errno);       \
	} while (0)

static inline void nap(void)
{
	struct timespec t = {0, 1000 * 1000};

	nanosleep(&t, NULL);
}

/* How many threads the process has: a detached one is over when it is none of them any more. */
static inline int threads_alive(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	for (struct dirent *task = readdir(tasks); task; task = readdir(tasks))
		count += task->d_name[0] != '.';
	closedir(tasks);
	return count;
}

/* Who is about to block, in the order in which they said so. */
static int arrivals[64];
static int arrived, let_go;

/* A thread that is about to block says so, */
static inline void arrive(void)
{
	int place = __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);

	__atomic_store_n(&arrivals[place], gettid(), __ATOMIC_RELEASE);
}

/* The next one that has said so; the threads that wait for them take turns. */
static inline int next_arrival(void)
{
	int *place = &arrivals[let_go++];

	while (!__atomic_load_n(place, __ATOMIC_ACQUIRE))
		nap();
	return *place;
}

/* Waits until the kernel says that a thread sleeps. Allocates nothing, for which that thread could have to wait. */
static inline void await_asleep(int tid)
{
	char path[64], text[256], *state = NULL;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	for (;;) {
		int file = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t got = file < 0 ? -1 : read(file, text, sizeof(text) - 1);

		if (file >= 0)
			close(file);
		if (got <= 0)
			return; /* it is over */
		text[got] = '\0';
		state = strrchr(text, ')');
		if (state && state[1] && state[2] == 'S')
			return;
		nap();
	}
}

/* and another lets it get there: it has nothing else to sleep for. */
static inline void let_block(void)
{
	await_asleep(next_arrival());
}

/* The same of one that spins: it has done nothing else for some time of its own. */
static inline void let_spin(pthread_t thread)
{
	struct timespec now, since;
	clockid_t clock;

	next_arrival();
	pthread_getcpuclockid(thread, &clock);
	clock_gettime(clock, &since);
	do {
		nap();
		clock_gettime(clock, &now);
	} while ((now.tv_sec - since.tv_sec) * 1000000000L + now.tv_nsec - since.tv_nsec < 5000000);
}

static inline struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += ms % 1000 * 1000000;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static const struct timespec long_ago __attribute__((unused)) = {.tv_sec = 1};
static const struct timespec not_a_time __attribute__((unused)) = {.tv_sec = 1, .tv_nsec = 1000000000};

#endif
