/* SPDX-License-Identifier: MIT */
/* truncation.c - a handler that puts zeros in place of the lost parts of mapped files. */
#include "truncation.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Never freed, only used again: the handler may walk the list at any moment. `start` is published last and cleared first
 * (release; the handler reads it with acquire).
 */
struct ptt_guard {
	_Atomic uintptr_t start; /* 0: the node is free */
	size_t size;
	int protection;
	atomic_bool cut;         /* set by the handler, relaxed: the reading thread itself looks at it */
	struct ptt_guard *next;   /* set before the node is published */
	struct ptt_guard *spare_next; /* the next free node */
};

static struct ptt_guard *_Atomic guards;
/* The handler takes no lock: this lock is for threads that map and unmap. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct ptt_guard *spare;
static pthread_once_t installed = PTHREAD_ONCE_INIT;
static struct sigaction before;
static uintptr_t page;

/* Runs in the handler: only system calls, no lock. */
static bool mend(uintptr_t fault)
{
	for (struct ptt_guard *g = atomic_load_explicit(&guards, memory_order_acquire); g; g = g->next) {
		uintptr_t start = atomic_load_explicit(&g->start, memory_order_acquire);
		uintptr_t from = fault & ~(page - 1);

		if (!start || fault < start || fault - start >= g->size)
			continue;
		/* All bytes that follow the fault are behind the end of the file as well. */
		if (mmap((void *)from, start + g->size - from, g->protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			return false;
		atomic_store_explicit(&g->cut, true, memory_order_relaxed);
		return true;
	}
	return false;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code != BUS_ADRERR || !mend((uintptr_t)info->si_addr)) {
		if (before.sa_flags & SA_SIGINFO)
			before.sa_sigaction(number, info, context);
		else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
			before.sa_handler(number);
		else /* the fault comes again and ends the process, as without this handler */
			sigaction(SIGBUS, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	}
	errno = saved;
}

static void install(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, &before);
}

static struct ptt_guard *take_node(void)
{
	struct ptt_guard *g;

	pthread_mutex_lock(&changing);
	g = spare;
	if (g) {
		spare = g->spare_next;
	} else {
		g = calloc(1, sizeof(*g));
		if (g) {
			/* relaxed: only this function changes it, under the lock; release: the handler's acquire load sees `next` */
			g->next = atomic_load_explicit(&guards, memory_order_relaxed);
			atomic_store_explicit(&guards, g, memory_order_release);
		}
	}
	pthread_mutex_unlock(&changing);
	return g;
}

static struct ptt_guard *guard_begin(void *map, size_t size, int protection)
{
	struct ptt_guard *guard;

	pthread_once(&installed, install);
	guard = take_node();
	if (!guard)
		return NULL;
	guard->size = size;
	guard->protection = protection;
	atomic_store_explicit(&guard->cut, false, memory_order_relaxed);
	atomic_store_explicit(&guard->start, (uintptr_t)map, memory_order_release);
	return guard;
}

struct ptt_guard *ptt_guard_add(void *map, size_t size)
{
	return guard_begin(map, size, PROT_READ | PROT_WRITE);
}

struct ptt_guard *ptt_guard_map(int fd, size_t size)
{
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	struct ptt_guard *guard;

	if (map == MAP_FAILED)
		return NULL;
	guard = guard_begin(map, size, PROT_READ);
	if (!guard) {
		munmap(map, size);
		errno = ENOMEM;
	}
	return guard;
}

void ptt_guard_remove(struct ptt_guard *guard)
{
	if (!guard)
		return;
	/* before the memory is unmapped: the handler must not map anything there again */
	atomic_store_explicit(&guard->start, 0, memory_order_release);
	pthread_mutex_lock(&changing);
	guard->spare_next = spare;
	spare = guard;
	pthread_mutex_unlock(&changing);
}

void ptt_guard_unmap(struct ptt_guard *guard)
{
	uintptr_t start;
	size_t size;

	if (!guard)
		return;
	start = atomic_load_explicit(&guard->start, memory_order_relaxed);
	size = guard->size;
	ptt_guard_remove(guard);
	munmap((void *)start, size);
}

const void *ptt_guard_data(const struct ptt_guard *guard)
{
	return (const void *)atomic_load_explicit(&guard->start, memory_order_relaxed);
}

bool ptt_guard_cut(const struct ptt_guard *guard)
{
	return guard && atomic_load_explicit(&guard->cut, memory_order_relaxed);
}
