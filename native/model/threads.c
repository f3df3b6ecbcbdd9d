/* SPDX-License-Identifier: MIT */
/* threads.c - life of threads: created, begun, ended; which thread a number, kernel id or pthread_t means. */
#include "internal.h"

#define ANY_PROCESS UINT64_MAX

static uint32_t thread_new(struct ptt_model *m, uint32_t process, uint32_t tid)
{
	uint32_t number = md_new(m, &m->threads);
	struct md_thread *t = MD_THREAD(m, number);

	if (!number)
		return 0;
	t->pub.process = process;
	t->pub.tid = tid;
	t->pub.generation = 1;
	t->pub.first_ns = INT64_MAX;
	t->pub.last_ns = t->pub.create_ns = t->pub.end_ns = t->pub.join_ns = MD_NEVER;
	t->counted = !m->only_threads;
	return number;
}

static int map_set(struct ptt_model *m, struct rd_map *map, uint64_t a, uint64_t b, uint64_t value)
{
	struct rd_entry *e = rd_map_put(map, a, b);

	if (!e)
		return m->error = -ENOMEM;
	e->value = value;
	return 0;
}

static uint32_t map_get(const struct rd_map *map, uint64_t a, uint64_t b)
{
	const struct rd_entry *e = rd_map_find(map, a, b);

	return e ? (uint32_t)e->value : 0;
}

/* ---- by number and by kernel id ---- */

static int declare(struct ptt_model *m, uint32_t number, uint32_t process, uint32_t tid)
{
	struct md_known *known = &m->known[number];

	known->process = process;
	known->tid = tid;
	known->known = true;
	map_set(m, &m->tid_of, process, tid, (uint64_t)number + 1);
	return map_set(m, &m->tid_of, ANY_PROCESS, tid, (uint64_t)number + 1);
}

static int known_reach(struct ptt_model *m, uint32_t number)
{
	return rd_array_reach((void **)&m->known, &m->known_count, number, sizeof(*m->known));
}

int ptt_model_thread(struct ptt_model *m, uint32_t number, uint32_t process, uint32_t tid)
{
	uint32_t before = m->process_count;

	if (known_reach(m, number) < 0 ||
	    rd_array_reach((void **)&m->processes, &m->process_count, process, sizeof(*m->processes)) < 0)
		return -ENOMEM;
	for (uint32_t i = before; i < m->process_count; i++)
		m->processes[i] = (struct md_process){ .first = INT64_MAX, .last = INT64_MIN };
	return m->known[number].known ? 0 : declare(m, number, process, tid);
}

int ptt_model_only_thread(struct ptt_model *m, uint32_t number)
{
	m->only_threads = true;
	if (number == UINT32_MAX)
		return 0;
	if (known_reach(m, number) < 0)
		return -ENOMEM;
	m->known[number].allowed = true;
	return 0;
}

uint32_t md_thread_of_number(struct ptt_model *m, uint32_t number)
{
	struct md_known *known = &m->known[number];

	if (!known->thread) {
		known->thread = thread_new(m, known->process, known->tid);
		MD_THREAD(m, known->thread)->counted = !m->only_threads || known->allowed;
	}
	return known->thread;
}

uint32_t md_thread_of_tid(struct ptt_model *m, uint32_t process, uint32_t tid)
{
	uint32_t number = map_get(&m->tid_of, process, tid);

	if (!number)
		number = map_get(&m->tid_of, ANY_PROCESS, tid); /* the lock is shared with another process */
	if (number)
		return md_thread_of_number(m, number - 1);
	/* It has no event of its own. */
	if (m->known_count == UINT32_MAX || ptt_model_thread(m, m->known_count, process, tid) < 0)
		return 0;
	return md_thread_of_number(m, map_get(&m->tid_of, process, tid) - 1);
}

/* ---- life ---- */

/* Threads of a process by the serial number of their creation, which is never used again as a pthread_t is. */
static void name_thread(struct ptt_model *m, uint32_t process, uint64_t pthread, int64_t serial, uint32_t thread)
{
	struct md_thread *t = MD_THREAD(m, thread);

	t->pub.pthread = pthread;
	if (serial > 0) {
		t->serial = (uint32_t)serial;
		map_set(m, &m->serial_of, process, (uint64_t)serial, thread);
	}
	map_set(m, &m->pthread_of, process, pthread, thread);
}

