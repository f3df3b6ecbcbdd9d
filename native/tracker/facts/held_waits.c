/* SPDX-License-Identifier: MIT */
/* held_waits.c - waits for no lock, in which a thread keeps a lock that others ask for. */
#include "facts.h"

/* So many of the locks that a thread took last, and of the waits for each, are looked at. */
#define NEAR 8u

uint32_t ck_first_wait(const struct ptt_check *c, uint32_t object)
{
	uint32_t wait = CK_OBJECT(c, object)->waits;

	for (uint32_t n = 1; n < NEAR && wait && CK_WAITING(c, wait)->object_next; n++)
		wait = CK_WAITING(c, wait)->object_next;
	return wait;
}

static void waited_with(struct ptt_check *c, const struct tk_event *e, uint32_t wait, uint32_t hold)
{
	const struct ck_wait *w = CK_WAITING(c, wait);
	uint32_t object = CK_HOLD(c, hold)->object, asked = ck_first_wait(c, object);
	struct tk_event at = *e;
	int64_t since;

	if (!asked)
		return;
	since = CK_WAITING(c, asked)->since > w->since ? CK_WAITING(c, asked)->since : w->since;
	if (e->ts - since < c->long_wait)
		return;
	at.site = w->site;
	if (!ck_found_more(c, PTT_FACT_WAIT_WITH_HOLD, &at, (uint64_t)object << 16, w->site, e->ts - since))
		return;
	ck_step_hold(c, hold);
	ck_step_wait(c, wait, 0);
	ck_step_wait(c, asked, e->thread);
}

void ck_waited_with_holds(struct ptt_check *c, const struct tk_event *e, uint32_t wait)
{
	const struct ck_wait *w = CK_WAITING(c, wait);
	uint32_t hold = CK_THREAD(c, e->thread)->holds;

	/* A semaphore that whoever took it gives back is a lock. */
	if (!wait || CK_OBJECT(c, w->object)->flags & CK_AS_LOCK)
		return;
	/* The mutex of a condition wait was taken again while it went on, unless the thread had taken it more than once. */
	for (uint32_t n = 0; hold && n < NEAR; n++, hold = CK_HOLD(c, hold)->thread_next)
		if (CK_HOLD(c, hold)->since <= w->since)
			waited_with(c, e, wait, hold);
}
