/* SPDX-License-Identifier: MIT */
/*
 * contention.c - contention of which everything is known: who held what for how long while who waited.
 * It says so itself, in ns by its own clock, as lines `QUANTITY OBJECT [TID] NS`.
 */
#include "corpus.h"

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What a thread has seen of one lock: when it asked, had it, and gave it back. */
struct turn {
	int tid; /* set just before it asks */
	long asked, had, gave;
};

static void had(const char *name, const struct turn *turn)
{
	say("hold %s %ld\n", name, turn->gave - turn->had);
}

static void waited(const char *name, const struct turn *turn)
{
	say("wait %s %ld\n", name, turn->had - turn->asked);
	say("waits-of %d %ld\n", turn->tid, turn->had - turn->asked);
}

static void caused(const char *name, const struct turn *by, long ns)
{
	say("caused %s %d %ld\n", name, by->tid, ns);
}

/* ---- one holds for long, one waits; then a second waits for both ---- */

static pthread_mutex_t chain = PTHREAD_MUTEX_INITIALIZER;
static struct turn chained[3];
static int holding;

static void *in_chain(void *number)
{
	struct turn *me = &chained[(long)number];

	if (me == &chained[1])
		await(&holding, 1);
	if (me == &chained[2])
		await_asleep(&chained[1].tid);
	set_tid(&me->tid);
	me->asked = now();
	pthread_mutex_lock(&chain);
	me->had = now();
	arrive(&holding);
	if (me == &chained[0])
		await_asleep(&chained[2].tid);
	nap_ms(100);
	me->gave = now();
	pthread_mutex_unlock(&chain);
	return NULL;
}

static void chain_of_three(void)
{
	pthread_t threads[3];

	for (long i = 0; i < 3; i++)
		threads[i] = start(in_chain, (void *)i);
	for (int i = 0; i < 3; i++) {
		join(threads[i]);
		had("chain", &chained[i]);
		if (i)
			waited("chain", &chained[i]);
	}
	caused("chain", &chained[0], 2 * chained[1].had - chained[1].asked - chained[2].asked);
	caused("chain", &chained[1], chained[2].had - chained[1].had);
}

/* ---- a writer waits for two readers, of which one is gone after half of the time ---- */

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static struct turn readers[2], writer;
static int reading, writing;

static void *reader(void *number)
{
	struct turn *me = &readers[(long)number];

	set_tid(&me->tid);
	pthread_rwlock_rdlock(&table);
	me->had = now();
	arrive(&reading);
	await(&writing, 1);
	nap_ms(me == readers ? 80 : 160);
	me->gave = now();
	pthread_rwlock_unlock(&table);
	return NULL;
}

static void *writes(void *unused)
{
	await(&reading, 2);
	set_tid(&writer.tid);
	writer.asked = now();
	pthread_rwlock_wrlock(&table);
	writer.had = now();
	nap_ms(50);
	writer.gave = now();
	pthread_rwlock_unlock(&table);
	return unused;
}

static void readers_and_writer(void)
{
	pthread_t threads[3] = {start(reader, (void *)0L), start(reader, (void *)1L),
				start(writes, NULL)};
	long both;

	await_asleep(&writer.tid);
	arrive(&writing);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	had("table", &readers[0]);
	had("table", &readers[1]);
	had("table", &writer);
	waited("table", &writer);
	both = readers[0].gave - writer.asked;
	caused("table", &readers[0], both / 2);
	caused("table", &readers[1], both / 2 + writer.had - readers[0].gave);
}

/* ---- three threads at one lock, again and again ---- */

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static int together;

static void *often(void *unused)
{
	long waited_ns = 0, held_ns = 0;

	meet(&together, 3);
	for (int i = 0; i < 12; i++) {
		long asked = now(), mine;

		pthread_mutex_lock(&busy);
		mine = now();
		nap_ms(6);
		held_ns += now() - mine;
		waited_ns += mine - asked;
		pthread_mutex_unlock(&busy);
	}
	say("hold busy %ld\n", held_ns);
	say("wait busy %ld\n", waited_ns);
	say("waits-of %d %ld\n", gettid(), waited_ns);
	return unused;
}

