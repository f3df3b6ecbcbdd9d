/* SPDX-License-Identifier: MIT */
/* window.c - a window of time that alone counts, and the state of threads and objects at its beginning and its end. */
/*
 * The model follows the events before a window to know the holders and waiters at its beginning. It follows some events after
 * the window to learn how waits end that reach out of it. md_inside() cuts intervals that are added up. Other figures, such as
 * the number of users of an object, begin at 0 when the window begins. They are saved when it ends.
 */
#include <stdlib.h>

#include "../sums.h"

void ptt_model_window(struct ptt_model *m, int64_t begin, int64_t end)
{
	m->window.begin = begin;
	m->window.end = end;
	m->window.begun = begin == INT64_MIN;
}

/*
 * Whether the state of a thread at the end of the window is still unknown. Its next reading or switch, before its next event,
 * tells the state. Without readings and switches, states end with waits and calls.
 */
static bool state_is_undecided(const struct ptt_model *m, const struct md_thread *t)
{
	int64_t end = m->window.end;
	bool switches = t->last.now != MD_NEVER;

	return (t->sched.now.epoch || switches) && t->pub.first_ns < end && t->pub.last_ns < end && t->sched.read < end &&
	       !(switches && t->last.ts >= end) && !(t->pub.flags & (PTT_THREAD_ENDED | PTT_THREAD_REPLACED)) &&
	       !tk_process_left(&m->t, TK_PROCESS(&m->t, t->pub.process));
}

uint64_t ptt_model_undecided(const struct ptt_model *m)
{
	uint64_t undecided = 0;

	for (uint32_t i = 1; i < m->t.threads.count; i++) {
		const struct md_thread *t = MD_THREAD(m, i);

		for (uint32_t wait = t->pub.waits; wait; wait = MD_WAITING(m, wait)->thread_next)
			undecided += MD_WAITING(m, wait)->since < m->window.end;
		for (uint32_t hold = t->pub.holds; hold; hold = MD_HOLD(m, hold)->thread_next)
			undecided += MD_HOLD(m, hold)->since < m->window.end;
		if (m->flags & PTT_MODEL_STATES_OF)
			undecided += state_is_undecided(m, t);
	}
	return undecided;
}

/* Only a use from here on counts. Waiters and holders use their objects. */
static void begin_window(struct ptt_model *m)
{
	for (uint32_t i = 1; i < m->pairs.count; i++)
		MD_PAIR(m, i)->used = 0;
	for (uint32_t i = 1; i < m->t.objects.count; i++) {
		struct md_object *o = MD_OBJECT(m, i);

		o->pub.users = o->address_users = 0;
		o->pub.threads = o->pub.address_threads = 0;
		o->pub.max_waiters = o->pub.holds ? o->pub.waiters + o->awaited : o->pub.waiters;
	}
	for (uint32_t i = 1; i < m->t.threads.count; i++) {
		struct md_thread *t = MD_THREAD(m, i);

		memset(MD_CACHE_OF(m, i)->object, 0, sizeof(MD_CACHE_OF(m, i)->object)); /* so that the next use of each is counted */
		for (uint32_t wait = t->pub.waits; wait; wait = MD_WAITING(m, wait)->thread_next)
			md_user(m, i, MD_WAITING(m, wait)->object);
		for (uint32_t hold = t->pub.holds; hold; hold = MD_HOLD(m, hold)->thread_next)
			md_user(m, i, MD_HOLD(m, hold)->object);
	}
	m->window.begun = true;
}

/* The beginning of the innermost wait of a thread, or TK_NEVER. */
static int64_t waits_since(const struct ptt_model *m, const struct md_thread *t)
{
	return t->pub.waits ? MD_WAITING(m, t->pub.waits)->since : TK_NEVER;
}

