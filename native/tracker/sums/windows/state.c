/* SPDX-License-Identifier: MIT */
/* state.c - which events have led to what goes on: enough of them to begin in the middle of a trace. */
#include "../sums.h"

static void add_row(struct ptt_model *m, uint32_t thread, int64_t ts, uint32_t times)
{
	struct ptt_model_event *row = md_row(m, &m->state_rows);

	if (row)
		*row = (struct ptt_model_event){ ts, thread, times };
}

/* Add an event that had a part in it; of a thread that has ended, its end as well, or it would live again. */
static void led_here(struct ptt_model *m, uint32_t thread, int64_t ts, uint32_t times)
{
	const struct ptt_model_thread *t = &MD_THREAD(m, thread)->pub;
	bool ended = t->flags & PTT_THREAD_ENDED;

	if (!thread || !t->tid || ts == TK_NEVER || (ended && ts >= t->end_ns))
		return;
	add_row(m, thread, ts, times);
	if (ended)
		add_row(m, thread, t->end_ns, 1);
}

/* Who had the mutex of a condition since a wait began decides what the wait is, once it is over. */
static void of_mutex(struct ptt_model *m, const struct md_wait *w)
{
	const struct md_log *log = MD_LOG_OF(m, MD_OBJECT(m, w->mutex));

	for (uint32_t i = 0; w->mutex && i < MD_LOG && i < log->count; i++) {
		const struct md_log_entry *entry = &log->entry[(log->count - 1 - i) % MD_LOG];

		if (entry->ended == TK_NEVER || entry->ended < w->since)
			continue;
		led_here(m, entry->thread, entry->since, 1);
		led_here(m, entry->thread, entry->ended, 1);
	}
}

static void of_thread(struct ptt_model *m, uint32_t thread)
{
	const struct md_thread *t = MD_THREAD(m, thread);

	if (t->pub.flags & PTT_THREAD_ENDED)
		return;
	led_here(m, t->pub.creator, t->pub.create_ns, 1);
	if (t->pub.first_ns != INT64_MAX)
		led_here(m, thread, t->pub.first_ns, 1);
	for (uint32_t i = t->pub.waits; i; i = MD_WAITING(m, i)->thread_next) {
		led_here(m, thread, MD_WAITING(m, i)->since, 1);
		of_mutex(m, MD_WAITING(m, i));
	}
	for (uint32_t i = t->pub.holds; i; i = MD_HOLD(m, i)->thread_next)
		led_here(m, thread, MD_HOLD(m, i)->since, MD_HOLD(m, i)->depth);
}

/* Who held a lock last, or woke others, that threads wait for still. */
static void of_object(struct ptt_model *m, const struct md_object *o)
{
	const struct md_tokens *tokens = MD_TOKENS_OF(m, o);
	const struct md_log *log = MD_LOG_OF(m, o);

	if (!o->pub.waits)
		return;
	if (o->log && log->count) {
		const struct md_log_entry *last = &log->entry[(log->count - 1) % MD_LOG];

		if (last->ended != TK_NEVER)
			led_here(m, last->thread, last->since, 1);
	}
	led_here(m, o->release_thread, o->release_ts, 1);
	for (uint32_t i = 0; o->tokens && i < tokens->count; i++)
		led_here(m, tokens->items[i].thread, tokens->items[i].ts, 1);
}

int ptt_model_state(struct ptt_model *m)
{
	m->state_rows.count = 0;
	for (uint32_t i = 1; i < m->t.threads.count; i++)
		of_thread(m, i);
	for (uint32_t i = 1; i < m->t.objects.count; i++)
		of_object(m, MD_OBJECT(m, i));
	for (uint32_t i = 1; i < m->pairs.count; i++) {
		const struct ptt_model_pair *pair = MD_PAIR(m, i);

		if (pair->balance)
			led_here(m, pair->thread, pair->balance_ns, pair->balance);
	}
	return m->t.error;
}

uint32_t ptt_model_full(const struct ptt_model *m, uint32_t process)
{
	uint32_t found = 0;

	for (uint32_t i = 0; process < m->t.process_count && i < PTT_KINDS; i++)
		found |= (uint32_t)TK_PROCESS(&m->t, process)->full[i] << i;
	return found;
}

int ptt_model_set_full(struct ptt_model *m, uint32_t process, uint32_t kinds)
{
	if (process >= m->t.process_count)
		return -EINVAL;
	for (uint32_t i = 0; i < PTT_KINDS; i++)
		TK_PROCESS(&m->t, process)->full[i] = kinds >> i & 1;
	return 0;
}
