/* SPDX-License-Identifier: MIT */
/* holds.c - holds that end, and holds whose end cannot be known. */
#include "holds.h"

static void leave_place(uint64_t *places, uint8_t place)
{
	*places &= ~(UINT64_C(1) << place);
}

void md_hold_unlink(struct ptt_model *m, uint32_t number)
{
	const struct md_hold *h = MD_HOLD(m, number);

	leave_place(&MD_THREAD(m, h->thread)->places, h->thread_place);
	leave_place(&MD_OBJECT(m, h->object)->places, h->object_place);
	tk_hold_end(&m->t, number);
}

void md_drop_holds(struct ptt_model *m, uint32_t object, int64_t ts)
{
	struct md_object *o = MD_OBJECT(m, object);

	md_share(m, o, ts);
	while (o->pub.holds) {
		const struct md_hold *h = MD_HOLD(m, o->pub.holds);

		if (o->share != h->share)
			md_charge(m, md_blame(m, object, h->thread, h->site_row), (int64_t)(o->share - h->share));
		md_hold_unlink(m, o->pub.holds);
	}
	md_close_tail(m, o, ts);
}