void md_create(struct ptt_model *m, const struct md_event *e)
{
	int64_t serial = md_number(m, e, MD_SERIAL, 0);
	uint32_t thread = serial > 0 ? map_get(&m->serial_of, e->process, (uint64_t)serial) : 0;
	struct md_thread *t;

	if (!thread) {
		thread = thread_new(m, e->process, 0);
		name_thread(m, e->process, e->object, serial, thread);
	}
	t = MD_THREAD(m, thread);
	t->pub.create_ns = e->ts;
	t->pub.creator = e->thread;
	t->pub.create_site = md_site(m, e->thread, e->site, PTT_KIND_THREAD);
	t->pub.routine = (uint64_t)md_number(m, e, MD_ROUTINE, 0);
	if (md_number(m, e, MD_DETACHED, 0))
		t->pub.flags |= PTT_THREAD_DETACHED;
}

uint32_t md_begin(struct ptt_model *m, const struct md_event *e, uint32_t number)
{
	struct md_known *known = &m->known[number];
	int64_t serial = md_number(m, e, MD_SERIAL, 0), creator = md_number(m, e, MD_CREATOR, 0);
	uint32_t made = serial > 0 ? map_get(&m->serial_of, known->process, (uint64_t)serial) : 0;
	uint32_t before = known->thread;
	struct md_thread *t;

	if (made && MD_THREAD(m, made)->pub.flags & PTT_THREAD_BEGUN)
		made = 0;
	/* Known as an owner only: it is this one. */
	if (before && MD_THREAD(m, before)->pub.first_ns == INT64_MAX && !made)
		made = before;
	known->thread = made ? made : thread_new(m, known->process, known->tid);
	t = MD_THREAD(m, known->thread);
	t->counted = !m->only_threads || known->allowed;
	t->pub.tid = known->tid;
	if (before && before != known->thread) {
		t->pub.generation = MD_THREAD(m, before)->pub.generation + 1;
		MD_THREAD(m, before)->replaced = true;
	}
	t->pub.flags |= PTT_THREAD_BEGUN;
	t->pub.routine = (uint64_t)md_number(m, e, MD_ROUTINE, 0);
	made = known->thread;
	/* May make the creator known, and `known` lie elsewhere. */
	if (!t->pub.creator && creator > 0)
		t->pub.creator = md_thread_of_tid(m, e->process, (uint32_t)creator);
	name_thread(m, e->process, e->object, serial, made);
	return made;
}

void md_end(struct ptt_model *m, const struct md_event *e)
{
	struct md_thread *t = MD_THREAD(m, e->thread);

	t->pub.end_ns = e->ts;
	t->pub.flags |= PTT_THREAD_ENDED;
	if (md_number(m, e, MD_CANCELLED, 0))
		t->pub.flags |= PTT_THREAD_CANCELLED;
	if (!t->pub.pthread)
		name_thread(m, e->process, e->object, 0, e->thread);
}

void md_lives(struct ptt_model *m, const int64_t *ends)
{
	for (uint32_t i = 1; i < m->threads.count; i++) {
		struct md_thread *t = MD_THREAD(m, i);
		int64_t until = ends[t->pub.process];

		t->path_event = t->pub.last_ns;
		if (t->pub.first_ns == INT64_MAX || t->replaced || t->pub.flags & PTT_THREAD_ENDED)
			continue;
		if (t->pub.flags & PTT_THREAD_JOINED && t->pub.join_ns < until)
			until = t->pub.join_ns;
		if (t->pub.last_ns < until)
			t->pub.last_ns = until;
	}
}

uint32_t md_thread_named(const struct ptt_model *m, const struct md_event *e)
{
	return map_get(&m->pthread_of, e->process, e->object);
}

void md_detach(struct ptt_model *m, const struct md_event *e)
{
	uint32_t thread = md_thread_named(m, e);

	if (thread && md_number(m, e, MD_RESULT, 0) == 0)
		MD_THREAD(m, thread)->pub.flags |= PTT_THREAD_DETACHED;
}

void md_schedule(struct ptt_model *m, const struct md_event *e)
{
	uint32_t thread = md_thread_named(m, e);
	struct ptt_model_thread *t;

	/* The first thread of a process tells of itself, and nobody has told its pthread_t. */
	if (!thread && !MD_THREAD(m, e->thread)->pub.pthread)
		thread = e->thread;
	t = &MD_THREAD(m, thread)->pub;
	t->flags |= PTT_THREAD_PRIORITY;
	t->policy = (uint32_t)md_number(m, e, MD_POLICY, 0);
	t->priority = (int32_t)md_number(m, e, MD_PRIORITY, 0);
}
