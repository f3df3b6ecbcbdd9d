/* SPDX-License-Identifier: MIT */
/* wakes.c - waits that another thread ends: at conditions, semaphores, barriers and futexes, and for the end of a thread. */
#include "catalog.h"
#include "../holds.h"

#include <pthread.h>

/* A woken thread needs up to this time to ask for its mutex. A shorter hold by others does not count as a wait. */
#define REACQUIRE_NS 20000

/* ---- wake-ups ---- */

/* A woken thread waits for the mutex no more. Return: how long threads held the mutex since the wake-up, in ns. */
static uint64_t unawait(struct ptt_model *m, const struct md_wakeup *by, int64_t ts)
{
	struct md_object *mutex = MD_OBJECT(m, by->mutex);

	if (!by->mutex)
		return 0;
	md_share(m, mutex, ts);
	md_crowd_leave(m, mutex, by->ts);
	mutex->awaited--;
	return mutex->held - by->held;
}

static void drop(struct ptt_model *m, uint32_t object, uint32_t count, int64_t ts)
{
	while (count-- > 0) {
		const struct md_wakeup *oldest = MD_WAKEUP(m, tk_wake_use(&m->t, object, TK_NEVER));
		uint64_t held = unawait(m, oldest, ts);

		if (held)
			md_unblame(m, oldest->mutex, oldest->ts, ts, held);
	}
}

void md_drop_wakes(struct ptt_model *m, uint32_t object, int64_t ts)
{
	drop(m, object, TK_WAKING(&m->t, &MD_OBJECT(m, object)->pub)->pending, ts);
}

/* A thread left without a wake-up. So a wake-up may have no waiter now. */
static void left_without(struct ptt_model *m, uint32_t object, int64_t ts)
{
	drop(m, object, tk_wake_excess(&m->t, object), ts);
}

/* A signal wakes @count more threads. They must take the mutex back, so they wait for its holders from now on. */
static void await_mutex(struct ptt_model *m, const struct md_object *cond, struct md_wakeup *by, uint32_t count)
{
	uint32_t mutex = MD_WAITING(m, cond->pub.waits)->mutex;
	struct md_object *o = MD_OBJECT(m, mutex);

	if (!mutex || !TK_PROCESS(&m->t, o->pub.process)->full[PTT_KIND_MUTEX])
		return;
	md_share(m, o, by->ts);
	by->mutex = mutex;
	by->held = o->held;
	by->held_all = o->held_all;
	o->awaited += count;
	md_watch_holds(m, o);
	by->crowd = o->pub.waiters + o->awaited;
	if (o->pub.holds)
		md_crowd(o, by->crowd);
}

uint32_t md_wakeup_times(const struct md_wakeup *wakeup)
{
	return 1 + 2 * wakeup->left + wakeup->gave_back;
}

/* The event of the latest wake-up is fed early again: restores the next part of its state, see md_wakeup_times(). */
static void wake_again(struct ptt_model *m, uint32_t object, struct md_wakeup *by)
{
	by->gave_back = !by->gave_back;
	if (by->gave_back)
		return;
	tk_wake_more(&m->t, object, 1);
	await_mutex(m, MD_OBJECT(m, object), by, 1);
}

void md_wake(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t count, uint8_t kind,
	     bool gave_back)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_wakeup *by = MD_WAKEUP(m, TK_WAKING(&m->t, &o->pub)->latest);

	if (unlikely(m->early && by->thread == e->thread && by->ts == e->ts)) {
		wake_again(m, object, by);
		return;
	}
	by = MD_WAKEUP(m, tk_wake(&m->t, e, object, unlikely(m->early) ? 0 : count, kind));
	by->site_row = md_site(m, e->thread, e->site, o->pub.kind);
	by->mutex = 0;
	by->held = by->held_all = 0;
	by->gave_back = gave_back;
	if (!o->pub.waiters && (kind == PTT_WAKE_SIGNAL || kind == PTT_WAKE_BROADCAST) && md_in_window(m, e->ts))
		o->pub.wasted++;
	if (by->left)
		await_mutex(m, o, by, by->left);
}

