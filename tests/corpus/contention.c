/* SPDX-License-Identifier: MIT */
/*
 * contention.c - contention that the program measures itself: holders, waiters and their times.
 * It prints lines `QUANTITY OBJECT [TID] AT-LEAST AT-MOST` in ns by its own clock. The kernel may keep a thread from
 * running between its clock and its call; the true value still lies between the two bounds.
 */
#include "corpus.h"

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Times of a thread at a lock: when it asked, had the lock, was about to release it, and had released it. */
struct turn {
	int tid; /* set just before it asks */
	long asked, had, gives, gave;
};

static void had(const char *name, const struct turn *turn)
{
	say("hold %s %ld %ld\n", name, turn->gives - turn->had, turn->gave - turn->asked);
}

/* The thread slept for the lock at least from the first time to the second. */
static void waited(const char *name, const struct turn *turn, long from, long to)
{
	say("wait %s %ld %ld\n", name, to - from, turn->had - turn->asked);
	say("waits-of %d %ld %ld\n", turn->tid, to - from, turn->had - turn->asked);
}

static void caused(const char *name, const struct turn *by, long least, long most)
{
	say("caused %s %d %ld %ld\n", name, by->tid, least, most);
}

/* ---- a thread holds for long, a second waits; then a third waits for both ---- */

static pthread_mutex_t chain = PTHREAD_MUTEX_INITIALIZER;
static struct turn chained[3];
static int holding;
static long all_wait;

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
	if (me == &chained[0]) {
		await_asleep(&chained[2].tid);
		all_wait = now();
	}
	nap_ms(100);
	me->gives = now();
	pthread_mutex_unlock(&chain);
	me->gave = now();
	return NULL;
}

static void chain_of_three(void)
{
	struct turn *first = &chained[0], *second = &chained[1], *third = &chained[2];
	pthread_t threads[3];

	for (long i = 0; i < 3; i++)
		threads[i] = start(in_chain, (void *)i);
	for (int i = 0; i < 3; i++) {
		join(threads[i]);
		had("chain", &chained[i]);
	}
	/* the second slept already when the third asked */
	waited("chain", second, third->asked, first->gives);
	waited("chain", third, all_wait, second->gives);
	caused("chain", first, 2 * first->gives - third->asked - all_wait,
	       2 * second->had - second->asked - third->asked);
	caused("chain", second, second->gives - second->had, third->had - first->gives);
}

/* ---- a writer waits for two readers; a reader leaves after half of the time ---- */

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static struct turn readers[2], writer;
static int reading, writing;

static void *reader(void *number)
{
	struct turn *me = &readers[(long)number];

	set_tid(&me->tid);
	me->asked = now();
	pthread_rwlock_rdlock(&table);
	me->had = now();
	arrive(&reading);
	await(&writing, 1);
	nap_ms(me == readers ? 80 : 160);
	me->gives = now();
	pthread_rwlock_unlock(&table);
	me->gave = now();
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
	writer.gives = now();
	pthread_rwlock_unlock(&table);
	writer.gave = now();
	return unused;
}

/* Half of the time that both readers had the lock, and all of the time that a reader had it alone. */
static long least_caused(const struct turn *one, const struct turn *other, long since)
{
	long both = one->gives < other->gives ? one->gives : other->gives;
	long alone = one->gives - other->gave;

	return (both - since) / 2 + (alone > 0 ? alone : 0);
}

static void readers_and_writer(void)
{
	pthread_t threads[3] = {start(reader, (void *)0L), start(reader, (void *)1L),
				start(writes, NULL)};
	long waits, last, least[2];

	await_asleep(&writer.tid);
	waits = now();
	arrive(&writing);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	had("table", &readers[0]);
	had("table", &readers[1]);
	had("table", &writer);
	last = readers[0].gives > readers[1].gives ? readers[0].gives : readers[1].gives;
	waited("table", &writer, waits, last);
	for (int i = 0; i < 2; i++)
		least[i] = least_caused(&readers[i], &readers[!i], waits);
	for (int i = 0; i < 2; i++)
		caused("table", &readers[i], least[i], writer.had - writer.asked - least[!i]);
}

/* ---- three threads at one lock, again and again ---- */

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static int together;

