/* SPDX-License-Identifier: MIT */
/* hot.h - inline functions that run for every event: access to elements, holds, and the loop over events. */
/*
 * A consumer defines TK_IS_PROCESS, TK_IS_THREAD, TK_IS_OBJECT, TK_IS_HOLD, TK_IS_WAIT, TK_IS_WAKEUP and TK_IS_CACHE as the types
 * of its elements before it includes this file. Then the compiler knows the size of an element. The files of the tracker itself
 * take the size from the layout.
 */
#ifndef PTT_TRACKER_HOT_H
#define PTT_TRACKER_HOT_H

#include "state.h"

#ifdef TK_IS_THREAD
#define TK_AT(pool, type, is, i) ((struct type *)(void *)&((is *)(void *)(pool)->items)[i])
#define TK_PROCESS(t, i) ((struct tk_process *)(void *)&((TK_IS_PROCESS *)(void *)(t)->processes)[i])
#else
#define TK_AT(pool, type, is, i) ((struct type *)(void *)((pool)->items + (pool)->size * (i)))
#define TK_PROCESS(t, i) ((struct tk_process *)(void *)((t)->processes + (t)->layout->process.size * (i)))
#endif
#define TK_THREAD(t, i) TK_AT(&(t)->threads, ptt_track_thread, TK_IS_THREAD, i)
#define TK_OBJECT(t, i) TK_AT(&(t)->objects, ptt_track_object, TK_IS_OBJECT, i)
#define TK_HOLD(t, i) TK_AT(&(t)->holds, tk_hold, TK_IS_HOLD, i)
#define TK_WAIT(t, i) TK_AT(&(t)->waits, tk_wait, TK_IS_WAIT, i)
#define TK_WAKEUP(t, i) TK_AT(&(t)->wakeups, tk_wakeup, TK_IS_WAKEUP, i)
#define TK_WAKING(t, o) (&((struct tk_waking *)(void *)(t)->wakings.items)[(o)->waking])
#define TK_SHARE(t, i) (&((struct tk_share *)(void *)(t)->shares.items)[i])

/* tk_cached - the cache entry of the object at an address, destroyed or not. Adds the object if there is none. */
static inline struct tk_cached *tk_cached(struct tracker *t, const struct tk_event *e, uint32_t kind, uint64_t address)
{
	uint64_t key = tk_key(address, kind);
	struct tk_cached *of_thread = TK_AT(&t->caches, tk_cached, TK_IS_CACHE, e->thread);
	struct tk_cached *cached = &of_thread[(key >> 3 ^ key >> 6 ^ key >> 12) % TK_CACHE];

	if (unlikely(cached->key != key || TK_OBJECT(t, cached->object)->flags & PTT_OBJECT_ENDED))
		cached = tk_meet(t, e, kind, address, cached);
	return cached;
}

static inline uint32_t tk_object(struct tracker *t, const struct tk_event *e, uint32_t kind, uint64_t address)
{
	return tk_cached(t, e, kind, address)->object;
}

/*
 * tk_hold_begin - adds a hold at the head of both lists. Return: its number; 0: there is no memory
 *
 * The consumer sets its own members of the element. Inline, because every acquisition calls it.
 */
static inline uint32_t tk_hold_begin(struct tracker *t, const struct tk_event *e, uint32_t object, uint8_t mode)
{
	struct ptt_track_object *o = TK_OBJECT(t, object);
	struct ptt_track_thread *by = TK_THREAD(t, e->thread);
	uint32_t number = t->free_hold;

	if (likely(number))
		t->free_hold = TK_HOLD(t, number)->thread_next;
	else
		number = rd_pool_new(&t->holds, &t->error);
	if (unlikely(!number))
		return 0;
	*TK_HOLD(t, number) = (struct tk_hold){
		.since = e->ts, .site = e->site, .address = e->object & PTT_OBJECT_MASK, .thread = e->thread,
		.object = object, .stack = e->stack, .depth = 1, .thread_next = by->holds, .object_next = o->holds,
		.kind = (uint8_t)o->kind, .mode = mode,
	};
	if (o->holds)
		TK_HOLD(t, o->holds)->object_prev = number;
	if (by->holds)
		TK_HOLD(t, by->holds)->thread_prev = number;
	o->holds = by->holds = number;
	o->holders++;
	o->holder = e->thread;
	by->held++;
	return number;
}

