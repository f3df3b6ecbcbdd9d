/* SPDX-License-Identifier: MIT */
/* semaphore.c - sem_*: unnamed and named. */
#include "case.h"

#include <sys/resource.h>

static long value_of(sem_t *s)
{
	int value = -1;

	sem_getvalue(s, &value);
	return value;
}

static long post(void *s)
{
	return sem_post(s);
}

static long wait_child(void *s)
{
	return sem_wait(s);
}

static long post_soon(void *s)
{
	nap(10);
	return sem_post(s);
}

CASE(sem_init, "0", sem_init(memory(sizeof(sem_t)), 0, 0))
CASE(sem_init, "the greatest", sem_init(memory(sizeof(sem_t)), 0, SEM_VALUE_MAX))
CASE(sem_init, "one more", sem_init(memory(sizeof(sem_t)), 0, SEM_VALUE_MAX + 1u))
CASE(sem_init, "shared", sem_init(memory(sizeof(sem_t)), 1, 3))
CASE(sem_destroy, "unused", sem_destroy(sem(2)))
CASE(sem_getvalue, "5", value_of(sem(5)))

CASE(sem_wait, "1", sem_wait(sem(1)))
CASE(sem_wait, "posted meanwhile", sem_wait(meanwhile(post_soon, sem(0))))
CASE(sem_wait, "posted by a child", both(child(post, (void *)sem(0)), 0))
CASE(sem_wait, "taken by a child", child(wait_child, sem(1)))
CASE_PENDING(sem_wait, "1, cancelled before", sem_wait(sem(1)))
CASE_PENDING(sem_wait, "0, cancelled before", sem_wait(sem(0)))
CASE_CANCELLED(sem_wait, "cancelled while it waits", sem_wait(sem(0)))
CASE_SIGNALLED(sem_wait, "signalled while it waits", sem_wait(sem(0)))

CASE(sem_trywait, "1", sem_trywait(sem(1)))
CASE(sem_trywait, "0", sem_trywait(sem(0)))
CASE_PENDING(sem_trywait, "1, cancelled before", sem_trywait(sem(1)))
CASE_PENDING(sem_trywait, "0, cancelled before", sem_trywait(sem(0)))

CASE(sem_timedwait, "1", sem_timedwait(sem(1), later(CLOCK_REALTIME)))
CASE(sem_timedwait, "1, too late", sem_timedwait(sem(1), past()))
CASE(sem_timedwait, "1, no time", sem_timedwait(sem(1), no_time()))
CASE(sem_timedwait, "1, negative time", sem_timedwait(sem(1), negative()))
CASE(sem_timedwait, "0, too late", sem_timedwait(sem(0), past()))
CASE(sem_timedwait, "0, before the epoch", sem_timedwait(sem(0), before_epoch()))
CASE(sem_timedwait, "0, no time", sem_timedwait(sem(0), no_time()))
CASE(sem_timedwait, "0, in vain", sem_timedwait(sem(0), soon(CLOCK_REALTIME)))
CASE(sem_timedwait, "posted meanwhile", sem_timedwait(meanwhile(post_soon, sem(0)), later(CLOCK_REALTIME)))
CASE_PENDING(sem_timedwait, "1, cancelled before", sem_timedwait(sem(1), past()))
CASE_PENDING(sem_timedwait, "0, cancelled before", sem_timedwait(sem(0), past()))
CASE_PENDING(sem_timedwait, "0, no time, cancelled before", sem_timedwait(sem(0), no_time()))
CASE_CANCELLED(sem_timedwait, "cancelled while it waits", sem_timedwait(sem(0), later(CLOCK_REALTIME)))
CASE_SIGNALLED(sem_timedwait, "signalled while it waits", sem_timedwait(sem(0), later(CLOCK_REALTIME)))

