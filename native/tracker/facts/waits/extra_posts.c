/* SPDX-License-Identifier: MIT */
/* extra_posts.c - semaphores used as locks and posted once too often, so that two threads have them at the same time. */
/*
 * A thread without a unit posts the semaphore. It may hand over the unit, report a job, or add a unit for all threads. The post is
 * one too many if three things hold. The value goes above 1. Two threads have a unit at the same time. Each thread gives back
 * its own unit, then and later.
 */
#include "../facts.h"

static uint32_t find(const struct ck_extra *x, uint32_t thread)
{
	uint32_t i = 0;

	while (i < x->inside && x->in[i].thread != thread)
		i++;
	return i;
}

static void is_no_lock(struct ptt_check *c, struct ck_extra *x)
{
	x->no_lock = true;
	if (x->fact)
		CK_FACT(c, x->fact)->flags |= PTT_FLAG_DROPPED;
}

void ck_extra_begin(struct ptt_check *c, const struct tk_event *e, uint32_t object)
{
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_extra *x;

	if (!ck_sem_proven(o) || o->sem_hold == e->thread || o->order.units != 1 || ck_sem_use(c, o) ||
	    CK_THREAD(c, e->thread)->asked_sem != object)
		return;
	o->extra = ck_new(c, &c->extras);
	if (!o->extra)
		return;
	x = CK_EXTRA(c, o->extra);
	*x = (struct ck_extra){ .object = object, .post = ck_now(e), .value = 2 };
	if (!o->sem_hold)
		return;
	/* the last release of a semaphore is the last acquisition */
	x->value = 1;
	x->in[x->inside++] = (struct ck_last){ .ts = o->release_ns, .site = o->release_site, .thread = o->sem_hold };
}

void ck_extra_taken(struct ptt_check *c, const struct tk_event *e, uint32_t number)
{
	struct ck_extra *x = CK_EXTRA(c, number);

	if (x->no_lock)
		return;
	if (x->inside == CK_INSIDE || find(x, e->thread) < x->inside) {
		is_no_lock(c, x);
		return;
	}
	x->in[x->inside++] = ck_now(e);
	x->value--;
}

static void report(struct ptt_check *c, const struct tk_event *e, struct ck_extra *x)
{
	struct tk_event at = *e;

	at.site = x->post.site;
	x->fact = ck_fact_add(c, PTT_FACT_EXTRA_POST, &at, (uint64_t)x->object << 16, at.site, PTT_FLAG_WHOLE);
	if (!x->fact)
		return;
	ck_step_last(c, PTT_STEP_POSTED, &x->post, x->object);
	ck_step_last(c, PTT_STEP_TOOK, &x->pair[0], x->object);
	ck_step_last(c, PTT_STEP_TOOK, &x->pair[1], x->object);
}

void ck_extra_posted(struct ptt_check *c, const struct tk_event *e, uint32_t number)
{
	struct ck_extra *x = CK_EXTRA(c, number);
	uint32_t i = find(x, e->thread);

	if (x->no_lock)
		return;
	if (++x->value > 1)
		x->above = true;
	if (i < x->inside) {
		struct ck_last taken = x->in[i];

		x->in[i] = x->in[--x->inside];
		/* both threads have given back the units that they had at the same time */
		if (!x->pair[1].thread && x->pair[0].thread && x->with == e->thread)
			x->pair[1] = taken;
		if (!x->pair[1].thread && x->inside) {
			x->pair[0] = taken;
			x->with = x->in[0].thread;
		}
	} else if (CK_THREAD(c, e->thread)->asked_sem != x->object) {
		is_no_lock(c, x);
		return;
	}
	if (x->above && x->pair[1].thread && !x->fact)
		report(c, e, x);
}

void ck_extra_finish(struct ptt_check *c)
{
	for (uint32_t i = 1; i < c->extras.count; i++) {
		struct ck_extra *x = CK_EXTRA(c, i);

		/* A thread that gives back its units has none when it ends, or when it asks for the semaphore again. */
		for (uint32_t k = 0; k < x->inside && !x->no_lock; k++)
			if (CK_THREAD(c, x->in[k].thread)->flags & PTT_THREAD_ENDED ||
			    tk_wait_of(&c->t, x->in[k].thread, x->object))
				is_no_lock(c, x);
	}
}
