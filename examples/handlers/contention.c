/* SPDX-License-Identifier: MIT */
/*
 * contention.c - your own trace handler: counts how often threads took and waited for each mutex.
 *
 * Build it with
 *
 *     cc -O2 -Wall -shared -fPIC -o libcontention.so contention.c
 *
 * (add -I"$(ptt config --includedir)" if the headers are not in a system directory), and use it with
 *
 *     ptt record --handler ./libcontention.so -- ./program
 *     LD_PRELOAD=$(ptt config --preload) PTHREAD_NPTL_TRACE=./libcontention.so:10:2 ./program
 *
 * Its argument is the number of mutexes to print when the program ends, 10 by default. It knows only
 * the tracer's two headers below. A handler runs inside the program's calls: this handler takes no
 * lock, allocates nothing and makes no system call before the end.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nptl_trace.h>
#include <nptl_trace_events.h>

#define MUTEXES 4096 /* a power of two */

struct count {
	void *mutex; /* NULL = free; once set it never changes */
	uint64_t taken;
	uint64_t waits;
	uint64_t wait_ns;
	uint64_t longest_ns;
};

static struct count counts[MUTEXES];
static uint64_t not_counted;
static int top = 10;

/* This handler calls no traced function: the tracer may call it directly, also in signal handlers. */
extern const int nptl_trace_handler_reentrant;
const int nptl_trace_handler_reentrant = 1;

/* The entry of a mutex in the hash table; NULL if the table is full. */
static struct count *find(void *mutex)
{
	size_t at = (uintptr_t)mutex / 16 * 0x9E3779B1u, i;

	for (i = 0; i < MUTEXES; i++) {
		struct count *count = &counts[(at + i) % MUTEXES];
		void *seen = __atomic_load_n(&count->mutex, __ATOMIC_RELAXED);

		/* if two threads find the entry free, one thread gets it, and the other reads it again */
		if (!seen && __atomic_compare_exchange_n(&count->mutex, &seen, mutex, 0,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return count;
		if (seen == mutex)
			return count;
	}
	return NULL;
}

static void add(uint64_t *counter, uint64_t value)
{
	__atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

static void raise_to(uint64_t *longest, uint64_t value)
{
	uint64_t seen = __atomic_load_n(longest, __ATOMIC_RELAXED);

	while (seen < value && !__atomic_compare_exchange_n(longest, &seen, value, 1,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void nptl_trace_init(char **args)
{
	if (args[0] && atoi(args[0]) > 0)
		top = atoi(args[0]);
	/* the tracer calls it again in the child of a fork: the child has its own counts */
	memset(counts, 0, sizeof(counts));
	not_counted = 0;
}

void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
	const struct nptl_trace_mutex_taken_waited *waited = event.param;
	struct count *count;

	if (event.source != NPTL_TRACE_SOURCE_NPTL || event.domain != NPTL_DOMAIN_MUTEX)
		return;
	if (event.event != NPTL_EV_MUTEX_TAKEN && event.event != NPTL_EV_MUTEX_TAKEN_TRIED &&
	    event.event != NPTL_EV_MUTEX_TAKEN_WAITED)
		return;
	count = find(((const struct nptl_trace_param *)event.param)->object);
	if (!count) {
		add(&not_counted, 1);
		return;
	}
	add(&count->taken, 1);
	if (event.event == NPTL_EV_MUTEX_TAKEN_WAITED) {
		add(&count->waits, 1);
		add(&count->wait_ns, waited->wait_ns);
		raise_to(&count->longest_ns, waited->wait_ns);
	}
}

static int by_wait(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	if (x->wait_ns != y->wait_ns)
		return x->wait_ns < y->wait_ns ? 1 : -1;
	return x->taken < y->taken ? 1 : x->taken > y->taken ? -1 : 0;
}

void nptl_trace_fini(void)
{
	static struct count sorted[MUTEXES];

	/* other threads may still add counts: sort the present counts */
	memcpy(sorted, counts, sizeof(sorted));
	qsort(sorted, MUTEXES, sizeof(sorted[0]), by_wait);
	fprintf(stderr, "%-18s %12s %10s %14s %14s\n", "mutex", "taken", "waits", "waited (us)",
		"longest (us)");
	for (int i = 0; i < top && i < MUTEXES && sorted[i].mutex; i++)
		fprintf(stderr, "%-18p %12llu %10llu %14.1f %14.1f\n", sorted[i].mutex,
			(unsigned long long)sorted[i].taken, (unsigned long long)sorted[i].waits,
			(double)sorted[i].wait_ns / 1e3, (double)sorted[i].longest_ns / 1e3);
	if (not_counted)
		fprintf(stderr, "%llu events of further mutexes were not counted\n",
			(unsigned long long)not_counted);
}
