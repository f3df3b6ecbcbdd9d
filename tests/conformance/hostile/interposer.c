/* SPDX-License-Identifier: MIT */
/* interposer.c - another preloaded library before or after the tracer: counts calls, and passes them on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static long locks;
static int (*real_lock)(pthread_mutex_t *);

static __attribute__((constructor)) void find(void)
{
	*(void **)&real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (!real_lock)
		find();
	__atomic_add_fetch(&locks, 1, __ATOMIC_RELAXED);
	return real_lock(mutex);
}

static __attribute__((destructor)) void tell(void)
{
	printf("%s\n", locks >= 300 ? "counted" : "missed some");
}
