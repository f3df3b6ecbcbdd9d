/* SPDX-License-Identifier: MIT */
/* holds.c - who holds which lock: the lists of threads and of objects, and the places in which holds are drawn. */
#include "internal.h"

/* The first free place, which is taken; the last one has room for all that find no other. */
static uint8_t take_place(uint64_t *places)
{
	uint8_t place = ~*places ? (uint8_t)__builtin_ctzll(~*places) : PTT_MODEL_PLACES - 1;

	if (place < PTT_MODEL_PLACES - 1)
		*places |= UINT64_C(1) << place;
	return place;
}

static void leave_place(uint64_t *places, uint8_t place)
{
	*places &= ~(UINT64_C(1) << place);
}

uint32_t md_hold_find(const struct ptt_model *m, uint32_t thread, uint32_t object)
{
	uint32_t hold = MD_THREAD(m, thread)->holds;

	while (hold && MD_HOLD(m, hold)->object != object)
		hold = MD_HOLD(m, hold)->thread_next;
	return hold;
}

void md_hold_begin(struct ptt_model *m, const struct md_event *e, uint32_t object, uint32_t pair, uint32_t site,
		   uint8_t mode)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_thread *t = MD_THREAD(m, e->thread);
	uint32_t number = m->free_hold;

	if (number)
		m->free_hold = MD_HOLD(m, number)->thread_next;
	else
		number = md_new(m, &m->holds);
	if (!number)
		return;
	*MD_HOLD(m, number) = (struct md_hold){
		.since = e->ts,
		.share = o->share,
		.address = e->object,
		.thread = e->thread,
		.object = object,
		.pair = pair,
		.site = site,
		.depth = 1,
		.max_waiters = o->pub.waiters,
		.thread_next = t->holds,
		.object_next = o->holds,
		.mode = mode,
		.thread_place = take_place(&t->places),
		.object_place = take_place(&o->places),
	};
	if (o->holds)
		MD_HOLD(m, o->holds)->object_prev = number;
	o->holds = t->holds = number;
	o->pub.holders++;
	o->pub.holder = e->thread;
	t->pub.held++;
}

void md_hold_unlink(struct ptt_model *m, uint32_t number)
{
	struct md_hold *h = MD_HOLD(m, number);
	struct md_object *o = MD_OBJECT(m, h->object);
	uint32_t *at = &MD_THREAD(m, h->thread)->holds;

	while (*at && *at != number)
		at = &MD_HOLD(m, *at)->thread_next;
	*at = h->thread_next;
	MD_THREAD(m, h->thread)->pub.held--;
	leave_place(&MD_THREAD(m, h->thread)->places, h->thread_place);
	leave_place(&o->places, h->object_place);
	if (h->object_prev)
		MD_HOLD(m, h->object_prev)->object_next = h->object_next;
	else
		o->holds = h->object_next;
	if (h->object_next)
		MD_HOLD(m, h->object_next)->object_prev = h->object_prev;
	o->pub.holders--;
	o->pub.holder = o->holds ? MD_HOLD(m, o->holds)->thread : 0;
	h->thread_next = m->free_hold;
	m->free_hold = number;
}

void md_drop_holds(struct ptt_model *m, uint32_t object)
{
	struct md_object *o = MD_OBJECT(m, object);

	while (o->holds)
		md_hold_unlink(m, o->holds);
	o->tail = 0;
}
