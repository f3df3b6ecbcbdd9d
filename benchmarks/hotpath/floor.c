/* SPDX-License-Identifier: MIT */
/* floor.c - preloaded wrapper that does the least a tracer can: for each event one time stamp and one 32-byte store. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>

struct record {
	uint64_t time, object, site, id;
};

#define RECORDS 32768u /* 1 MiB a thread */

static __thread struct {
	struct record *ring;
	uint64_t next;
} self __attribute__((tls_model("initial-exec")));

static uint64_t now(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#endif
}

static __attribute__((noinline)) void first(void)
{
	self.ring = calloc(RECORDS, sizeof(struct record));
}

static inline void note(uint64_t id, void *object, void *site)
{
	if (__builtin_expect(!self.ring, 0))
		first();
	self.ring[self.next++ % RECORDS] =
		(struct record){.time = now(), .object = (uintptr_t)object, .site = (uintptr_t)site, .id = id};
}

/* Calls that take a lock get their time stamp after the call, calls that release a lock before it. */
#define TAKES(id, name, type)                             \
	static int (*real_##name)(type *);                \
	int name(type *object)                            \
	{                                                 \
		int result = real_##name(object);         \
							  \
		note(id, object, __builtin_return_address(0)); \
		return result;                            \
	}

#define GIVES(id, name, type)                             \
	static int (*real_##name)(type *);                \
	int name(type *object)                            \
	{                                                 \
		note(id, object, __builtin_return_address(0)); \
		return real_##name(object);               \
	}

TAKES(1, pthread_mutex_lock, pthread_mutex_t)
GIVES(2, pthread_mutex_unlock, pthread_mutex_t)
TAKES(3, pthread_rwlock_rdlock, pthread_rwlock_t)
TAKES(4, pthread_rwlock_wrlock, pthread_rwlock_t)
GIVES(5, pthread_rwlock_unlock, pthread_rwlock_t)
TAKES(6, sem_wait, sem_t)
GIVES(7, sem_post, sem_t)

/* The same for functions of GLib, which return nothing. */
TAKES(8, g_mutex_lock, void)
GIVES(9, g_mutex_unlock, void)

static __attribute__((constructor)) void resolve(void)
{
#define RESOLVE(name) *(void **)&real_##name = dlsym(RTLD_NEXT, #name)
	RESOLVE(pthread_mutex_lock);
	RESOLVE(pthread_mutex_unlock);
	RESOLVE(pthread_rwlock_rdlock);
	RESOLVE(pthread_rwlock_wrlock);
	RESOLVE(pthread_rwlock_unlock);
	RESOLVE(sem_wait);
	RESOLVE(sem_post);
	RESOLVE(g_mutex_lock);
	RESOLVE(g_mutex_unlock);
}