void md_blame_waker(struct ptt_model *m, const struct md_wait *w, struct md_end *end)
{
	int64_t until;

	if (end->dur < 0)
		end->dur = end->ts - w->since;
	until = w->since + end->dur;
	if (end->wake != TK_NEVER && end->wake < until)
		until = end->wake;
	end->held = (uint64_t)md_portion(m, w->since, until, 1, 1);
	if (w->counted)
		md_charge(m, md_blame(m, w->object, end->waker, end->waker_site), (int64_t)end->held);
}

static void woken_by(struct md_end *end, const struct md_wakeup *by)
{
	end->waker = by->thread;
	end->waker_site = by->site_row;
	end->waker_stack = by->stack;
	end->wake = by->ts;
	end->wake_kind = by->kind;
}

/* The object of a wait that ends. A thread that was woken first may have destroyed it, and made a new object at its address. */
static uint32_t waited_for(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t wait = tk_wait_at(&m->t, e), pair;

	return wait ? MD_WAITING(m, wait)->object : md_object(m, e, e->id >> 6, e->object, &pair);
}

/* ---- conditions ---- */

void md_cond_in(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_COND, e->object, &pair);
	uint64_t address = (uint64_t)tk_number(&e->e, TK_MUTEX, 0);
	uint32_t wait = md_wait_begin(m, e, object, PTT_MODE_EXCLUSIVE);

	if (!address || !wait)
		return;
	MD_WAITING(m, wait)->mutex = md_object(m, e, PTT_KIND_MUTEX, address, &pair);
	/* The thread gives the mutex back while it waits. */
	if (MD_WAITING(m, wait)->locks_held > 0 && tk_hold_find(&m->t, e->thread, MD_WAITING(m, wait)->mutex))
		MD_WAITING(m, wait)->locks_held--;
	md_log_of(m, MD_OBJECT(m, MD_WAITING(m, wait)->mutex));
}

/*
 * Whether other threads held the mutex between the wake-up and its acquisition long enough to count as a wait for the mutex
 *
 * If not, or if the wait is not counted, the time is taken from their blame. The same holds for the interpreter's lock: a wait
 * for its condition and for its mutex is a single wait. @out: the time that they held the mutex in the window, in ns.
 */
static bool held_by_others(struct ptt_model *m, const struct md_wait *w, const struct md_wakeup *by, int64_t now,
			   uint64_t *out)
{
	bool long_enough;
	uint64_t held = unawait(m, by, now);
	uint32_t hold = by->mutex ? tk_hold_find(&m->t, w->thread, by->mutex) : 0;

	if (!by->mutex)
		return false;
	if (w->retaken == TK_NEVER || w->retaken <= by->ts) {
		md_unblame(m, by->mutex, by->ts, now, held);
		return false;
	}
	/* The thread itself has held the mutex since it took the mutex back. */
	if (hold)
		md_hold_add(MD_HOLD(m, hold), -(int64_t)(held - (w->mutex_held - by->held)));
	*out = held = w->mutex_held - by->held;
	long_enough = w->mutex_held_all - by->held_all >= REACQUIRE_NS;
	long_enough = long_enough && MD_OBJECT(m, w->object)->purpose != PTT_FOR_GIL;
	if (!long_enough || !md_counted(m, w->thread, by->mutex, w->site_row))
		md_unblame(m, by->mutex, by->ts, w->retaken, held);
	return long_enough;
}

