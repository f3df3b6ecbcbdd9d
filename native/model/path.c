/* SPDX-License-Identifier: MIT */
/* path.c - the critical path: backwards from the end of a thread, and at each wait over to whoever ended it. */
#include "internal.h"

/* More waits than this are not kept: the shortest make room. */
#define STEPS_MOST (UINT64_C(1) << 22)
#define FIRST_LEAST 1000

#define STEP(m, i) (&((struct md_step *)(void *)(m)->steps.items)[i])

static void compact(struct ptt_model *m)
{
	uint64_t kept = 0;

	m->step_least = m->step_least ? m->step_least * 4 : FIRST_LEAST;
	for (uint64_t i = 0; i < m->steps.count; i++)
		if (STEP(m, i)->end - STEP(m, i)->start >= m->step_least)
			*STEP(m, kept++) = *STEP(m, i);
	m->steps.count = kept;
}

void md_step_add(struct ptt_model *m, const struct md_wait *w, const struct md_end *end, int64_t dur)
{
	struct md_step *step;

	if (dur < m->step_least)
		return;
	while (m->steps.count >= STEPS_MOST)
		compact(m);
	step = md_row(m, &m->steps);
	if (step)
		*step = (struct md_step){ w->since, end->wake, end->ts, w->thread, end->waker, w->object, w->site };
}

int64_t ptt_model_path_resolution(const struct ptt_model *m)
{
	return m->step_least;
}

static void piece(struct ptt_model *m, uint8_t kind, uint32_t thread, int64_t start, int64_t end, uint32_t object,
		  uint32_t site)
{
	struct ptt_model_segment *s;

	if (end <= start)
		return;
	s = md_row(m, &m->segments);
	if (s)
		*s = (struct ptt_model_segment){ start, end, thread, object, site, kind, { 0 } };
}

/* From the beginning of a thread to its creator; 0 when that is not known. */
static uint32_t to_creator(struct ptt_model *m, uint32_t thread, int64_t *t)
{
	const struct ptt_model_thread *pub = &MD_THREAD(m, thread)->pub;
	int64_t begin = pub->first_ns < *t ? pub->first_ns : *t, made = begin;

	piece(m, PTT_PATH_RUN, thread, begin, *t, 0, 0);
	*t = begin;
	if (!(pub->flags & PTT_THREAD_BEGUN) || !pub->creator)
		return 0;
	if (pub->create_ns != MD_NEVER && pub->create_ns < begin)
		made = pub->create_ns;
	piece(m, PTT_PATH_CREATE, thread, made, begin, 0, pub->create_site);
	*t = made;
	return pub->creator;
}

static uint32_t last_thread(const struct ptt_model *m)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < m->threads.count; i++)
		if (!last || MD_THREAD(m, i)->pub.last_ns > MD_THREAD(m, last)->pub.last_ns)
			last = i;
	return last;
}

int ptt_model_path(struct ptt_model *m, uint32_t thread)
{
	uint32_t hops = 0;
	int64_t t;

	m->segments.count = 0;
	if (!thread)
		thread = last_thread(m);
	if (!thread || thread >= m->threads.count || MD_THREAD(m, thread)->pub.first_ns == INT64_MAX)
		return m->error;
	t = MD_THREAD(m, thread)->pub.last_ns;
	for (uint64_t i = m->steps.count; i-- > 0 && thread;) {
		const struct md_step *step = STEP(m, i);

		while (thread && MD_THREAD(m, thread)->pub.first_ns >= step->end && hops++ < m->threads.count)
			thread = to_creator(m, thread, &t);
		/* A wait that was over before it began kept nobody. */
		if (step->thread != thread || step->end > t || (step->wake != MD_NEVER && step->wake < step->start))
			continue;
		piece(m, PTT_PATH_RUN, thread, step->end, t, 0, 0);
		if (step->waker && step->waker != thread && step->wake != MD_NEVER) {
			piece(m, PTT_PATH_WAKE, thread, step->wake, step->end, step->object, step->site);
			thread = step->waker;
			t = step->wake;
		} else {
			piece(m, PTT_PATH_WAIT, thread, step->start, step->end, step->object, step->site);
			t = step->start;
		}
	}
	while (thread && hops++ <= m->threads.count)
		thread = to_creator(m, thread, &t);
	return m->error;
}
