/* SPDX-License-Identifier: MIT */
/* stuck.c - processes with every thread blocked for ever. */
#include "../facts.h"

/* Maximum of threads in the steps of a fact: more threads would add nothing. */
#define THREADS_MAX 16u

static bool first_of_all(struct ptt_check *c, uint32_t thread, void *data)
{
	(void)c;
	*(uint32_t *)data = thread;
	return true;
}

/* Whether neither another process nor a pending wake-up can end a wait. */
static bool for_ever(const struct ptt_check *c, const struct ck_wait *w)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);

	if (w->timed || w->shared || o->flags & PTT_OBJECT_SHARED)
		return false;
	if (w->kind == NPTL_DOMAIN_COND)
		return !ck_pending(c, o) && !(CK_OBJECT(c, w->mutex)->flags & PTT_OBJECT_SHARED);
	return w->kind != PTT_KIND_FUTEX || !ck_pending(c, o);
}

/* ---- idle or stuck ---- */

/* Signs that a process is idle or stuck, by the waits of its threads. */
struct idleness {
	bool kept;	 /* a thread waits for another thread, or for a result of another thread */
	bool told;	 /* a thread of an interpreter waits for an event or a condition: it may be idle or stuck */
	bool rests;	 /* the first thread waits for an event that a signal handler of the interpreter may set */
	bool interpreted; /* threads wait in an interpreter */
	bool semaphores; /* threads wait for semaphores */
};

/* Whether waiting threads have all units of a semaphore. */
static bool is_used_up(const struct ptt_check *c, uint32_t object)
{
	const struct ck_object *o = CK_OBJECT(c, object);
	uint32_t have = 0;

	for (uint32_t i = CK_PROCESS(c, o->process)->threads; o->pool && i; i = CK_THREAD(c, i)->process_next)
		if (CK_THREAD(c, i)->pool == object && CK_THREAD(c, i)->waits)
			have += CK_THREAD(c, i)->pool_units;
	return o->pool && have == o->pool;
}

static void look_at_semaphore(struct ptt_check *c, const struct ck_wait *w, struct idleness *of)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);
	uint32_t use = ck_sem_use(c, o);
	bool first = CK_PROCESS(c, o->process)->first_thread == w->thread;

	of->semaphores = true;
	of->interpreted |= use != PTT_USED_ANYHOW;
	switch (use) {
	case PTT_USED_ANYHOW:
		of->kept |= ck_sem_holder(c, o) || is_used_up(c, w->object);
		break;
	case PTT_USED_FOR_RESULT:
		of->kept = true;
		break;
	case PTT_USED_FOR_EVENT:
		of->rests |= first;
		of->told |= !first;
		break;
	case PTT_USED_FOR_CONDITION:
		of->told = true;
		break;
	}
}

static void look_at_wait(struct ptt_check *c, const struct ck_wait *w, struct idleness *of)
{
	switch (w->kind) {
	case NPTL_DOMAIN_SEM:
		look_at_semaphore(c, w, of);
		break;
	case PTT_KIND_THREAD:
		of->kept |= ck_joined_before(c, w);
		break;
	case NPTL_DOMAIN_COND:
		of->kept |= ck_is_woken(c, w);
		break;
	case PTT_KIND_FUTEX:
		break;
	default:
		of->kept = true;
	}
}

/*
 * Whether the threads of a process only wait for work. With waits for semaphores, a process is stuck only if a thread keeps
 * another thread waiting. A service without work, which a signal ends, is not stuck.
 */
static bool is_idle(struct ptt_check *c, uint32_t process)
{
	struct idleness of = { 0 };

	for (uint32_t i = CK_PROCESS(c, process)->threads; i; i = CK_THREAD(c, i)->process_next)
		if (CK_THREAD(c, i)->waits && !(CK_THREAD(c, i)->flags & PTT_THREAD_ENDED))
			look_at_wait(c, CK_WAITING(c, CK_THREAD(c, i)->waits), &of);
	if (of.kept || !of.semaphores)
		return false;
	return !of.interpreted || of.rests || !of.told;
}

/* Whether the last thread of a process waits for a semaphore that an ended thread posted before. */
static bool is_left_over(const struct ptt_check *c, uint32_t thread, uint32_t blocked)
{
	const struct ck_object *o = CK_OBJECT(c, CK_WAITING(c, CK_THREAD(c, thread)->waits)->object);
	uint32_t poster = ck_woke(c, o)->thread;

	return blocked == 1 && poster && poster != thread && ck_sem_use(c, o) == PTT_USED_ANYHOW;
}