/* tk_hold_end - removes a hold from all lists. Its element does not change until another hold begins. */
static inline void tk_hold_end(struct tracker *t, uint32_t number)
{
	struct tk_hold *h = TK_HOLD(t, number);
	struct ptt_track_thread *by = TK_THREAD(t, h->thread);
	struct ptt_track_object *o = TK_OBJECT(t, h->object);

	*(h->thread_prev ? &TK_HOLD(t, h->thread_prev)->thread_next : &by->holds) = h->thread_next;
	if (h->thread_next)
		TK_HOLD(t, h->thread_next)->thread_prev = h->thread_prev;
	*(h->object_prev ? &TK_HOLD(t, h->object_prev)->object_next : &o->holds) = h->object_next;
	if (h->object_next)
		TK_HOLD(t, h->object_next)->object_prev = h->object_prev;
	by->held--;
	o->holders--;
	o->holder = o->holds ? TK_HOLD(t, o->holds)->thread : 0;
	h->thread_next = t->free_hold;
	t->free_hold = number;
}

/* tk_released - notes an event as the last release of an object. */
static inline void tk_released(struct tracker *t, uint32_t object, const struct tk_event *e)
{
	struct ptt_track_object *o = TK_OBJECT(t, object);

	o->release_ns = e->ts;
	o->release_site = e->site;
	o->release_stack = e->stack;
	o->releaser = e->thread;
}

/* Number of the last holds of a thread that are compared one by one. */
#define TK_NEAR 8u

/* tk_hold_released - the hold that a release ends, or 0. Most threads release the lock that they took last. */
static inline uint32_t tk_hold_released(const struct tracker *t, const struct tk_event *e)
{
	uint32_t hold = TK_THREAD(t, e->thread)->holds, kind = e->id >> 6, near = TK_NEAR;
	uint64_t address = e->object & PTT_OBJECT_MASK;

	while (hold && (TK_HOLD(t, hold)->address != address || TK_HOLD(t, hold)->kind != kind)) {
		if (unlikely(!--near))
			return tk_hold_find(t, e->thread, tk_known_object(t, e->process, kind, address));
		hold = TK_HOLD(t, hold)->thread_next;
	}
	return hold;
}

/* ---- the events ---- */

typedef void tk_event_fn(struct tracker *t, struct tk_event *e, enum tk_action action);
typedef void tk_switch_fn(struct tracker *t, const struct tk_event *e, enum tk_action action);

/*
 * tk_feed - updates the state for the events [from, to), and hands each event to the consumer
 *
 * @columns: all columns; the column of processors is optional
 * @switched: gets the context switches of living threads, which @event does not get; NULL = ignore them
 *
 * Return: the error of the tracker.
 */
static inline __attribute__((always_inline)) int tk_feed(struct tracker *t, const struct ptt_columns *columns,
							 int64_t from, int64_t to, tk_event_fn *event,
							 tk_switch_fn *switched)
{
	const struct ptt_columns here = *columns, *c = &here;

	for (int64_t i = from; i < to && !t->error; i++) {
		uint32_t number = c->thread[i], id = c->id[i] & PTT_ID_MASK;
		const struct tk_meaning *m = &tk_meanings[id];
		enum tk_action action = (enum tk_action)m->action;
		struct tk_process *process;
		struct ptt_track_thread *thread;
		struct tk_event e;

		if (unlikely(number >= t->known_count))
			continue;
		e.e = (struct ptt_event){ c->ts[i], c->object[i], c->site[i], c->payload[i], number, id,
					  c->stack[i], c->reading[i] };
		e.process = t->known[number].process;
		e.thread = t->known[number].thread;
		if (unlikely(action >= TK_SWITCHED_IN)) {
			t->known[number].switches = true;
			t->known[number].cpu = c->cpu ? c->cpu[i] : PTT_CPU_NONE;
			if (switched && t->known[number].seen && !(TK_THREAD(t, e.thread)->flags & PTT_THREAD_ENDED))
				switched(t, &e, action);
			continue;
		}
		if (unlikely(!t->known[number].seen || action == TK_BEGIN) && !tk_first_event(t, &e, action))
			continue;
		thread = TK_THREAD(t, e.thread);
		process = TK_PROCESS(t, e.process);
		process->last = e.ts;
		/* Events of level 1 are waits and releases that end waits. Only changes of state, from level 2 on, say which locks are held. */
		if (unlikely(!process->full[e.id >> 6]))
			process->full[e.id >> 6] = m->level >= 2;
		event(t, &e, action);
		thread->last_ns = e.ts;
	}
	return t->error;
}

#endif