CASE(sem_clockwait, "1", sem_clockwait(sem(1), CLOCK_MONOTONIC, past()))
CASE(sem_clockwait, "1, strange clock", sem_clockwait(sem(1), CLOCK_THREAD_CPUTIME_ID, past()))
CASE(sem_clockwait, "0, strange clock", sem_clockwait(sem(0), CLOCK_THREAD_CPUTIME_ID, past()))
CASE(sem_clockwait, "1, no time", sem_clockwait(sem(1), CLOCK_MONOTONIC, no_time()))
CASE(sem_clockwait, "0, in vain", sem_clockwait(sem(0), CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
CASE(sem_clockwait, "0, in vain, real time", sem_clockwait(sem(0), CLOCK_REALTIME, soon(CLOCK_REALTIME)))
CASE_PENDING(sem_clockwait, "1, cancelled before", sem_clockwait(sem(1), CLOCK_MONOTONIC, past()))
CASE_PENDING(sem_clockwait, "0, cancelled before", sem_clockwait(sem(0), CLOCK_MONOTONIC, later(CLOCK_MONOTONIC)))
CASE_CANCELLED(sem_clockwait, "cancelled while it waits", sem_clockwait(sem(0), CLOCK_MONOTONIC, later(CLOCK_MONOTONIC)))
CASE_SIGNALLED(sem_clockwait, "signalled while it waits", sem_clockwait(sem(0), CLOCK_MONOTONIC, later(CLOCK_MONOTONIC)))

static sem_t *posted;
CASE(sem_post, "0", sem_post(posted = sem(0)) ? -1 : value_of(posted))
CASE(sem_post, "the greatest", sem_post(sem(SEM_VALUE_MAX)))
CASE_PENDING(sem_post, "cancelled before", sem_post(sem(0)))

/* ------------------------------------------------------------ named */

static const char *name(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "/ptt-conformance-%d", (int)getpid());
	return text;
}

static const char *long_name(void)
{
	static char text[NAME_MAX + 10];

	memset(text, 'x', sizeof(text) - 1);
	text[0] = '/';
	return text;
}

static long opened(sem_t *s)
{
	return s != SEM_FAILED;
}

static sem_t *made(void)
{
	sem_unlink(name());
	errno = 777;
	return sem_open(name(), O_CREAT | O_EXCL, 0600, 2);
}

static long open_without_room(const char *what)
{
	struct rlimit before, now;
	int fd = dup(0), error;
	long result;

	getrlimit(RLIMIT_NOFILE, &before);
	now = before;
	now.rlim_cur = (rlim_t)fd;
	close(fd);
	setrlimit(RLIMIT_NOFILE, &now);
	result = opened(sem_open(what, O_CREAT, 0600, 1));
	error = errno;
	setrlimit(RLIMIT_NOFILE, &before);
	errno = error;
	return result;
}

static sem_t *first;
CASE(sem_open, "new", opened(made()))
CASE(sem_open, "there", opened(sem_open(name(), 0)))
CASE(sem_open, "there, to be made", opened(sem_open(name(), O_CREAT, 0600, 1)))
CASE(sem_open, "there, must be new", opened(sem_open(name(), O_CREAT | O_EXCL, 0600, 1)))
CASE(sem_open, "the same twice", first = sem_open(name(), 0), first == sem_open(name(), 0))
CASE(sem_open, "its value", value_of(first))
CASE(sem_open, "not there", sem_unlink(name()), errno = 777, opened(sem_open(name(), 0)))
CASE(sem_open, "too great a value", opened(sem_open("/ptt-conformance-none", O_CREAT, 0600, SEM_VALUE_MAX + 1u)))
CASE(sem_open, "no name", opened(sem_open("", O_CREAT, 0600, 1)))
CASE(sem_open, "a name with slashes", opened(sem_open("/a/b", O_CREAT, 0600, 1)))
CASE(sem_open, "too long a name", opened(sem_open(long_name(), O_CREAT, 0600, 1)))
CASE(sem_open, "no room for descriptors", open_without_room("/ptt-conformance-none"))
CASE(sem_close, "open", both(sem_close(made()), sem_unlink(name())))
CASE(sem_close, "not open", sem_close(sem(1)))
CASE(sem_unlink, "there", made(), sem_unlink(name()))
CASE(sem_unlink, "not there", sem_unlink(name()))
CASE(sem_unlink, "too long a name", sem_unlink(long_name()))
CASE(sem_unlink, "no name", sem_unlink(""))
