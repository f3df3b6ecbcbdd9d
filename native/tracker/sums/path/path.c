/* SPDX-License-Identifier: MIT */
/* path.c - the critical path: backwards from the end of a thread, and at each wait over to the thread that ended the wait. */
#include "../sums.h"

/* Number of pieces of a call. */
#define PIECES (UINT64_C(1) << 16)

static void piece(struct ptt_model *m, uint8_t kind, uint32_t thread, int64_t start, int64_t end, uint32_t object,
		  uint32_t site)
{
	struct ptt_model_segment *s;

	if (!md_inside(m, &start, &end) || end <= start)
		return;
	s = md_row(m, &m->segments);
	if (s)
		*s = (struct ptt_model_segment){ start, end, -1, thread, object, site, kind, { 0 } };
}

/* From a wake-up to the end of a wait. In the last part, the thread could have run but had no processor. */
static void wake_piece(struct ptt_model *m, const struct md_step *step)
{
	int64_t dur = step->end - step->wake;
	uint64_t before = m->segments.count;
	struct ptt_model_segment *s;

	piece(m, PTT_PATH_WAKE, step->thread, step->wake, step->end, step->object, step->site);
	if (m->segments.count == before || step->ready < 0)
		return;
	s = &((struct ptt_model_segment *)(void *)m->segments.items)[before];
	if (s->end_ns - s->start_ns == dur)
		s->ready_ns = step->ready < dur ? step->ready : dur;
}

/* From the beginning of a thread to its creator, or to the creator of its process; 0: unknown. */
static uint32_t to_creator(struct ptt_model *m, uint32_t thread, int64_t *t)
{
	const struct md_thread *by = MD_THREAD(m, thread);
	bool created = by->pub.flags & PTT_THREAD_BEGUN && by->pub.creator;
	uint32_t creator = created ? by->pub.creator : by->maker;
	int64_t since = created ? by->pub.create_ns : by->made_ns;
	int64_t first = by->path_first, begin = first < *t ? first : *t, made = begin;

	piece(m, PTT_PATH_RUN, thread, begin, *t, 0, 0);
	*t = begin;
	if (!creator)
		return 0;
	if (since != TK_NEVER && since < begin)
		made = since;
	piece(m, PTT_PATH_CREATE, thread, made, begin, 0, created ? by->pub.create_site : 0);
	*t = made;
	return creator;
}

/* Whether the path may end at the end of a thread: it is in the window, and @waits or goes on there. */
static bool ends_there(const struct md_thread *t, bool waits)
{
	return t->pub.first_ns != INT64_MAX && waits == (t->path_wait != TK_NEVER);
}

static uint32_t last_that_goes_on(const struct ptt_model *m)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < m->t.threads.count; i++) {
		const struct md_thread *t = MD_THREAD(m, i), *best = MD_THREAD(m, last);

		if (ends_there(t, false) && (!last || t->path_last > best->path_last ||
					     (t->path_last == best->path_last && t->path_event > best->path_event)))
			last = i;
	}
	return last;
}

/*
 * If all living threads of a process wait, the path ends in the wait that began last. If a thread runs at the end, the waits
 * beside it do not delay it.
 */
static uint32_t last_that_waits(const struct ptt_model *m, uint32_t last)
{
	bool *goes_on = calloc(m->t.process_count + 1, sizeof(*goes_on));

	for (uint32_t i = 1; goes_on && i < m->t.threads.count; i++) {
		const struct md_thread *t = MD_THREAD(m, i);

		if (ends_there(t, false) && !(t->pub.flags & PTT_THREAD_ENDED))
			goes_on[t->pub.process] = true;
	}
	for (uint32_t i = 1; goes_on && i < m->t.threads.count; i++) {
		const struct md_thread *t = MD_THREAD(m, i), *best = MD_THREAD(m, last);

		if (!ends_there(t, true) || goes_on[t->pub.process])
			continue;
		if (!last || t->path_last > best->path_last ||
		    (t->path_last == best->path_last && t->path_wait >= best->path_wait))
			last = i;
	}
	free(goes_on);
	return last;
}

int ptt_model_path(struct ptt_model *m, uint32_t thread)
{
	m->walk = (struct md_walk){ 0 };
	m->segments.count = 0;
	if (!thread)
		thread = last_that_waits(m, last_that_goes_on(m));
	if (!thread || thread >= m->t.threads.count || MD_THREAD(m, thread)->pub.first_ns == INT64_MAX)
		return m->t.error;
	m->walk = (struct md_walk){
		.thread = thread,
		.t = MD_THREAD(m, thread)->path_last,
		.left = md_step_count(m),
	};
	return m->t.error;
}

/* Follows the path through a wait, if the path leads through it. */
static void pass(struct ptt_model *m, struct md_walk *at, const struct md_step *step)
{
	while (at->thread && MD_THREAD(m, at->thread)->path_first >= step->end && at->hops++ < m->t.threads.count)
		at->thread = to_creator(m, at->thread, &at->t);
	/* The wake-up came before the beginning: the wait did not delay its thread. */
	if (step->thread != at->thread || step->start >= at->t || (step->wake != TK_NEVER && step->wake < step->start))
		return;
	/* The wait ended after the path came to the thread, or after the window. */
	if (step->end > at->t) {
		piece(m, PTT_PATH_WAIT, at->thread, step->start, at->t, step->object, step->site);
		at->t = step->start;
		return;
	}
	piece(m, PTT_PATH_RUN, at->thread, step->end, at->t, 0, 0);
	if (step->waker && step->waker != at->thread && step->wake != TK_NEVER) {
		wake_piece(m, step);
		at->thread = step->waker;
		at->t = step->wake;
	} else {
		piece(m, PTT_PATH_WAIT, at->thread, step->start, step->end, step->object, step->site);
		at->t = step->start;
	}
}

int ptt_model_path_next(struct ptt_model *m)
{
	struct md_walk *at = &m->walk;

	m->segments.count = 0;
	while (at->thread && at->left && m->segments.count < PIECES) {
		const struct md_step *step = md_step_at(m, --at->left);

		if (!step)
			return m->t.error;
		pass(m, at, step);
	}
	if (at->thread && at->left)
		return m->t.error;
	while (at->thread && at->hops++ <= m->t.threads.count)
		at->thread = to_creator(m, at->thread, &at->t);
	at->thread = 0;
	md_steps_leave(m);
	return m->t.error;
}
