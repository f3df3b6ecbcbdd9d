/* SPDX-License-Identifier: MIT */
/* holds.c - holds that are looked for, and holds that end. */
#include "holds.h"

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