/* Reports the time from the wake-up to the acquisition of the mutex as a separate wait for the mutex. */
static void reacquired(struct ptt_model *m, const struct md_wait *w, const struct md_wakeup *by, uint64_t held)
{
	struct md_object *o = MD_OBJECT(m, w->mutex);
	const struct md_log *log = MD_LOG_OF(m, o);
	struct md_log_entry last = { 0 }, first = { 0 };
	struct md_wait again = *w;
	struct md_end end = { .ts = w->retaken, .dur = -1, .held = held, .wait_class = PTT_CONTENDED };

	if (m->flags & PTT_MODEL_STATES_OF)
		md_state_of_wait(m, w, PTT_IDLE, by->ts);
	for (uint32_t i = 0; o->log && i < MD_LOG && i < log->count; i++) {
		const struct md_log_entry *entry = &log->entry[(log->count - 1 - i) % MD_LOG];

		if (entry->thread == w->thread || entry->ended > w->retaken)
			continue;
		if (entry->ended <= by->ts)
			break;
		first = *entry;
		last = last.ended ? last : *entry;
	}
	again.since = by->ts;
	md_wait_chain(&again, w);
	again.id = ++m->t.wait_id;
	again.object = w->mutex;
	again.kind = PTT_KIND_MUTEX;
	again.depth = o->pub.waiters + 1;
	again.crowd = by->crowd;
	again.owner = first.thread;
	/* The site of a release does not say where the holder took the mutex. */
	again.owner_site = first.site & MD_RELEASED ? 0 : first.site;
	end.waker = last.thread;
	end.waker_site = o->pub.releaser == last.thread && o->pub.release_ns == last.ended ? md_release_row(m, o) : 0;
	end.wake = last.thread ? last.ended : TK_NEVER;
	end.wake_kind = PTT_WAKE_RELEASE;
	md_wait_account(m, &again, &end);
}

void md_cond_out(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t object = waited_for(m, e);
	struct md_end end = md_end_of(e, PTT_IDLE, -1);
	uint32_t wakeup;
	struct md_wait w;

	md_wait_take(m, e, object, &w);
	wakeup = end.wait_class == PTT_IDLE ? tk_wake_use(&m->t, object, w.since) : 0;
	if (wakeup) {
		const struct md_wakeup *by = MD_WAKEUP(m, wakeup);
		uint64_t held;

		woken_by(&end, by);
		if (held_by_others(m, &w, by, e->ts, &held)) {
			reacquired(m, &w, by, held);
			/* readings since the signal belong to the wait for the mutex */
			w.sched.epoch = 0;
			end.ts = by->ts;
			end.dur = -1;
		}
	} else {
		left_without(m, object, e->ts);
	}
	/* A thread that waits for time to pass is idle. */
	if (end.wait_class == PTT_TIMEOUT && MD_SITE(m, w.site_row)->use & PTT_SITE_OF_SLEEP)
		end.wait_class = PTT_IDLE;
	/* A wait for the interpreter's lock that timed out begins again at once, and has the class of that lock. */
	end.wait_class = md_class(MD_OBJECT(m, object), end.wait_class);
	md_wait_account(m, &w, &end);
}

bool md_cond_open(struct ptt_model *m, struct md_wait *w, int64_t *signalled)
{
	const struct md_object *mutex = MD_OBJECT(m, w->mutex);
	const struct md_wakeup *by;
	uint32_t wakeup;

	if (!w->mutex || w->retaken != TK_NEVER || !mutex->pub.holds || MD_HOLD(m, mutex->pub.holds)->thread == w->thread)
		return false;
	wakeup = tk_wake_use(&m->t, w->object, w->since);
	if (!wakeup)
		return false;
	by = MD_WAKEUP(m, wakeup);
	*signalled = by->ts;
	w->since = by->ts;
	w->held = by->mutex ? by->held : mutex->held;
	w->counted = md_counted(m, w->thread, w->mutex, w->site_row);
	md_wait_chain(w, w);
	w->id = ++m->t.wait_id;
	w->crowd = by->mutex ? by->crowd : mutex->pub.waiters + 1;
	w->object = w->mutex;
	w->kind = PTT_KIND_MUTEX;
	return true;
}

/* ---- barriers ---- */

/* The last thread of a round wakes all waiters. */
static void barrier_open(struct ptt_model *m, uint32_t object)
{
	struct md_wakeup *by = MD_WAKEUP(m, tk_round_over(&m->t, object));

	by->site_row = md_site(m, by->thread, by->site, PTT_KIND_BARRIER);
	by->mutex = 0;
}

