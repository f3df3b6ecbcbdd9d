/* SPDX-License-Identifier: MIT */
/* holds.c - ends of holds, and holds with an unknown end. */
#include "../holds.h"

static void leave_place(uint64_t *places, uint8_t place)
{
	*places &= ~(UINT64_C(1) << place);
}

void md_hold_unlink(struct ptt_model *m, uint32_t number)
{
	const struct md_hold *h = MD_HOLD(m, number);

	md_unwatch_hold(m, number);
	leave_place(&MD_THREAD(m, h->thread)->places, h->thread_place);
	leave_place(&MD_OBJECT(m, h->object)->places, h->object_place);
	tk_hold_end(&m->t, number);
}

void md_crowd_tell_holds(struct ptt_model *m, struct md_object *o)
{
	/* The latest hold comes first, and no hold has seen more waiters than an earlier hold. */
	for (uint32_t i = o->pub.holds; i && MD_HOLD(m, i)->max_waiters < o->crowd; i = MD_HOLD(m, i)->object_next)
		MD_HOLD(m, i)->max_waiters = o->crowd;
	o->crowd = 0;
}

void md_no_lock(struct ptt_model *m, uint32_t object, int64_t ts)
{
	struct md_object *o = MD_OBJECT(m, object);

	if (!o->as_lock)
		return;
	md_share(m, o, ts);
	for (uint32_t i = o->pub.waits; i; i = MD_WAITING(m, i)->object_next) {
		struct md_wait *w = MD_WAITING(m, i);

		if (w->counted)
			md_unblame(m, object, w->since, ts, o->held - w->held);
		w->owner = w->owner_site = w->owner_stack = w->released_stack = 0;
		w->parent = w->chain = 0;
	}
	while (o->pub.holds)
		md_hold_unlink(m, o->pub.holds);
	o->sharing = 0;
	o->as_lock = o->given_away = false;
}

void md_drop_holds(struct ptt_model *m, uint32_t object, int64_t ts)
{
	struct md_object *o = MD_OBJECT(m, object);

	if (o->pub.kind == PTT_KIND_SEM) {
		md_no_lock(m, object, ts);
		return;
	}
	md_share(m, o, ts);
	while (o->pub.holds) {
		const struct md_hold *h = MD_HOLD(m, o->pub.holds);

		md_cut_hold(m, o->pub.holds, ts, false);
		if (o->share != h->share)
			md_charge(m, md_blame(m, object, h->thread, h->site_row), (int64_t)(o->share - h->share));
		md_hold_unlink(m, o->pub.holds);
	}
	md_close_tail(m, o, ts);
}
