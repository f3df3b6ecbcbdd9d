/* SPDX-License-Identifier: MIT */
/* renewal.c - forgets the state of objects that were destroyed, initialized again, or not followed for some time. */
#include "promises.h"

void vf_drop_holds(struct ptt_verify *v, struct vf_object *o)
{
	while (o->holds)
		tk_hold_end(&v->t, o->holds);
}

static void drop_waiters(struct ptt_verify *v, struct vf_object *o)
{
	while (o->waits) {
		struct vf_object *mutex = vf_mutex_of(v, VF_WAITER(v, o->waits));

		if (mutex && mutex->calls)
			mutex->calls--;
		tk_wait_end(&v->t, o->waits);
	}
}

static void begin(struct ptt_verify *v, struct vf_object *o)
{
	o->epoch = VF_PROCESS(v, o->process)->epoch;
	if (tk_share_at(&v->t, o->process, o->address))
		o->flags |= PTT_OBJECT_SHARED;
	o->last_ts = o->other_ts = TK_NEVER;
}

void vf_object_made(struct tracker *t, uint32_t object)
{
	struct ptt_verify *v = (struct ptt_verify *)(void *)t;

	begin(v, VF_OBJECT(v, object));
}

void vf_renew(struct ptt_verify *v, struct vf_object *o)
{
	struct vf_object fresh = {
		.address = o->address, .first_ns = o->first_ns, .process = o->process, .kind = o->kind,
		.generation = o->generation + 1, .process_next = o->process_next, .waking = o->waking,
		.before_it = o->before_it || o->flags & PTT_OBJECT_ENDED,
	};

	vf_drop_holds(v, o);
	drop_waiters(v, o);
	tk_wake_drop(&v->t, vf_number_of(v, o), UINT32_MAX);
	*o = fresh;
	begin(v, o);
}

void vf_object_gone(struct ptt_verify *v, struct vf_object *o)
{
	vf_renew(v, o); /* drops its holds and waits */
	o->flags |= PTT_OBJECT_ENDED;
}
