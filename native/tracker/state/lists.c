/* SPDX-License-Identifier: MIT */
/* lists.c - holds and waits. Each lies in a list of its thread and in a list of its object. */
#include "hot.h"

uint32_t tk_hold_find(const struct tracker *t, uint32_t thread, uint32_t object)
{
	uint32_t hold = TK_THREAD(t, thread)->holds, of_object = TK_OBJECT(t, object)->holds;

	/* Walks both lists and stops with the shorter list: a thread may hold many locks, and a lock may have many readers. */
	while (hold && of_object) {
		if (TK_HOLD(t, hold)->object == object)
			return hold;
		if (TK_HOLD(t, of_object)->thread == thread)
			return of_object;
		hold = TK_HOLD(t, hold)->thread_next;
		of_object = TK_HOLD(t, of_object)->object_next;
	}
	return 0;
}

uint32_t tk_wait_begin(struct tracker *t, const struct tk_event *e, uint32_t object, uint8_t mode)
{
	const struct tk_element *element = &t->layout->wait;
	struct ptt_track_object *o = TK_OBJECT(t, object);
	struct ptt_track_thread *by = TK_THREAD(t, e->thread);
	uint32_t number = t->free_wait;

	if (number)
		t->free_wait = TK_WAIT(t, number)->thread_next;
	else
		number = rd_pool_new(&t->waits, &t->error);
	if (!number)
		return 0;
	if (element->fresh)
		memcpy(TK_WAIT(t, number), element->fresh, element->size);
	else
		memset(TK_WAIT(t, number), 0, element->size);
	*TK_WAIT(t, number) = (struct tk_wait){
		.since = e->ts, .id = ++t->wait_id, .site = e->site, .address = e->object & PTT_OBJECT_MASK,
		.thread = e->thread, .object = object, .stack = e->stack, .thread_next = by->waits, .object_next = o->waits,
		.kind = (uint8_t)o->kind, .mode = mode,
	};
	if (o->waits)
		TK_WAIT(t, o->waits)->object_prev = number;
	by->waits = o->waits = number;
	o->waiters++;
	return number;
}

uint32_t tk_wait_of(const struct tracker *t, uint32_t thread, uint32_t object)
{
	uint32_t wait = TK_THREAD(t, thread)->waits;

	while (wait && TK_WAIT(t, wait)->object != object)
		wait = TK_WAIT(t, wait)->thread_next;
	return wait;
}

uint32_t tk_wait_at(const struct tracker *t, const struct tk_event *e)
{
	uint32_t wait = TK_THREAD(t, e->thread)->waits;

	while (wait && (TK_WAIT(t, wait)->kind != e->id >> 6 ||
			TK_WAIT(t, wait)->address != (e->object & PTT_OBJECT_MASK)))
		wait = TK_WAIT(t, wait)->thread_next;
	return wait;
}

void tk_wait_end(struct tracker *t, uint32_t number)
{
	struct tk_wait *w = TK_WAIT(t, number);
	struct ptt_track_object *o = TK_OBJECT(t, w->object);
	uint32_t *at = &TK_THREAD(t, w->thread)->waits;

	while (*at && *at != number)
		at = &TK_WAIT(t, *at)->thread_next;
	*at = w->thread_next;
	*(w->object_prev ? &TK_WAIT(t, w->object_prev)->object_next : &o->waits) = w->object_next;
	if (w->object_next)
		TK_WAIT(t, w->object_next)->object_prev = w->object_prev;
	o->waiters--;
	w->thread_next = t->free_wait;
	t->free_wait = number;
}
