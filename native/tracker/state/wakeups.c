/* SPDX-License-Identifier: MIT */
/* wakeups.c - the wake-ups of an object: signals, posts and arrivals, until waiters use them. */
/*
 * A wake-up goes to the waiters that have no wake-up yet. A thread that continues uses the oldest wake-up since its wait began.
 * A thread that gives up uses no wake-up. Its wake-up then goes to the threads that waited beside it. If none of them is left,
 * the wake-up is in excess, and is dropped. Otherwise a later waiter would use it.
 */
#include "hot.h"


/* An element for a new wake-up. The latest wake-up keeps its element until the next wake-up, used or not. */
static uint32_t wakeup_new(struct tracker *t, const struct tk_waking *k)
{
	uint32_t number = k->latest;

	if (number && !TK_WAKEUP(t, number)->left)
		return number;
	number = t->free_wakeup;
	if (!number)
		return rd_pool_new(&t->wakeups, &t->error);
	t->free_wakeup = TK_WAKEUP(t, number)->next;
	return number;
}

void tk_wake_more(struct tracker *t, uint32_t object, uint32_t count)
{
	struct tk_waking *k = TK_WAKING(t, TK_OBJECT(t, object));
	struct tk_wakeup *w = TK_WAKEUP(t, k->latest);

	if (!w->left) {
		w->next = 0;
		w->prev = k->last;
		*(k->last ? &TK_WAKEUP(t, k->last)->next : &k->first) = k->latest;
		k->last = k->latest;
	}
	w->left += count;
	k->pending += count;
}

uint32_t tk_wake(struct tracker *t, const struct tk_event *e, uint32_t object, uint32_t count, uint8_t kind)
{
	struct ptt_track_object *o = TK_OBJECT(t, object);
	struct tk_waking *k;
	uint32_t without;

	if (unlikely(!o->waking))
		o->waking = rd_pool_new(&t->wakings, &t->error);
	k = TK_WAKING(t, o);
	without = o->waiters > k->pending ? o->waiters - k->pending : 0;
	if (count > without)
		count = without;
	k->latest = wakeup_new(t, k);
	*TK_WAKEUP(t, k->latest) = (struct tk_wakeup){
		.ts = e->ts, .site = e->site, .stack = e->stack, .thread = e->thread, .kind = kind,
	};
	if (count)
		tk_wake_more(t, object, count);
	if (k->pending >= o->waiters)
		k->woken_to = t->wait_id;
	return k->latest;
}

static void unlink_wakeup(struct tracker *t, struct tk_waking *k, uint32_t number)
{
	struct tk_wakeup *w = TK_WAKEUP(t, number);

	*(w->prev ? &TK_WAKEUP(t, w->prev)->next : &k->first) = w->next;
	*(w->next ? &TK_WAKEUP(t, w->next)->prev : &k->last) = w->prev;
	if (number == k->latest)
		return;
	w->next = t->free_wakeup;
	t->free_wakeup = number;
}

uint32_t tk_wake_use(struct tracker *t, uint32_t object, int64_t since)
{
	struct tk_waking *k = TK_WAKING(t, TK_OBJECT(t, object));
	uint32_t number = k->first;

	while (number && TK_WAKEUP(t, number)->ts < since)
		number = TK_WAKEUP(t, number)->next;
	if (!number)
		return 0;
	if (--k->pending == 0)
		k->woken_to = 0;
	if (--TK_WAKEUP(t, number)->left == 0)
		unlink_wakeup(t, k, number);
	return number;
}

uint32_t tk_wake_excess(const struct tracker *t, uint32_t object)
{
	const struct ptt_track_object *o = TK_OBJECT(t, object);
	const struct tk_waking *k = TK_WAKING(t, o);
	uint32_t given = k->pending, waiters = o->waiters, wait = o->waits, excess = 0;

	/* The excess at a moment: the wake-ups given up to it, less the threads that waited then. A use changes both by one. */
	for (uint32_t i = k->last; given && i; i = TK_WAKEUP(t, i)->prev) {
		for (; wait && TK_WAIT(t, wait)->since > TK_WAKEUP(t, i)->ts; wait = TK_WAIT(t, wait)->object_next)
			waiters--;
		if (given > waiters + excess)
			excess = given - waiters;
		given -= TK_WAKEUP(t, i)->left;
	}
	return excess;
}

void tk_wake_drop(struct tracker *t, uint32_t object, uint32_t count)
{
	while (count-- && tk_wake_use(t, object, TK_NEVER))
		;
}

/* ---- barriers ---- */

bool tk_arrive(struct tracker *t, uint32_t object, uint32_t threads)
{
	return ++TK_OBJECT(t, object)->arrived == threads;
}

bool tk_arrive_only(struct tracker *t, const struct tk_event *e, uint32_t object, uint32_t threads)
{
	struct ptt_track_object *o = TK_OBJECT(t, object);

	o->release_ns = e->ts;
	o->release_site = e->site;
	o->release_stack = e->stack;
	o->releaser = e->thread;
	return tk_arrive(t, object, threads);
}

/* The last arrival at a barrier, by a thread that waits there or not. */
static struct tk_event last_arrival(struct tracker *t, const struct ptt_track_object *o)
{
	const struct tk_wait *last = TK_WAIT(t, o->waits);

	if (o->releaser && (!o->waits || o->release_ns >= last->since))
		return (struct tk_event){
			.ts = o->release_ns, .site = o->release_site, .stack = o->release_stack, .thread = o->releaser,
		};
	return (struct tk_event){ .ts = last->since, .site = last->site, .stack = last->stack, .thread = last->thread };
}

uint32_t tk_round_over(struct tracker *t, uint32_t object)
{
	struct ptt_track_object *o = TK_OBJECT(t, object);
	const struct tk_event by = last_arrival(t, o);

	o->arrived = 0;
	o->releaser = 0;
	tk_wake_drop(t, object, tk_wake_excess(t, object));
	return tk_wake(t, &by, object, UINT32_MAX, PTT_WAKE_BARRIER);
}