static void *often(void *unused)
{
	long waited_ns = 0, held_ns = 0, passed_ns = 0;

	meet(&together, 3);
	for (int i = 0; i < 12; i++) {
		long asked = now(), mine;

		pthread_mutex_lock(&busy);
		mine = now();
		nap_ms(6);
		held_ns += now() - mine;
		waited_ns += mine - asked;
		pthread_mutex_unlock(&busy);
		passed_ns += now() - asked;
	}
	say("hold busy %ld %ld\n", held_ns, passed_ns);
	say("wait busy 0 %ld\n", waited_ns);
	say("waits-of %d 0 %ld\n", gettid(), waited_ns);
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

/* ---- a spin lock; a semaphore with two units; a wait that a thread gives up ---- */

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
	other.gives = now();
	pthread_spin_unlock(&slot);
	other.gave = now();
	return unused;
}

/* Waits until a spinning thread has spun for a while of its own processor time. */
static void await_spinning(pthread_t thread, const int *tid)
{
	struct timespec since, t;
	clockid_t clock;

	await(tid, 1);
	pthread_getcpuclockid(thread, &clock);
	clock_gettime(clock, &since);
	do {
		nap_ms(1);
		clock_gettime(clock, &t);
	} while ((t.tv_sec - since.tv_sec) * 1000000000 + t.tv_nsec - since.tv_nsec < 5000000);
}

static void spin_lock(void)
{
	pthread_t thread = start(spins, NULL);
	long waits;

	holder = (struct turn){.tid = gettid(), .asked = now()};
	pthread_spin_lock(&slot);
	holder.had = now();
	arrive(&held);
	await_spinning(thread, &other.tid);
	waits = now();
	nap_ms(80);
	holder.gives = now();
	pthread_spin_unlock(&slot);
	holder.gave = now();
	join(thread);
	had("slot", &holder);
	had("slot", &other);
	waited("slot", &other, waits, holder.gives);
	caused("slot", &holder, holder.gives - waits, other.had - other.asked);
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
	long waits, posts;

	other = (struct turn){0};
	sem_wait(&units);
	sem_wait(&units);
	thread = start(takes, NULL);
	await_asleep(&other.tid);
	waits = now();
	nap_ms(100);
	posts = now();
	sem_post(&units);
	join(thread);
	sem_post(&units);
	waited("units", &other, waits, posts);
	caused("units", &holder, posts - waits, other.had - other.asked);
}

static void *gives_up(void *unused)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 100);
	long asked = now();

	if (pthread_mutex_timedlock(&slow, &soon) != ETIMEDOUT)
		abort();
	say("timeout slow 0 %ld\n", now() - asked);
	return unused;
}

static void given_up(void)
{
	pthread_mutex_lock(&slow);
	join(start(gives_up, NULL));
	pthread_mutex_unlock(&slow);
}

/* ---- a wait for work; the signaller keeps its mutex after the signal ---- */

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int there_is_work, idle_tid;
static struct turn before_work, after_work;

static void *worker(void *unused)
{
	before_work.asked = now();
	pthread_mutex_lock(&door);
	before_work.had = now();
	nap_ms(60); /* held before the wait */
	before_work.gives = now();
	set_tid(&idle_tid);
	while (!there_is_work)
		pthread_cond_wait(&work, &door);
	after_work.had = now();
	nap_ms(60); /* and after it */
	after_work.gives = now();
	pthread_mutex_unlock(&door);
	after_work.gave = now();
	return unused;
}

static void condition(void)
{
	pthread_t thread = start(worker, NULL);
	long signalled;

	await_asleep(&idle_tid);
	before_work.gave = now();
	nap_ms(100);
	holder.asked = now();
	pthread_mutex_lock(&door);
	holder.had = now();
	there_is_work = 1;
	after_work.asked = now(); /* from the signal on it wants the mutex back */
	pthread_cond_signal(&work);
	signalled = now();
	nap_ms(90);
	holder.gives = now();
	pthread_mutex_unlock(&door);
	holder.gave = now();
	join(thread);
	after_work.tid = idle_tid;
	had("door", &before_work);
	had("door", &holder);
	had("door", &after_work);
	say("idle work %ld %ld\n", after_work.asked - before_work.gave, signalled - before_work.gives);
	waited("door", &after_work, signalled, holder.gives);
	caused("door", &holder, holder.gives - signalled, after_work.had - after_work.asked);
}

/* ---- a join ---- */

static int joiner;
static long joined_since, joined_until;

static void *naps(void *unused)
{
	await_asleep(&joiner);
	joined_since = now();
	nap_ms(100);
	joined_until = now();
	return unused;
}

static void *joins(void *thread)
{
	long began;

	set_tid(&joiner);
	began = now();
	join(*(pthread_t *)thread);
	say("join %d %ld %ld\n", gettid(), joined_until - joined_since, now() - began);
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
