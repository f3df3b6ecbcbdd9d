/* SPDX-License-Identifier: MIT */
/* holds.c - who holds what since when: the lists of threads and of objects. */
#include "internal.h"

uint32_t ck_hold_of(const struct ptt_check *c, uint32_t thread, uint32_t object)
{
	uint32_t hold = CK_THREAD(c, thread)->holds;

	while (hold && CK_HOLD(c, hold)->object != object)
		hold = CK_HOLD(c, hold)->thread_next;
	return hold;
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
	o->holds = t->holds = number;
	t->held_sum += ck_share_of(object, mode);
}

void ck_hold_end(struct ptt_check *c, uint32_t number)
{
	struct ck_hold *h = CK_HOLD(c, number);
	struct ck_thread *t = CK_THREAD(c, h->thread);
	uint32_t *at = &t->holds;

	while (*at && *at != number)
		at = &CK_HOLD(c, *at)->thread_next;
	*at = h->thread_next;
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
