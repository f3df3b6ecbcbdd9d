/* past.c - a thread made past the hooks, in a thread library that reports its threads. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "inside.h"

static int object;

static void *routine(void *arg)
{
	POINT_AT(1, pthread_start, (void *)pthread_self(), (void *)routine, 0);
	POINT(mutex_entry, &object, 0, 0);
	POINT_AT(1, thread_dead, (void *)pthread_self(), 0, 0);
	/* the thread has ended */
	POINT(mutex_entry, &object, 0, 0);
	return arg;
}

int main(void)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*join)(pthread_t, void **);
	void *library = dlopen("libc.so.6", RTLD_NOW);
	pthread_t thread;

	*(void **)&create = dlsym(library, "pthread_create");
	*(void **)&join = dlsym(library, "pthread_join");
	if (create(&thread, NULL, routine, NULL) || join(thread, NULL))
		return 1;
	puts("done");
	return 0;
}
