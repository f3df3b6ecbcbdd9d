/* SPDX-License-Identifier: MIT */
/* threads.c - life of threads: which one a number, kernel id or pthread_t means, and who never joins them. */
#include "internal.h"

#define ANY_PROCESS UINT64_MAX

static uint32_t thread_new(struct ptt_check *c, uint32_t process, uint32_t tid, uint32_t number)
{
	uint32_t row = ck_new(c, &c->threads);
	struct ck_thread *t = CK_THREAD(c, row);
	struct ck_process *p = &c->processes[process];

	if (!row)
		return 0;
	*(p->threads ? &CK_THREAD(c, p->threads_last)->process_next : &p->threads) = row;
	p->threads_last = row;
	t->pub = (struct ptt_check_thread_row){ .process = process, .tid = tid, .number = number };
	t->first_ts = INT64_MAX;
	t->last_ts = t->busy_ts = t->end_ts = t->cond_left_ts = CK_NEVER;
	return row;
}

static void map_set(struct ptt_check *c, struct rd_map *map, uint64_t a, uint64_t b, uint64_t value)
{
	struct rd_entry *e = rd_map_put(map, a, b);

	if (e)
		e->value = value;
	else
		c->error = -ENOMEM;
}

static uint32_t map_get(const struct rd_map *map, uint64_t a, uint64_t b)
{
	const struct rd_entry *e = rd_map_find(map, a, b);

	return e ? (uint32_t)e->value : 0;
}

/* ---- by number and by kernel id ---- */

int ptt_check_thread(struct ptt_check *c, uint32_t number, uint32_t process, uint32_t tid)
{
	if (rd_array_reach((void **)&c->known, &c->known_count, number, sizeof(*c->known)) < 0 ||
	    rd_array_reach((void **)&c->processes, &c->process_count, process, sizeof(*c->processes)) < 0)
		return -ENOMEM;
	if (c->known[number].known)
		return 0;
	c->known[number] = (struct ck_known){ .process = process, .tid = tid, .known = true };
	map_set(c, &c->tid_of, process, tid, (uint64_t)number + 1);
	map_set(c, &c->tid_of, ANY_PROCESS, tid, (uint64_t)number + 1);
	return c->error;
}

uint32_t ck_thread_of_number(struct ptt_check *c, uint32_t number)
{
	struct ck_known *known = &c->known[number];

	if (!known->thread)
		known->thread = thread_new(c, known->process, known->tid, number);
	return known->thread;
}

uint32_t ck_thread_of_tid(struct ptt_check *c, uint32_t process, uint32_t tid)
{
	uint32_t number = map_get(&c->tid_of, process, tid);

	if (!number)
		number = map_get(&c->tid_of, ANY_PROCESS, tid); /* the lock is shared with another process */
	return number ? ck_thread_of_number(c, number - 1) : 0;
}

/* ---- life ---- */

/* Threads of a process by the serial number of their creation, which is never used again as a pthread_t is. */
static void name_thread(struct ptt_check *c, uint32_t process, uint64_t pthread, int64_t serial, uint32_t thread)
{
	struct ck_thread *t = CK_THREAD(c, thread);
	uint32_t before = map_get(&c->pthread_of, pthread, process);

	/* It could not be used again if nobody had let go of it. */
	if (before && before != thread)
		CK_THREAD(c, before)->flags |= CK_DETACHED;
	t->pthread = pthread;
	if (serial > 0) {
		t->serial = (uint32_t)serial;
		map_set(c, &c->serial_of, process, (uint64_t)serial, thread);
	}
	map_set(c, &c->pthread_of, pthread, process, thread);
}

void ck_create(struct ptt_check *c, const struct ck_event *e)
{
	int64_t serial = ck_number(c, e, CK_SERIAL, 0);
	uint32_t thread = serial > 0 ? map_get(&c->serial_of, e->process, (uint64_t)serial) : 0;
	struct ck_thread *t;

	if (!thread) {
		thread = thread_new(c, e->process, 0, UINT32_MAX);
		name_thread(c, e->process, e->object, serial, thread);
		CK_THREAD(c, thread)->base = ck_publish(c, e->thread);
	} else {
		ck_publish(c, e->thread);
	}
	t = CK_THREAD(c, thread);
	t->created = ck_now(e);
	if (ck_number(c, e, CK_DETACHED_FIELD, 0))
		t->flags |= CK_DETACHED;
}

uint32_t ck_begin(struct ptt_check *c, const struct ck_event *e, uint32_t number)
{
	struct ck_known *known = &c->known[number];
	int64_t serial = ck_number(c, e, CK_SERIAL, 0), creator = ck_number(c, e, CK_CREATOR, 0);
	uint32_t made = serial > 0 ? map_get(&c->serial_of, known->process, (uint64_t)serial) : 0, by;
	uint32_t before = known->thread;
	struct ck_thread *t;

	if (made && CK_THREAD(c, made)->flags & CK_BEGUN)
		made = 0;
	/* Known as an owner only: it is this one. */
	if (before && CK_THREAD(c, before)->first_ts == INT64_MAX && !made)
		made = before;
	known->thread = made ? made : thread_new(c, known->process, known->tid, number);
	made = known->thread;
	t = CK_THREAD(c, made);
	t->pub.tid = known->tid;
	t->pub.number = number;
	t->flags |= CK_BEGUN | CK_WHOLE;
	by = creator > 0 ? ck_thread_of_tid(c, e->process, (uint32_t)creator) : 0;
	/* Its creator has not come to say so yet, and so has done nothing else. */
	if (!t->created.thread && by != made) {
		t->base = ck_publish(c, by);
		t->created = (struct ck_last){ .ts = e->ts, .thread = by };
	}
	name_thread(c, e->process, e->object, serial, made);
	return made;
}

