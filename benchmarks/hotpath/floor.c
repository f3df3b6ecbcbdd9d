/* SPDX-License-Identifier: MIT */
/* floor.c - preloaded wrapper that does the least a tracer can: for each event one time stamp and one 32-byte store. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
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

static int (*real_lock)(pthread_mutex_t *);
static int (*real_unlock)(pthread_mutex_t *);

static __attribute__((constructor)) void resolve(void)
{
	*(void **)&real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	*(void **)&real_unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
}

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

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int result = real_lock(mutex);

	note(1, mutex, __builtin_return_address(0));
	return result;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	note(2, mutex, __builtin_return_address(0));
	return real_unlock(mutex);
}