void md_barrier_in(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_BARRIER, e->object, &pair);
	uint32_t wait = md_wait_begin(m, e, object, PTT_MODE_EXCLUSIVE);

	if (tk_arrive(&m->t, object, MD_OBJECT(m, object)->pub.attributes) && wait)
		barrier_open(m, object);
}

void md_barrier_arrive(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_BARRIER, e->object, &pair);

	if (tk_arrive_only(&m->t, e, object, MD_OBJECT(m, object)->pub.attributes))
		barrier_open(m, object);
}

/* The wake-up that lets a waiter leave a barrier. */
static uint32_t leave_barrier(struct ptt_model *m, uint32_t object, int64_t since)
{
	uint32_t wakeup = tk_wake_use(&m->t, object, since);

	if (wakeup)
		return wakeup;
	/* The number of threads of a round is unknown: the round ends when the first thread leaves. */
	barrier_open(m, object);
	return tk_wake_use(&m->t, object, since);
}

void md_barrier_out(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t object = waited_for(m, e);
	uint32_t number = tk_wait_of(&m->t, e->thread, object), wakeup = 0;
	struct md_end end = md_end_of(e, PTT_CONTENDED, -1);
	struct md_wait w;

	if (end.result == PTHREAD_BARRIER_SERIAL_THREAD)
		end.wait_class = PTT_CONTENDED;
	if (number && end.wait_class == PTT_CONTENDED)
		wakeup = leave_barrier(m, object, MD_WAITING(m, number)->since);
	md_wait_take(m, e, object, &w);
	if (!wakeup) {
		left_without(m, object, e->ts);
	} else {
		woken_by(&end, MD_WAKEUP(m, wakeup));
		if (end.waker == e->thread) { /* it came last, and did not wait */
			md_crowd_leave(m, MD_OBJECT(m, object), w.since);
			return;
		}
		md_blame_waker(m, &w, &end);
	}
	md_wait_account(m, &w, &end);
}

/* ---- semaphores ---- */

/*
 * A semaphore that began with one unit is a lock while each thread gives back the unit that it took. Then the thread has held
 * the semaphore, which is known when it gives back the unit. The semaphore is no lock any more, and has no known holder, after
 * a thread posted the unit of another thread, or waited for its own unit.
 *
 * A semaphore that began with several units is a pool. A thread that gives back its unit is blamed for the wait that this ends.
 */

/*
 * The class of a wait for a unit. @taken: the poster had taken a unit. In a semaphore that is no pool, it may have kept that unit
 * all the time, or it may have added a unit.
 */
static uint8_t class_of_unit(const struct md_object *o, const struct md_wait *w, bool taken)
{
	uint8_t otherwise = !taken ? PTT_IDLE : o->pool ? PTT_CONTENDED : PTT_UNKNOWN;

	return md_class(o, w->futex ? md_futex_class(w) : otherwise);
}

uint8_t md_sem_unknown_class(struct ptt_model *m, const struct md_wait *w)
{
	const struct md_object *o = MD_OBJECT(m, w->object);
	uint32_t own_unit = MD_PAIR(m, md_pair(m, w->thread, w->object))->balance > 0;

	/* Without recorded units, their use is unknown. */
	if (!TK_PROCESS(&m->t, o->pub.process)->full[PTT_KIND_SEM])
		return md_class(o, w->futex ? md_futex_class(w) : PTT_UNKNOWN);
	return class_of_unit(o, w, o->units_out > own_unit);
}

/* The waker of a wait for a unit decides its class. */
static void granted(struct ptt_model *m, const struct md_wait *w, struct md_end *end, const struct md_wakeup *by)
{
	woken_by(end, by);
	end->wait_class = class_of_unit(MD_OBJECT(m, w->object), w, by->gave_back);
	if (end->wait_class == PTT_CONTENDED)
		md_blame_waker(m, w, end);
}

