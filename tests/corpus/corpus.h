/* SPDX-License-Identifier: MIT */
/*
 * corpus.h - for programs with a known bug, or with none. They print the names of threads and objects to
 * standard output. Their threads meet by means that neither a tracer nor a checker takes for a lock.
 */
#ifndef CORPUS_H
#define CORPUS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../native/dead_owners.h"

#define CORPUS static __attribute__((unused, noinline))

/* A program that hangs does not outlive its test. */
static __attribute__((constructor)) void end_some_day(void)
{
	alarm(300);
}

/* One line on standard output, written at once: a killed program has said it. */
CORPUS __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
	char line[128];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		abort();
}

/* The program needs owners that die; an emulator of a processor may not hand their locks on. */
CORPUS void needs_dead_owners_marked(void)
{
	if (!dead_owners_are_marked())
		exit(77);
}

/* The program needs main's stack behind all modules, where PTT knows it; an emulator has it before them. */
CORPUS void needs_stack_behind_modules(const void *on_stack)
{
	static char in_module;

	if ((uintptr_t)on_stack < (uintptr_t)&in_module)
		exit(77);
}

/* The calling thread has this name in the expected finding. */
CORPUS void i_am(const char *name)
{
	say("thread %s %d\n", name, gettid());
}

/* The object has its own name in the expected finding. */
#define OBJECT(object) say("object %s %p\n", #object, (void *)&(object))
CORPUS void object(const char *name, const void *at)
{
	say("object %s %p\n", name, at);
}

/* The next call of this thread never returns; the test may kill the process once all threads have said so. */
CORPUS void for_ever(void)
{
	say("for ever %d\n", getpid());
}

CORPUS void nap_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	/* a call that PTT does not record: a thread that naps with a lock would be a finding */
	while (syscall(SYS_nanosleep, &t, &t) && errno == EINTR)
		;
}

/* A thread has arrived at a place, */
CORPUS void arrive(int *place)
{
	__atomic_fetch_add(place, 1, __ATOMIC_ACQ_REL);
}

/* or waits until so many threads have arrived, */
CORPUS void await(const int *place, int count)
{
	while (__atomic_load_n(place, __ATOMIC_ACQUIRE) < count)
		nap_ms(1);
}

/* or does both. */
CORPUS void meet(int *place, int count)
{
	arrive(place);
	await(place, count);
}

CORPUS void set_tid(int *tid)
{
	__atomic_store_n(tid, gettid(), __ATOMIC_RELEASE);
}

/* State and count of voluntary switches of a thread, as a text to compare; empty if the thread has ended. */
CORPUS void thread_state(int tid, char *text, size_t size)
{
	char path[64];
	ssize_t got = -1;
	char *state, *switches;
	int file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		got = read(file, text, size - 1);
		close(file);
	}
	text[got > 0 ? got : 0] = '\0';
	state = strstr(text, "State:");
	switches = strstr(text, "\nvoluntary_ctxt_switches:");
	if (!state || !switches) {
		text[0] = '\0';
		return;
	}
	memmove(text, state + 7, 1);
	memmove(text + 1, switches, strlen(switches) + 1);
}

/* Waits until a thread sleeps for good; the thread sets its tid just before it blocks. */
CORPUS void await_asleep(const int *tid)
{
	char before[4096] = "", now[4096];
	int same = 0;

	await(tid, 1);
	while (same < 3) {
		nap_ms(5);
		thread_state(*tid, now, sizeof(now));
		same = now[0] == 'S' && strcmp(now, before) == 0 ? same + 1 : 0;
		memcpy(before, now, sizeof(now));
	}
}

CORPUS int threads_now(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	for (struct dirent *task = readdir(tasks); task; task = readdir(tasks))
		count += task->d_name[0] != '.';
	closedir(tasks);
	return count;
}

/* Number of threads of the emulator of the processor. */
static int strange_threads;

__attribute__((constructor)) CORPUS void count_strange_threads(void)
{
	strange_threads = threads_now() - 1;
}

/* Waits until the process has at most so many threads. */
CORPUS void await_threads(int most)
{
	while (threads_now() - strange_threads > most)
		nap_ms(1);
}

CORPUS struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += ms % 1000 * 1000000;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

CORPUS pthread_t start(void *(*routine)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, routine, argument))
		abort();
	return thread;
}

CORPUS void join(pthread_t thread)
{
	if (pthread_join(thread, NULL))
		abort();
}

/* A mutex of a type of pthread_mutexattr_settype. */
CORPUS void init_mutex(pthread_mutex_t *mutex, int type)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type);
	pthread_mutex_init(mutex, &attr);
	pthread_mutexattr_destroy(&attr);
}

#endif
