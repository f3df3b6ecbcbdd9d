/* SPDX-License-Identifier: MIT */
/* threads.c - the columns of threads that the tracker does not have, and the choice of threads that count. */
#include "../sums.h"

int ptt_model_only_thread(struct ptt_model *m, uint32_t number)
{
	m->only_threads = true;
	if (number == UINT32_MAX)
		return 0;
	if (rd_array_reach((void **)&m->t.known, &m->t.known_count, number, sizeof(*m->t.known)) < 0)
		return -ENOMEM;
	m->t.known[number].allowed = true;
	return 0;
}

uint32_t md_thread_of_tid(struct ptt_model *m, uint32_t process, uint32_t tid)
{
	uint32_t thread = tk_thread_of_tid(&m->t, process, tid);

	/* A thread without events of its own. */
	if (!thread && m->t.known_count < UINT32_MAX && ptt_tracker_thread(&m->t, m->t.known_count, process, tid) == 0)
		thread = tk_thread_of_tid(&m->t, process, tid);
	return thread;
}

void md_silence(struct ptt_model *m, struct md_thread *t, int64_t until)
{
	if (!t->pub.waits && !t->call && t->pub.last_ns >= t->pub.first_ns)
		t->pub.silent_ns += (uint64_t)md_portion(m, t->pub.last_ns, until, 1, 1);
}

void md_create(struct ptt_model *m, const struct tk_event *e)
{
	struct ptt_model_thread *t = &MD_THREAD(m, tk_create(&m->t, e))->pub;

	t->create_ns = e->ts;
	t->create_site = md_site(m, e->thread, e->site, PTT_KIND_THREAD);
	t->routine = (uint64_t)tk_number(&e->e, TK_START_ROUTINE, 0);
}

void md_begin(struct ptt_model *m, const struct tk_event *e)
{
	struct ptt_model_thread *t = &MD_THREAD(m, e->thread)->pub;
	int64_t creator = tk_number(&e->e, TK_CREATOR, 0);

	t->routine = (uint64_t)tk_number(&e->e, TK_START_ROUTINE, 0);
	if (!t->creator && creator > 0)
		t->creator = md_thread_of_tid(m, e->process, (uint32_t)creator);
}

void md_schedule(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t thread = tk_scheduled(&m->t, e);
	struct ptt_model_thread *t = &MD_THREAD(m, thread)->pub;

	if (!thread)
		return;
	t->flags |= PTT_THREAD_PRIORITY;
	t->policy = (uint32_t)tk_number(&e->e, TK_POLICY, 0);
	t->priority = (int32_t)tk_number(&e->e, TK_PRIORITY, 0);
}

void md_lives(struct ptt_model *m, const int64_t *ends)
{
	for (uint32_t i = 1; i < m->t.threads.count; i++) {
		struct md_thread *t = MD_THREAD(m, i);
		int64_t until = md_life_end(&t->pub, ends[t->pub.process]);

		t->path_event = t->pub.last_ns;
		if (t->last.now != MD_NEVER && t->pub.last_ns < t->last.ts)
			t->pub.last_ns = t->last.ts;
		if (t->pub.first_ns == INT64_MAX || t->pub.flags & (PTT_THREAD_REPLACED | PTT_THREAD_ENDED))
			continue;
		if (until - t->pub.last_ns >= PTT_SILENT_NS)
			md_silence(m, t, until);
		if (t->pub.last_ns < until)
			t->pub.last_ns = until;
	}
}
