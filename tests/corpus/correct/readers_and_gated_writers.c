/* SPDX-License-Identifier: MIT */
/* readers_and_gated_writers.c - two tables are read in both orders, but no writer can wait for the tables meanwhile. */
#include "corpus.h"

/*
 * A default rwlock lets readers in even if a writer waits. For the rwlocks that prefer writers, the writer comes before or
 * after all readers, or under a lock that the readers hold.
 */
struct tables {
	pthread_rwlock_t a, b;
};

static struct tables plain, early, gated;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void make(struct tables *t, int kind)
{
	pthread_rwlockattr_t attributes;

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, kind);
	pthread_rwlock_init(&t->a, &attributes);
	pthread_rwlock_init(&t->b, &attributes);
}

static void read_both(struct tables *t, const void *other)
{
	pthread_rwlock_rdlock(other ? &t->b : &t->a);
	pthread_rwlock_rdlock(other ? &t->a : &t->b);
	pthread_rwlock_unlock(&t->a);
	pthread_rwlock_unlock(&t->b);
}

static void write_both(struct tables *t)
{
	pthread_rwlock_wrlock(&t->a);
	pthread_rwlock_unlock(&t->a);
	pthread_rwlock_wrlock(&t->b);
	pthread_rwlock_unlock(&t->b);
}

static void *reads(void *other)
{
	read_both(&plain, other);
	read_both(&early, other);
	pthread_mutex_lock(&gate);
	read_both(&gated, other);
	pthread_mutex_unlock(&gate);
	return NULL;
}

static void *writes(void *unused)
{
	write_both(&plain);
	pthread_mutex_lock(&gate);
	write_both(&gated);
	pthread_mutex_unlock(&gate);
	return unused;
}

int main(void)
{
	pthread_t first, second, writer;

	make(&plain, PTHREAD_RWLOCK_DEFAULT_NP);
	make(&early, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	make(&gated, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	write_both(&early);
	first = start(reads, NULL);
	second = start(reads, "");
	writer = start(writes, NULL);
	join(first);
	join(second);
	join(writer);
	write_both(&early);
	return 0;
}