static void busy_lock(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		threads[i] = start(often, NULL);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
}

/* ---- a spin lock; a semaphore with two units; a lock that is given up on ---- */

static pthread_spinlock_t slot;
static pthread_mutex_t slow = PTHREAD_MUTEX_INITIALIZER;
static sem_t units;
static struct turn holder, other;
static int held;

static void *spins(void *unused)
{
	await(&held, 1);
	set_tid(&other.tid);
	other.asked = now();
	pthread_spin_lock(&slot);
	other.had = now();
	pthread_spin_unlock(&slot);
	return unused;
}

static void spin_lock(void)
{
	pthread_t thread = start(spins, NULL);

	holder = (struct turn){.tid = gettid()};
	pthread_spin_lock(&slot);
	holder.had = now();
	arrive(&held);
	await(&other.tid, 1);
	nap_ms(80);
	holder.gave = now();
	pthread_spin_unlock(&slot);
	join(thread);
	had("slot", &holder);
	waited("slot", &other);
	caused("slot", &holder, other.had - other.asked);
}

static void *takes(void *unused)
{
	set_tid(&other.tid);
	other.asked = now();
	sem_wait(&units);
	other.had = now();
	sem_post(&units);
	return unused;
}

static void semaphore(void)
{
	pthread_t thread;

	other = (struct turn){0};
	sem_wait(&units);
	sem_wait(&units);
	thread = start(takes, NULL);
	await_asleep(&other.tid);
	nap_ms(100);
	sem_post(&units);
	join(thread);
	sem_post(&units);
	waited("units", &other);
	caused("units", &holder, other.had - other.asked);
}

static void *gives_up(void *unused)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 100);
	long asked = now();

	if (pthread_mutex_timedlock(&slow, &soon) != ETIMEDOUT)
		abort();
	say("timeout slow %ld\n", now() - asked);
	return unused;
}

static void given_up(void)
{
	pthread_mutex_lock(&slow);
	join(start(gives_up, NULL));
	pthread_mutex_unlock(&slow);
}

/* ---- a wait for work, and for the mutex of it that is kept after the signal ---- */

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int there_is_work;

static void *worker(void *unused)
{
	long began;

	pthread_mutex_lock(&door);
	set_tid(&other.tid);
	other.asked = began = now();
	nap_ms(60); /* held before the wait */
	say("hold door %ld\n", now() - began);
	began = now();
	while (!there_is_work)
		pthread_cond_wait(&work, &door);
	other.had = now();
	say("idle work %ld\n", holder.asked - began);
	nap_ms(60); /* and after it */
	say("hold door %ld\n", now() - other.had);
	pthread_mutex_unlock(&door);
	return unused;
}

static void condition(void)
{
	pthread_t thread;

	other = (struct turn){0};
	thread = start(worker, NULL);
	await(&other.tid, 1);
	nap_ms(160); /* for work it waits for 100 ms of these, or so */
	pthread_mutex_lock(&door);
	holder.had = now();
	there_is_work = 1;
	holder.asked = now(); /* when it signals */
	pthread_cond_signal(&work);
	nap_ms(90);
	holder.gave = now();
	pthread_mutex_unlock(&door);
	join(thread);
	had("door", &holder);
	say("wait door %ld\n", other.had - holder.asked);
	say("waits-of %d %ld\n", other.tid, other.had - holder.asked);
	caused("door", &holder, other.had - holder.asked);
}

/* ---- a thread that is joined ---- */

static void *naps(void *unused)
{
	nap_ms(100);
	return unused;
}

static void *joins(void *thread)
{
	long began = now();

	join(*(pthread_t *)thread);
	say("join %d %ld\n", gettid(), now() - began);
	return NULL;
}

static void joined(void)
{
	pthread_t thread = start(naps, NULL);

	join(start(joins, &thread));
}

int main(void)
{
	pthread_spin_init(&slot, PTHREAD_PROCESS_PRIVATE);
	sem_init(&units, 0, 2);
	chain_of_three();
	readers_and_writer();
	busy_lock();
	spin_lock();
	semaphore();
	given_up();
	condition();
	joined();
	return 0;
}
