/* SPDX-License-Identifier: MIT */
/* joins.c - waits for the end of a thread. */
#include "../sums.h"

void md_join_in(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_THREAD, e->object, &pair);
	uint32_t wait = md_wait_begin(m, e, object, PTT_MODE_EXCLUSIVE), target = tk_join_target(&m->t, e, 0);

	if (!wait || !target)
		return;
	MD_WAITING(m, wait)->owner = target;
	if (MD_THREAD(m, target)->pub.waits)
		md_wait_behind(MD_WAITING(m, wait), MD_WAITING(m, MD_THREAD(m, target)->pub.waits));
}

void md_join_out(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_THREAD, e->object, &pair);
	struct md_end end = md_end_of(e, PTT_JOIN, 0);
	struct md_wait w;
	bool known = md_wait_take(m, e, object, &w);
	uint32_t target = tk_join_target(&m->t, e, w.owner);

	w.owner = target;
	if (!end.result && target) {
		struct md_thread *t = MD_THREAD(m, target);

		t->pub.flags |= PTT_THREAD_JOINED;
		t->pub.join_ns = e->ts;
		if (t->pub.flags & PTT_THREAD_ENDED) {
			end.waker = target;
			end.wake = t->pub.end_ns;
			end.wake_kind = PTT_WAKE_END;
		}
	}
	if (!end.result) /* its pthread_t may mean another thread from now on */
		MD_OBJECT(m, object)->pub.flags |= PTT_OBJECT_ENDED;
	if (end.result && end.result != ETIMEDOUT) /* refused: it did not block */
		md_not_in_crowd(m, MD_OBJECT(m, object), w.since);
	else if (known || end.dur > 0)
		md_wait_account(m, &w, &end);
}
