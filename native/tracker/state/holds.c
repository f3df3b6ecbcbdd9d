/* SPDX-License-Identifier: MIT */
/* holds.c - holds that are looked for, and holds that end. */
#include "hot.h"

uint32_t tk_hold_find(const struct tracker *t, uint32_t thread, uint32_t object)
{
	uint32_t hold = TK_THREAD(t, thread)->holds, of_object = TK_OBJECT(t, object)->holds;

	/* Along the shorter one of two lists: a thread may hold many locks, and a lock may have many readers. */
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

void tk_hold_end(struct tracker *t, uint32_t number)
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
