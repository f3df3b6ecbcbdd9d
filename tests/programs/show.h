/* SPDX-License-Identifier: MIT */
/* show.h - for test programs: calls with what they returned and left in errno, and small steps in time. */
#ifndef SHOW_H
#define SHOW_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

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
	struct timespec t = {.tv_nsec = 60 * 1000 * 1000};

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

static int arrived;

/* A thread that is about to block says so, */
static inline void arrive(void)
{
	__atomic_fetch_add(&arrived, 1, __ATOMIC_RELEASE);
}

/* and another lets it get there. */
static inline void let_block(void)
{
	while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) == 0)
		nap();
	__atomic_fetch_sub(&arrived, 1, __ATOMIC_RELAXED);
	nap();
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
