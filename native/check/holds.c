/* SPDX-License-Identifier: MIT */
/* holds.c - who holds what since when: the lists of threads and of objects. */
#include "internal.h"

uint32_t ck_hold_of(const struct ptt_check *c, uint32_t thread, uint32_t object)
{
	uint32_t hold = CK_THREAD(c, thread)->holds, of_object = CK_OBJECT(c, object)->holds;

	/* Along the shorter one of two lists: a thread may hold many locks, and a lock may have many readers. */
	while (hold && of_object) {
		if (CK_HOLD(c, hold)->object == object)
			return hold;
		if (CK_HOLD(c, of_object)->thread == thread)
			return of_object;
		hold = CK_HOLD(c, hold)->thread_next;
		of_object = CK_HOLD(c, of_object)->object_next;
	}
	return 0;
}

void ck_hold_begin(struct ptt_check *c, const struct ck_event *e, uint32_t object, uint8_t mode)
{
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_thread *t = CK_THREAD(c, e->thread);
	uint32_t number = c->free_hold;

	if (number)
		c->free_hold = CK_HOLD(c, number)->thread_next;
	else
		number = ck_new(c, &c->holds);
	if (!number)
		return;
	*CK_HOLD(c, number) = (struct ck_hold){
		.since = e->ts, .site = e->site, .address = e->object & PTT_OBJECT_MASK, .thread = e->thread, .object = object,
		.depth = 1, .thread_next = t->holds, .object_next = o->holds, .mode = mode, .kind = (uint8_t)o->kind,
	};
	if (o->holds)
		CK_HOLD(c, o->holds)->object_prev = number;
	if (t->holds)
		CK_HOLD(c, t->holds)->thread_prev = number;
	o->holds = t->holds = number;
	t->held += o->kind != NPTL_DOMAIN_ONCE;
	t->held_sum += ck_share_of(object, mode);
}

void ck_hold_end(struct ptt_check *c, uint32_t number)
{
	struct ck_hold *h = CK_HOLD(c, number);
	struct ck_thread *t = CK_THREAD(c, h->thread);

	if (h->thread_prev)
		CK_HOLD(c, h->thread_prev)->thread_next = h->thread_next;
	else
		t->holds = h->thread_next;
	if (h->thread_next)
		CK_HOLD(c, h->thread_next)->thread_prev = h->thread_prev;
	t->held -= h->kind != NPTL_DOMAIN_ONCE;
	t->held_sum -= ck_share_of(h->object, h->mode);
	if (h->object_prev)
		CK_HOLD(c, h->object_prev)->object_next = h->object_next;
	else
		CK_OBJECT(c, h->object)->holds = h->object_next;
	if (h->object_next)
		CK_HOLD(c, h->object_next)->object_prev = h->object_prev;
	h->thread_next = c->free_hold;
	c->free_hold = number;
}

void ck_drop_holds(struct ptt_check *c, uint32_t object)
{
	while (CK_OBJECT(c, object)->holds)
		ck_hold_end(c, CK_OBJECT(c, object)->holds);
}
