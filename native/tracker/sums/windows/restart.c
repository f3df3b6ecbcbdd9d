/* SPDX-License-Identifier: MIT */
/* restart.c - the events that lead to the present waits and holds: enough to begin in the middle of a trace. */
#include "../sums.h"

static void add_row(struct ptt_model *m, uint32_t thread, int64_t ts, uint32_t times)
{
	struct ptt_model_event *row = md_row(m, &m->state_rows);

	if (row)
		*row = (struct ptt_model_event){ ts, thread, times };
}

/*
 * Adds the first event of a thread, which shows that the thread lives. The other meaning of that event counts only if it
 * is added again.
 */
static void add_first_event(struct ptt_model *m, uint32_t thread)
{
	int64_t first = MD_THREAD(m, thread)->pub.first_ns;

	if (first != INT64_MAX)
		add_row(m, thread, first, 1);
}

/* Adds an event. If its thread has ended, adds the end as well, or the thread would live again. */
static void add_event(struct ptt_model *m, uint32_t thread, int64_t ts, uint32_t times)
{
	const struct ptt_model_thread *t = &MD_THREAD(m, thread)->pub;
	bool ended = t->flags & PTT_THREAD_ENDED;

	if (!thread || !t->tid || ts == TK_NEVER || (ended && ts >= t->end_ns))
		return;
	add_first_event(m, thread);
	add_row(m, thread, ts, times + (ts == t->first_ns));
	if (ended)
		add_row(m, thread, t->end_ns, 1);
}

/* The holders of a condition's mutex since the beginning of a wait decide the class of the wait. */
static void add_mutex_holders(struct ptt_model *m, const struct md_wait *w)
{
	const struct md_log *log = MD_LOG_OF(m, MD_OBJECT(m, w->mutex));

	for (uint32_t i = 0; w->mutex && i < MD_LOG && i < log->count; i++) {
		const struct md_log_entry *entry = &log->entry[(log->count - 1 - i) % MD_LOG];

		if (entry->ended == TK_NEVER || entry->ended < w->since)
			continue;
		add_event(m, entry->thread, entry->since, 1);
		add_event(m, entry->thread, entry->ended, 1);
	}
}

static void add_thread(struct ptt_model *m, uint32_t thread)
{
	const struct md_thread *t = MD_THREAD(m, thread);

	if (t->pub.flags & PTT_THREAD_ENDED)
		return;
	add_event(m, t->pub.creator, t->pub.create_ns, 1);
	add_first_event(m, thread);
	for (uint32_t i = t->pub.waits; i; i = MD_WAITING(m, i)->thread_next) {
		add_event(m, thread, MD_WAITING(m, i)->since, 1);
		add_mutex_holders(m, MD_WAITING(m, i));
	}
	if (t->call)
		add_event(m, thread, t->call_ns, 1);
	for (uint32_t i = t->pub.holds; i; i = MD_HOLD(m, i)->thread_next)
		add_event(m, thread, MD_HOLD(m, i)->since, MD_HOLD(m, i)->depth);
}

static void add_wakeup(struct ptt_model *m, const struct md_wakeup *w)
{
	add_event(m, w->thread, w->ts, md_wakeup_times(w));
}

/*
 * Adds the unused wake-ups, and the last wake-up, which also decides about waits without a wake-up. Barriers are left out: the
 * event that completes a round begins a wait, and is added as a wait.
 */
static void add_wakeups(struct ptt_model *m, const struct md_object *o)
{
	const struct tk_waking *k = TK_WAKING(&m->t, &o->pub);

	if (o->pub.kind == PTT_KIND_BARRIER)
		return;
	for (uint32_t i = k->first; i; i = MD_WAKEUP(m, i)->next)
		add_wakeup(m, MD_WAKEUP(m, i));
	if (!MD_WAKEUP(m, k->latest)->left)
		add_wakeup(m, MD_WAKEUP(m, k->latest));
}

/* The last holder of a lock that threads still wait for. */
static void add_last_holder(struct ptt_model *m, const struct md_object *o)
{
	const struct md_log *log = MD_LOG_OF(m, o);

	if (!o->pub.waits)
		return;
	if (o->log && log->count && o->pub.kind != PTT_KIND_SEM) {
		const struct md_log_entry *last = &log->entry[(log->count - 1) % MD_LOG];

		if (last->ended != TK_NEVER)
			add_event(m, last->thread, last->since, 1);
	}
	add_event(m, o->pub.releaser, o->pub.release_ns, 1);
}

/* Posts since this time matter to waits that have not begun yet. */
static int64_t posts_since(const struct ptt_model *m)
{
	int64_t last = TK_NEVER;

	for (uint32_t i = 0; i < m->t.process_count; i++)
		if (TK_PROCESS(&m->t, i)->last > last)
			last = TK_PROCESS(&m->t, i)->last;
	return last == TK_NEVER ? TK_NEVER : last - MD_SKEW_NS;
}

int ptt_model_state(struct ptt_model *m)
{
	int64_t since = posts_since(m);

	m->state_rows.count = 0;
	for (uint32_t i = 1; i < m->t.threads.count; i++)
		add_thread(m, i);
	for (uint32_t i = 1; i < m->t.objects.count; i++) {
		const struct md_object *o = MD_OBJECT(m, i);

		add_last_holder(m, o);
		if (o->as_lock || o->pool)
			add_event(m, o->maker, o->pub.first_ns, 1);
		if (o->pub.waits || MD_WAKEUP(m, TK_WAKING(&m->t, &o->pub)->latest)->ts >= since)
			add_wakeups(m, o);
	}
	for (uint32_t i = 1; i < m->pairs.count; i++) {
		const struct ptt_model_pair *pair = MD_PAIR(m, i);

		if (pair->balance)
			add_event(m, pair->thread, pair->balance_ns, pair->balance);
	}
	return m->t.error;
}

uint32_t ptt_model_full(const struct ptt_model *m, uint32_t process)
{
	uint32_t kinds = 0;

	for (uint32_t i = 0; process < m->t.process_count && i < PTT_KINDS; i++)
		kinds |= (uint32_t)TK_PROCESS(&m->t, process)->full[i] << i;
	return kinds;
}

int ptt_model_set_full(struct ptt_model *m, uint32_t process, uint32_t kinds)
{
	if (process >= m->t.process_count)
		return -EINVAL;
	for (uint32_t i = 0; i < PTT_KINDS; i++)
		TK_PROCESS(&m->t, process)->full[i] = kinds >> i & 1;
	return 0;
}