static void end_window(struct ptt_model *m)
{
	struct md_window *w = &m->window;

	w->threads = calloc(m->t.threads.count, sizeof(*w->threads));
	w->objects = calloc(m->t.objects.count, sizeof(*w->objects));
	if (!w->threads || !w->objects) {
		m->t.error = -ENOMEM;
		return;
	}
	w->thread_count = m->t.threads.count;
	w->object_count = m->t.objects.count;
	for (uint32_t i = 1; i < w->thread_count; i++) {
		const struct ptt_model_thread *t = &MD_THREAD(m, i)->pub;

		w->threads[i] = (struct md_then_thread){
			.last_ns = t->last_ns, .end_ns = t->end_ns, .join_ns = t->join_ns, .flags = t->flags,
			.held = t->held, .policy = t->policy, .priority = t->priority,
			.wait_ns = waits_since(m, MD_THREAD(m, i)),
		};
	}
	for (uint32_t i = 1; i < w->object_count; i++) {
		const struct ptt_model_object *o = &MD_OBJECT(m, i)->pub;

		w->objects[i] = (struct md_then_object){
			.last_ns = o->last_ns,
			.waiters = o->waiters, .holders = o->holders, .holder = o->holder, .flags = o->flags,
		};
	}
	w->ended = true;
}

void md_window_reach(struct ptt_model *m, int64_t ts)
{
	if (!m->window.begun && ts >= m->window.begin)
		begin_window(m);
	if (!m->window.ended && ts >= m->window.end)
		end_window(m);
}

/* ---- the tables afterwards ---- */

static void objects_then(struct ptt_model *m)
{
	for (uint32_t i = 1; i < m->window.object_count; i++) {
		const struct md_then_object *then = &m->window.objects[i];
		struct ptt_model_object *o = &MD_OBJECT(m, i)->pub;

		o->last_ns = then->last_ns;
		o->waiters = then->waiters;
		o->holders = then->holders;
		o->holder = then->holder;
		o->flags = then->flags;
	}
}

/*
 * Cuts the life of a thread to the window, or empties it. A thread that ended before the window keeps an empty life in the window
 * if its unreleased locks count there. Without it, the sums by thread would be less than the sums by lock.
 * @end: when its process ended
 */
static void cut_life(struct ptt_model *m, struct md_thread *t, int64_t end)
{
	int64_t first = t->pub.first_ns, last = t->pub.last_ns, begin = m->window.begin;

	if (t->pub.waits && last < begin && end > begin)
		last = begin + 1; /* its wait does not end */
	if (first == INT64_MAX || !md_inside(m, &first, &last)) {
		bool counts = t->pub.first_ns < begin && (t->pub.sums.hold_n || t->pub.caused_ns);

		first = counts ? begin : INT64_MAX;
		last = counts ? begin : TK_NEVER;
	}
	t->pub.first_ns = first;
	t->pub.last_ns = last;
}

static void thread_then(struct ptt_model *m, uint32_t i)
{
	const struct md_then_thread *then = &m->window.threads[i];
	struct md_thread *t = MD_THREAD(m, i);

	t->pub.end_ns = then->end_ns;
	t->pub.join_ns = then->join_ns;
	t->pub.flags = then->flags;
	t->pub.held = then->held;
	t->pub.policy = then->policy;
	t->pub.priority = then->priority;
	t->path_event = then->last_ns;
	t->path_wait = then->wait_ns;
}

void md_window_finish(struct ptt_model *m, const int64_t *ends)
{
	for (uint32_t i = 1; i < m->t.threads.count; i++) {
		struct md_thread *t = MD_THREAD(m, i);

		t->path_first = t->pub.first_ns;
		t->path_wait = waits_since(m, t);
		cut_life(m, t, ends[t->pub.process]);
		t->path_last = t->pub.last_ns;
		if (m->window.ended && i < m->window.thread_count)
			thread_then(m, i);
		if (t->path_wait != TK_NEVER && t->path_last < ends[t->pub.process])
			t->path_last = ends[t->pub.process];
		if (t->path_last > m->window.end)
			t->path_last = m->window.end;
	}
	if (m->window.ended)
		objects_then(m);
	for (uint32_t i = 1; i < m->t.objects.count; i++)
		MD_OBJECT(m, i)->pub.address_threads = MD_OBJECT(m, MD_OBJECT(m, i)->first)->pub.address_threads;
}
