/* SPDX-License-Identifier: MIT */
/* futexes.c - waits by system call for locks that are compiled into the program, if the kind of lock is known. */
/*
 * The trace has only the waits for such a lock. So its holder is unknown, unless the holder has waited for the lock. These waits
 * matter when all threads of a process are blocked. Waits for futexes of unknown purpose are only counted. Waits that any process
 * may end are left out.
 */
#include <linux/futex.h>

#include "catalog.h"
#include "../facts.h"

void ck_futex_in(struct ptt_check *c, const struct tk_event *e)
{
	int64_t kind = tk_number(&e->e, TK_LOCK, 0);
	struct ck_thread *t = CK_THREAD(c, e->thread);
	struct ck_wait *w;

	if (kind < 0 || kind >= ptt_futex_kind_count)
		kind = 0;
	/* A new wait for the same futex: the thread had not got the lock. */
	if (t->won.object && CK_OBJECT(c, t->won.object)->address == (e->object & PTT_OBJECT_MASK))
		t->won.object = 0;
	t->futex_unknown = ptt_futex_kinds[kind].waits == PTT_FUTEX_UNKNOWN && !tk_is_numbered(e->object);
	c->futex_waits += t->futex_unknown;
	if (!kind || ptt_futex_kinds[kind].anyone)
		return;
	w = CK_WAITING(c, ck_wait_begin(c, e, ck_use(c, e, PTT_KIND_FUTEX), PTT_MODE_EXCLUSIVE));
	w->timed = tk_number(&e->e, TK_TIMEOUT, -1) >= 0;
	/* libstdc++ never sets the flag for a private futex, so the memory decides */
	w->shared = !(tk_number(&e->e, TK_OP, 0) & FUTEX_PRIVATE_FLAG) && tk_share_at(&c->t, e->process, e->object);
	w->futex = (uint8_t)kind;
}

void ck_futex_out(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t wait = tk_wait_at(&c->t, e), object = CK_WAITING(c, wait)->object;
	struct ck_thread *t = CK_THREAD(c, e->thread);
	const struct ck_wait *w = CK_WAITING(c, wait);

	/* A thread that did not wait, or gave up, does not count. */
	if (tk_number(&e->e, TK_RESULT, 0) != 0)
		c->futex_waits -= t->futex_unknown;
	t->futex_unknown = false;
	if (!wait)
		return;
	if (tk_number(&e->e, TK_RESULT, 0) != 0 || !tk_wake_use(&c->t, object, CK_WAITING(c, wait)->since))
		tk_wake_drop(&c->t, object, tk_wake_excess(&c->t, object));
	if (ptt_futex_kinds[w->futex].hold && !w->timed)
		t->won = (struct ck_won){ .object = object, .since = e->ts };
	tk_wait_end(&c->t, wait);
}

void ck_futex_wake(struct ptt_check *c, const struct tk_event *e)
{
	int64_t count = tk_number(&e->e, TK_COUNT, 1);
	uint32_t object = ck_use(c, e, PTT_KIND_FUTEX);

	ck_given_back(c, e, object);
	tk_wake(&c->t, e, object, count > 0 ? (uint32_t)count : 0, PTT_WAKE_FUTEX);
}
