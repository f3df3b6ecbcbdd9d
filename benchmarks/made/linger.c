/* SPDX-License-Identifier: MIT */
/* linger.c - preloaded behind the tracer, has each thread keep a mutex longer now and then, so that others wait for it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/single_threaded.h>
#include <time.h>

#define LONGEST_NS 2000000

static __thread long next __attribute__((tls_model("initial-exec")));
static __thread unsigned seed __attribute__((tls_model("initial-exec")));

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Delay a thread for a third of its time, however often it comes here and however busy the machine is. */
static void linger(void)
{
	long begin = now_ns(), end;

	if (begin < next)
		return;
	if (!seed)
		seed = (unsigned)begin ^ (unsigned)(unsigned long)&seed;
	nanosleep(&(struct timespec){.tv_nsec = rand_r(&seed) % LONGEST_NS}, NULL);
	end = now_ns();
	next = end + 2 * (end - begin);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*_Atomic real)(pthread_mutex_t *);
	int saved = errno;

	if (!real)
		real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, __func__);
	if (!__libc_single_threaded)
		linger();
	errno = saved;
	return real(mutex);
}
