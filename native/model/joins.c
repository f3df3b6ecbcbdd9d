/* SPDX-License-Identifier: MIT */
/* joins.c - waits for the end of a thread. */
#include "internal.h"

static uint32_t join_target(const struct ptt_model *m, const struct md_event *e)
{
	uint32_t thread = md_thread_named(m, e);

	return thread && !(MD_THREAD(m, thread)->pub.flags & PTT_THREAD_JOINED) ? thread : 0;
}

void md_join_in(struct ptt_model *m, const struct md_event *e)
{
	uint32_t pair, object = md_object(m, e->thread, PTT_KIND_THREAD, e->object, e->ts, &pair);
	uint32_t wait = md_wait_begin(m, e, object, pair, PTT_MODE_EXCLUSIVE), target = join_target(m, e);

	if (!wait || !target)
		return;
	MD_WAITING(m, wait)->owner = target;
	if (MD_THREAD(m, target)->waits)
		md_wait_behind(MD_WAITING(m, wait), MD_WAITING(m, MD_THREAD(m, target)->waits));
}

void md_join_out(struct ptt_model *m, const struct md_event *e)
{
	uint32_t pair, object = md_object(m, e->thread, PTT_KIND_THREAD, e->object, e->ts, &pair);
	struct md_end end = md_end_of(m, e, PTT_JOIN, 0);
	struct md_wait w;
	bool known = md_wait_take(m, e, object, &w);
	uint32_t target = w.owner && !(MD_THREAD(m, w.owner)->pub.flags & PTT_THREAD_JOINED) ? w.owner :
											       join_target(m, e);

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
	if (known || end.dur > 0)
		md_wait_account(m, &w, &end);
}