/* The end of a wait for a unit of a semaphore that is no lock. */
static void unit_waited(struct ptt_model *m, const struct tk_event *e, uint32_t object)
{
	struct md_end end = md_end_of(e, PTT_IDLE, -1);
	const struct md_wakeup *latest;
	uint32_t wakeup;
	struct md_wait w;

	md_wait_take(m, e, object, &w);
	if (end.dur < 0)
		end.dur = e->ts - w.since;
	wakeup = end.wait_class == PTT_IDLE ? tk_wake_use(&m->t, object, w.since) : 0;
	if (!wakeup)
		left_without(m, object, e->ts);
	if (end.wait_class == PTT_IDLE) {
		latest = MD_WAKEUP(m, TK_WAKING(&m->t, &MD_OBJECT(m, object)->pub)->latest);
		if (wakeup)
			granted(m, &w, &end, MD_WAKEUP(m, wakeup));
		else if (latest->thread && latest->ts >= w.since - MD_SKEW_NS)
			granted(m, &w, &end, latest);
		else
			end.wait_class = md_sem_unknown_class(m, &w);
		if (end.wait_class == PTT_CONTENDED && !end.waker)
			md_blame_waker(m, &w, &end);
	}
	if (end.wait_class == PTT_JOIN && !w.owner)
		w.owner = end.waker;
	md_wait_account(m, &w, &end);
}

static void sem_waited(struct ptt_model *m, const struct tk_event *e, uint32_t object)
{
	uint32_t wait = tk_wait_of(&m->t, e->thread, object);
	int64_t since = wait ? MD_WAITING(m, wait)->since : e->ts;

	if (!MD_OBJECT(m, object)->as_lock) {
		unit_waited(m, e, object);
		return;
	}
	md_lock_waited(m, e, object);
	if (md_end_of(e, PTT_IDLE, -1).wait_class != PTT_IDLE || !tk_wake_use(&m->t, object, since))
		left_without(m, object, e->ts);
}

void md_sem_taken(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_SEM, e->object, &pair);
	struct tk_event by = *e;

	/* There is a single unit, and another thread has it. */
	if (MD_OBJECT(m, object)->pub.holds)
		md_no_lock(m, object, e->ts);
	if (tk_has(e->id, TK_WAIT_NS) && !m->early) {
		md_take_call_of_wait(m, &by, object);
		sem_waited(m, e, object);
	}
	pair = md_pair(m, e->thread, object);
	MD_PAIR(m, pair)->balance_ns = e->ts;
	if (MD_PAIR(m, pair)->balance++ == 0)
		MD_OBJECT(m, object)->units_out++;
	if (MD_OBJECT(m, object)->as_lock)
		md_acquire(m, &by, object, pair, PTT_MODE_EXCLUSIVE);
}

void md_sem_gave_up(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair;

	sem_waited(m, e, md_object(m, e, PTT_KIND_SEM, e->object, &pair));
}

/* A thread posts a semaphore that another thread took. It is no lock unless it is freed next, which later events show. */
static void posted_by_another(struct ptt_model *m, const struct tk_event *e, struct md_object *o, uint32_t object)
{
	if (o->purpose == PTT_FOR_LOCK && o->pub.holds && !o->pub.waiters && !o->given_away)
		o->given_away = true;
	else if (o->purpose == PTT_FOR_LOCK && !o->maker && !o->pub.holds)
		return; /* taken before the recording, as it was made */
	else
		md_no_lock(m, object, e->ts);
}

void md_sem_post(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_SEM, e->object, &pair);
	bool gave_back;

	pair = md_pair(m, e->thread, object);
	/* Events that are fed early restore the units of a thread by themselves. */
	gave_back = MD_PAIR(m, pair)->balance > 0 && !m->early;
	if (gave_back && --MD_PAIR(m, pair)->balance == 0)
		MD_OBJECT(m, object)->units_out--;
	if (MD_OBJECT(m, object)->as_lock && !m->early && !tk_hold_find(&m->t, e->thread, object))
		posted_by_another(m, e, MD_OBJECT(m, object), object);
	if (MD_OBJECT(m, object)->as_lock && !MD_OBJECT(m, object)->given_away)
		md_release(m, e);
	md_wake(m, e, object, 1, PTT_WAKE_POST, gave_back);
}