void ck_fork(struct ptt_check *c, const struct ck_event *e)
{
	int64_t child = ck_number(c, e, CK_CHILD, 0);
	uint32_t number = child > 0 ? map_get(&c->tid_of, ANY_PROCESS, (uint64_t)child) : 0;

	if (number)
		c->processes[c->known[number - 1].process].forked = ck_now(e);
}

void ck_end(struct ptt_check *c, const struct ck_event *e)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	struct ck_wait gone;

	t->end_ts = e->ts;
	t->flags |= CK_ENDED_THREAD;
	while (t->waits)
		ck_wait_end(c, e->thread, CK_WAITING(c, t->waits)->object, &gone);
}

void ck_detach(struct ptt_check *c, const struct ck_event *e)
{
	uint32_t thread = map_get(&c->pthread_of, e->object, e->process);

	if (thread && ck_number(c, e, CK_RESULT, 0) == 0)
		CK_THREAD(c, thread)->flags |= CK_DETACHED;
}

void ck_priority(struct ptt_check *c, const struct ck_event *e)
{
	uint32_t thread = map_get(&c->pthread_of, e->object, e->process);
	int64_t priority = ck_number(c, e, CK_PRIORITY, 0);

	/* The first thread of a process has no beginning that says what its pthread_t is. */
	if (!thread)
		thread = e->thread;
	CK_THREAD(c, thread)->priority = priority > 0 ? (uint32_t)priority : 0;
}

/* ---- joins ---- */

static uint32_t join_target(const struct ptt_check *c, const struct ck_event *e)
{
	uint32_t thread = map_get(&c->pthread_of, e->object, e->process);

	return thread && !(CK_THREAD(c, thread)->flags & CK_JOINED) ? thread : 0;
}

void ck_join_in(struct ptt_check *c, const struct ck_event *e)
{
	uint32_t object = ck_object(c, e, NPTL_DOMAIN_THREAD, e->object);
	uint32_t wait = ck_wait_begin(c, e, object, CK_EXCLUSIVE);

	CK_WAITING(c, wait)->timed = e->id != (NPTL_DOMAIN_THREAD << 6 | NPTL_EV_THREAD_JOIN_IN);
	CK_WAITING(c, wait)->owner = join_target(c, e);
	ck_deadlock(c, e->thread, e, false);
}

static void refused_join(struct ptt_check *c, const struct ck_event *e, uint32_t target)
{
	bool self = target == e->thread || CK_THREAD(c, e->thread)->pthread == e->object;
	uint32_t wait = CK_THREAD(c, target)->waits;

	if (!ck_found(c, self ? PTT_FACT_WAIT_FOR_SELF : PTT_FACT_WAIT_CYCLE, e, e->object, e->site, PTT_FLAG_REFUSED))
		return;
	if (!self && wait)
		ck_step_wait(c, wait, e->thread);
	ck_step_now(c, PTT_STEP_REFUSED, e, 0)->value = EDEADLK;
}

void ck_join_out(struct ptt_check *c, const struct ck_event *e)
{
	uint32_t object = ck_object(c, e, NPTL_DOMAIN_THREAD, e->object), target = 0;
	int64_t result = ck_number(c, e, CK_RESULT, 0);
	struct ck_thread *t = CK_THREAD(c, e->thread);
	struct ck_wait w;

	ck_waited_with_holds(c, e, ck_wait_at(c, e));
	if (ck_wait_end(c, e->thread, object, &w))
		target = w.owner;
	if (!target || CK_THREAD(c, target)->flags & CK_JOINED)
		target = join_target(c, e);
	if (result == EDEADLK)
		refused_join(c, e, target);
	if (result || !target)
		return;
	CK_THREAD(c, target)->flags |= CK_JOINED;
	t->base = ck_joined_node(c, ck_publish(c, e->thread), ck_publish(c, target));
}

/* ---- threads that nobody joins ---- */

void ck_leaks(struct ptt_check *c)
{
	for (uint32_t i = 1; i < c->threads.count; i++) {
		const struct ck_thread *t = CK_THREAD(c, i);
		struct ck_event at = {
			.ts = t->end_ts, .site = t->created.site, .thread = i, .process = t->pub.process,
		};

		/* Its creator says whether it was detached from the beginning. */
		if (!(t->flags & CK_ENDED_THREAD) || t->flags & (CK_JOINED | CK_DETACHED) || !t->created.site ||
		    !c->processes[t->pub.process].left)
			continue;
		if (!ck_found(c, PTT_FACT_END_UNJOINED, &at, (uint64_t)i << 16, 0, PTT_FLAG_WHOLE))
			continue;
		ck_step(c, PTT_STEP_CREATED, t->created.thread, t->created.ts, t->created.site, 0)->other = i;
		ck_step(c, PTT_STEP_ENDED, i, t->end_ts, 0, 0);
	}
}
