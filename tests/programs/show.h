/* SPDX-License-Identifier: MIT */
/* show.h - for test programs: prints calls with their results and errno, and makes threads that surely block. */
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

/* errno starts with a value that no function sets, which shows functions that leave errno unchanged. */
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

/* The number of threads of the process: a detached thread has ended when the number drops. */
static inline int threads_alive(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	for (struct dirent *task = readdir(tasks); task; task = readdir(tasks))
		count += task->d_name[0] != '.';
	closedir(tasks);
	return count;
}

/* The threads that are about to block, in the order of their announcements. */
static int arrivals[64];
static int arrived, let_go;

/* A thread announces that it is about to block, */
static inline void arrive(void)
{
	int place = __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);

	__atomic_store_n(&arrivals[place], gettid(), __ATOMIC_RELEASE);
}

/* The next thread that has announced itself; the threads that wait for them take turns. */
static inline int next_arrival(void)
{
	int *place = &arrivals[let_go++];

	while (!__atomic_load_n(place, __ATOMIC_ACQUIRE))
		nap();
	return *place;
}

/* Waits until the kernel says that a thread sleeps. Allocates nothing: that thread could have to wait for the allocator. */
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
			return; /* the thread has ended */
		text[got] = '\0';
		state = strrchr(text, ')');
		if (state && state[1] && state[2] == 'S')
			return;
		nap();
	}
}

/* and another thread waits until it blocks: the thread has no other reason to sleep. */
static inline void let_block(void)
{
	await_asleep(next_arrival());
}

/* The same for a thread that spins: it has only spun for some of its own processor time. */
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