/* ---- futexes ---- */

/* The kind of a futex, and of some semaphores, is known only by the function that waits for it. */
void md_wait_of_kind(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t wait)
{
	int64_t kind = tk_number(&e->e, TK_LOCK, 0);

	if (kind <= 0 || kind >= ptt_futex_kind_count)
		return;
	if (wait)
		MD_WAITING(m, wait)->futex = (uint8_t)kind;
	md_set_type(m, object, (uint32_t)kind);
}

uint8_t md_futex_class(const struct md_wait *w)
{
	static const uint8_t class_of[] = {
		[PTT_FUTEX_UNKNOWN] = PTT_UNKNOWN, [PTT_FUTEX_LOCK] = PTT_CONTENDED, [PTT_FUTEX_WORK] = PTT_IDLE,
	};

	return class_of[ptt_futex_kinds[w->futex].waits];
}

void md_futex_in(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_FUTEX, e->object, &pair);

	md_wait_of_kind(m, e, object, md_wait_begin(m, e, object, PTT_MODE_EXCLUSIVE));
}

void md_futex_out(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_FUTEX, e->object, &pair);
	struct md_end end = md_end_of(e, PTT_UNKNOWN, 0);
	uint32_t wakeup;
	struct md_wait w;

	md_wait_take(m, e, object, &w);
	wakeup = end.result ? 0 : tk_wake_use(&m->t, object, w.since);
	if (wakeup)
		woken_by(&end, MD_WAKEUP(m, wakeup));
	else
		left_without(m, object, e->ts);
	if (end.wait_class == PTT_UNKNOWN)
		end.wait_class = md_futex_class(&w);
	if (end.wait_class == PTT_CONTENDED)
		md_blame_waker(m, &w, &end);
	if (end.result == EAGAIN) /* the value had changed: it did not block */
		md_crowd_leave(m, MD_OBJECT(m, object), w.since);
	else
		md_wait_account(m, &w, &end);
}

void md_futex_wake(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_FUTEX, e->object, &pair);
	int64_t count = tk_number(&e->e, TK_COUNT, 1);

	md_wake(m, e, object, count > 0 ? (uint32_t)count : 0, PTT_WAKE_FUTEX, false);
}

/* ---- the end of a thread ---- */

void md_join_in(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_THREAD, e->object, &pair);
	uint32_t wait = md_wait_begin(m, e, object, PTT_MODE_EXCLUSIVE), target = tk_join_target(&m->t, e, 0);

	if (!wait || !target)
		return;
	MD_WAITING(m, wait)->owner = target;
	if (MD_THREAD(m, target)->pub.waits)
		md_wait_chain(MD_WAITING(m, wait), MD_WAITING(m, MD_THREAD(m, target)->pub.waits));
}

void md_join_out(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_THREAD, e->object, &pair);
	struct md_end end = md_end_of(e, PTT_JOIN, 0);
	struct md_wait w;
	bool known = md_wait_take(m, e, object, &w);
	uint32_t target = tk_join_target(&m->t, e, w.owner);

	w.owner = target;
	if (!end.result && target) {
		struct md_thread *t = MD_THREAD(m, target);

		t->pub.flags |= PTT_THREAD_JOINED;
		t->pub.join_ns = e->ts;
		if (t->pub.flags & PTT_THREAD_ENDED) {
			end.waker = target;
			end.wake = t->pub.end_ns;
			end.wake_kind = PTT_WAKE_END;
		}
	}
	if (!end.result) /* a later thread may have the same pthread_t */
		MD_OBJECT(m, object)->pub.flags |= PTT_OBJECT_ENDED;
	if (end.result && end.result != ETIMEDOUT) /* refused: it did not block */
		md_crowd_leave(m, MD_OBJECT(m, object), w.since);
	else if (known || end.dur > 0)
		md_wait_account(m, &w, &end);
}
