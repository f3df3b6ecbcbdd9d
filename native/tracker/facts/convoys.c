/* SPDX-License-Identifier: MIT */
/* convoys.c - locks that threads hand to one another, each of them asleep until it is its turn. */
#include "facts.h"

/* In a convoy a lock is taken by a thread that waited for it, while others wait, so often at least, */
#define PASSES 100u

static void report(struct ptt_check *c, const struct tk_event *e, uint32_t object)
{
	const struct ck_object *o = CK_OBJECT(c, object);
	int64_t lasted = o->release_ns - o->convoy_ns;
	struct tk_event at = *e;

	/* and it is free for longer than it is held: to wake somebody takes longer than what the lock is for. */
	if (o->passes < PASSES || o->convoy_free * 2 < lasted)
		return;
	at.site = o->release_site;
	if (!ck_found_more(c, PTT_FACT_CONVOY, &at, (uint64_t)object << 16, 0, lasted))
		return;
	ck_step(c, PTT_STEP_PASSED, o->releaser, o->release_ns, o->release_site, object)->value = o->passes;
	ck_step_now(c, PTT_STEP_FREE, e, object)->value = o->convoy_free;
}

void ck_pass(struct ptt_check *c, const struct tk_event *e, uint32_t object, enum tk_how how)
{
	struct ck_object *o = CK_OBJECT(c, object);

	if (how == TK_WAITED && o->waiters && o->releaser && (!o->passes || o->release_ns >= o->convoy_ns)) {
		if (!o->passes) {
			o->convoy_ns = o->release_ns;
			o->convoy_free = 0;
		}
		o->passes++;
		o->convoy_free += e->ts - o->release_ns;
		return;
	}
	report(c, e, object);
	o->passes = 0;
}
