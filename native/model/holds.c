/* SPDX-License-Identifier: MIT */
/* holds.c - holds that are looked for, and holds that end. */
#include "holds.h"

static void leave_place(uint64_t *places, uint8_t place)
{
	*places &= ~(UINT64_C(1) << place);
}

uint32_t md_hold_find(const struct ptt_model *m, uint32_t thread, uint32_t object)
{
	uint32_t hold = MD_THREAD(m, thread)->holds, of_object = MD_OBJECT(m, object)->holds;

	/* Along the shorter one of two lists: a thread may hold many locks, and a lock may have many readers. */
	while (hold && of_object) {
		if (MD_HOLD(m, hold)->object == object)
			return hold;
		if (MD_HOLD(m, of_object)->thread == thread)
			return of_object;
		hold = MD_HOLD(m, hold)->thread_next;
		of_object = MD_HOLD(m, of_object)->object_next;
	}
	return 0;
}

void md_hold_unlink(struct ptt_model *m, uint32_t number)
{
	struct md_hold *h = MD_HOLD(m, number);
	struct md_object *o = MD_OBJECT(m, h->object);

	if (h->thread_prev)
		MD_HOLD(m, h->thread_prev)->thread_next = h->thread_next;
	else
		MD_THREAD(m, h->thread)->holds = h->thread_next;
	if (h->thread_next)
		MD_HOLD(m, h->thread_next)->thread_prev = h->thread_prev;
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

void md_drop_holds(struct ptt_model *m, uint32_t object, int64_t ts)
{
	struct md_object *o = MD_OBJECT(m, object);

	md_share(m, o, ts);
	while (o->holds) {
		const struct md_hold *h = MD_HOLD(m, o->holds);

		if (o->share != h->share)
			md_charge(m, md_blame(m, object, h->thread, h->site), (int64_t)(o->share - h->share));
		md_hold_unlink(m, o->holds);
	}
	md_close_tail(m, o, ts);
}
