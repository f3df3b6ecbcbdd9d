/* SPDX-License-Identifier: MIT */
/* waits.c - who waits for what since when: the lists of threads and of objects. */
#include "internal.h"

uint32_t ck_wait_begin(struct ptt_check *c, const struct ck_event *e, uint32_t object, uint8_t mode)
{
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_thread *t = CK_THREAD(c, e->thread);
	struct ck_wait gone, *w;
	uint32_t number;

	/* The end of an earlier one was lost. */
	ck_wait_end(c, e->thread, object, &gone);
	number = c->free_wait;
	if (number)
		c->free_wait = CK_WAITING(c, number)->thread_next;
	else
		number = ck_new(c, &c->waits);
	w = CK_WAITING(c, number);
	*w = (struct ck_wait){
		.since = e->ts, .site = e->site, .id = ++c->wait_id, .address = e->object & PTT_OBJECT_MASK,
		.thread = e->thread, .object = object,
		.thread_next = t->waits, .object_next = o->waits, .kind = (uint8_t)o->kind, .mode = mode,
		.timed = ck_number(c, e, CK_TIMED, 0) != 0,
	};
	if (o->waits)
		CK_WAITING(c, o->waits)->object_prev = number;
	t->waits = o->waits = number;
	o->waiters++;
	return number;
}

static uint32_t wait_of(const struct ptt_check *c, uint32_t thread, uint32_t object)
{
	uint32_t wait = CK_THREAD(c, thread)->waits;

	while (wait && CK_WAITING(c, wait)->object != object)
		wait = CK_WAITING(c, wait)->thread_next;
	return wait;
}

uint32_t ck_wait_at(const struct ptt_check *c, const struct ck_event *e)
{
	uint32_t wait = CK_THREAD(c, e->thread)->waits;

	while (wait && (CK_WAITING(c, wait)->kind != e->id >> 6 ||
			CK_WAITING(c, wait)->address != (e->object & PTT_OBJECT_MASK)))
		wait = CK_WAITING(c, wait)->thread_next;
	return wait;
}

bool ck_wait_end(struct ptt_check *c, uint32_t thread, uint32_t object, struct ck_wait *out)
{
	uint32_t number = wait_of(c, thread, object), *at = &CK_THREAD(c, thread)->waits;
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_wait *w = CK_WAITING(c, number);

	if (!number)
		return false;
	*out = *w;
	while (*at != number)
		at = &CK_WAITING(c, *at)->thread_next;
	*at = w->thread_next;
	if (w->object_prev)
		CK_WAITING(c, w->object_prev)->object_next = w->object_next;
	else
		o->waits = w->object_next;
	if (w->object_next)
		CK_WAITING(c, w->object_next)->object_prev = w->object_prev;
	o->waiters--;
	w->thread_next = c->free_wait;
	c->free_wait = number;
	return true;
}