/* Marks the processes with a fact that explains why they are blocked. */
static void find_explained(struct ptt_check *c)
{
	const uint32_t explaining = 1u << PTT_FACT_WAIT_CYCLE | 1u << PTT_FACT_WAIT_FOR_SELF | 1u << PTT_FACT_SIGNAL_MISSED |
				    1u << PTT_FACT_BARRIER_INCOMPLETE | 1u << PTT_FACT_END_WITH_HOLD |
				    1u << PTT_FACT_COND_MUTEX_NOT_HELD | 1u << PTT_FACT_COND_TWO_MUTEXES;

	for (uint32_t i = 1; i < c->facts.count; i++) {
		const struct ptt_check_fact *f = CK_FACT(c, i);

		if (explaining >> f->kind & 1 && !(f->flags & (PTT_FLAG_DROPPED | PTT_FLAG_REFUSED | PTT_FLAG_SUSPECT)))
			CK_PROCESS(c, f->process)->explained = true;
	}
}

/* Adds the semaphores that a thread has taken and that other threads wait for. */
static void add_semaphores(struct ptt_check *c, uint32_t thread)
{
	for (uint32_t i = CK_PROCESS(c, CK_THREAD(c, thread)->process)->threads; i; i = CK_THREAD(c, i)->process_next) {
		uint32_t wait = CK_THREAD(c, i)->waits;
		const struct ck_object *o = CK_OBJECT(c, CK_WAITING(c, wait)->object);

		if (i == thread || !wait || o->kind != PTT_KIND_SEM || ck_sem_use(c, o) == PTT_USED_FOR_END)
			continue;
		/* once, by the first of its waiters */
		if (!CK_WAITING(c, wait)->object_next && ck_sem_holder(c, o) == thread)
			ck_step_held(c, wait, thread);
	}
}

static void add_thread(struct ptt_check *c, uint32_t thread)
{
	const struct ck_thread *t = CK_THREAD(c, thread);
	uint32_t blocker = 0;

	for (uint32_t hold = t->holds; hold; hold = CK_HOLD(c, hold)->thread_next)
		if (CK_OBJECT(c, CK_HOLD(c, hold)->object)->waits)
			ck_step_hold(c, hold);
	add_semaphores(c, thread);
	ck_each_blocker(c, CK_WAITING(c, t->waits), true, first_of_all, &blocker);
	ck_step_wait(c, t->waits, blocker);
}

/*
 * Counts the threads of each process that are blocked for ever. @last: the last wait of each process. UINT32_MAX: a thread of
 * the process is not blocked for ever, or the trace lacks the beginning of the process
 */
static void count_blocked(const struct ptt_check *c, uint32_t *blocked, uint32_t *last)
{
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		const struct ck_thread *t = CK_THREAD(c, i);
		uint32_t process = t->process;

		if (!t->waits || t->flags & PTT_THREAD_ENDED || blocked[process] == UINT32_MAX)
			continue;
		if (!CK_PROCESS(c, process)->hung || !CK_PROCESS(c, process)->first_thread ||
		    !for_ever(c, CK_WAITING(c, t->waits))) {
			blocked[process] = UINT32_MAX;
			continue;
		}
		blocked[process]++;
		if (!last[process] ||
		    CK_WAITING(c, t->waits)->id > CK_WAITING(c, CK_THREAD(c, last[process])->waits)->id)
			last[process] = i;
	}
}

static void report_blocked(struct ptt_check *c, uint32_t process, uint32_t blocked, uint32_t last, uint32_t flags)
{
	const struct ck_wait *w = CK_WAITING(c, CK_THREAD(c, last)->waits);
	struct tk_event at = { .ts = w->since, .site = w->site, .process = process, .thread = last };
	uint32_t added = 0;

	if (CK_PROCESS(c, process)->explained)
		return;
	if (is_idle(c, process) && (flags || !is_left_over(c, last, blocked)))
		return;
	if (!ck_fact_add(c, PTT_FACT_ALL_BLOCKED, &at, process, 0, PTT_FLAG_WHOLE | flags))
		return;
	CK_FACT(c, c->current)->value = blocked;
	add_thread(c, last);
	for (uint32_t i = CK_PROCESS(c, process)->threads; i && ++added < THREADS_MAX; i = CK_THREAD(c, i)->process_next) {
		const struct ck_thread *t = CK_THREAD(c, i);

		if (i != last && t->waits && !(t->flags & PTT_THREAD_ENDED))
			add_thread(c, i);
		else
			added--;
	}
}

void ck_stuck(struct ptt_check *c, uint32_t flags)
{
	uint32_t *blocked = calloc(c->t.process_count + 1, 2 * sizeof(*blocked));
	uint32_t *last = blocked + c->t.process_count;

	if (!blocked) {
		c->t.error = -ENOMEM;
		return;
	}
	count_blocked(c, blocked, last);
	find_explained(c);
	for (uint32_t i = 0; i < c->t.process_count; i++)
		if (blocked[i] && blocked[i] != UINT32_MAX && (!flags || CK_PROCESS(c, i)->handlers_may))
			report_blocked(c, i, blocked[i], last[i], flags);
	free(blocked);
}
