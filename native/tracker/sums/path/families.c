/* SPDX-License-Identifier: MIT */
/* families.c - creation of processes, and waits for their ends: the links of the critical path between processes. */
/*
 * A process that executes another program counts as two processes with the same process id, one after the other. The kernel
 * reuses an id after another process has waited for its process. So the owner of an id is known up to then. A process that
 * became a program without tracing has no event about that. So the wait for its end has no waker in the trace.
 */
#include "../sums.h"

/* Facts by process id: the last process with the id, plus 1; the thread that creates the next process with the id, and when. */
enum { HAS_IT, MADE_NEXT, MADE_AT };

/* A fact about a process id. Return: its place, valid until the next call; NULL: unknown space, or no memory. */
static uint64_t *known(struct ptt_model *m, uint32_t process, uint64_t pid, uint64_t what)
{
	uint32_t space = TK_PROCESS(&m->t, process)->space;
	struct rd_entry *entry = space ? rd_map_put(&m->families, (uint64_t)space << 32 | (uint32_t)pid, what) : NULL;

	if (space && !entry)
		m->t.error = -ENOMEM;
	return entry ? &entry->value : NULL;
}

int ptt_model_space(struct ptt_model *m, uint32_t process, uint32_t space)
{
	if (tk_process_reach(&m->t, process) < 0)
		return -ENOMEM;
	TK_PROCESS(&m->t, process)->space = space;
	return 0;
}

static void made_by(struct ptt_model *m, uint32_t thread, uint32_t maker, int64_t ts)
{
	MD_THREAD(m, thread)->maker = maker;
	MD_THREAD(m, thread)->made_ns = ts;
}

/* The process with an id, if it is a child of @parent and not waited for; or NULL. */
static struct tk_process *child_of(struct ptt_model *m, uint32_t process, uint64_t pid, uint32_t parent)
{
	const uint64_t *has_it = known(m, process, pid, HAS_IT);
	struct tk_process *p = has_it && *has_it ? TK_PROCESS(&m->t, *has_it - 1) : NULL;

	return p && p->ppid == parent && !p->reaped ? p : NULL;
}

void md_process_start(struct ptt_model *m, const struct tk_event *e)
{
	struct tk_process *p = TK_PROCESS(&m->t, e->process);
	uint32_t ppid = (uint32_t)tk_number(&e->e, TK_PPID, 0);
	const struct tk_process *before = child_of(m, e->process, e->object, ppid);
	const uint64_t *at;
	uint64_t *maker, *has_it;
	uint32_t thread = 0;
	int64_t made_ns = 0;

	tk_own_event(&m->t, e, TK_PROCESS_START);
	p->ppid = ppid;
	p->first = e->thread;
	at = known(m, e->process, e->object, MADE_AT);
	if (at)
		made_ns = (int64_t)*at;
	maker = known(m, e->process, e->object, MADE_NEXT);
	if (maker) {
		thread = (uint32_t)*maker;
		*maker = 0;
	}
	has_it = known(m, e->process, e->object, HAS_IT);
	if (has_it)
		*has_it = (uint64_t)e->process + 1;
	if (before && before != p && before->execs)
		made_by(m, e->thread, before->execs, before->exec_ns);
	else if (thread)
		made_by(m, e->thread, thread, made_ns);
}

void md_process_made(struct ptt_model *m, const struct tk_event *e)
{
	int64_t pid = tk_number(&e->e, TK_CHILD, 0);
	const struct tk_process *child = pid > 0 ? child_of(m, e->process, (uint64_t)pid, (uint32_t)e->object) : NULL;
	uint64_t *maker, *at;
	uint32_t thread;

	if (pid <= 0)
		return;
	if (!child) {
		maker = known(m, e->process, (uint64_t)pid, MADE_NEXT);
		if (maker)
			*maker = e->thread;
		at = known(m, e->process, (uint64_t)pid, MADE_AT);
		if (at)
			*at = (uint64_t)e->ts;
		return;
	}
	/* The child may have begun, and even executed another program, before the event of its maker. */
	thread = child->first;
	while (MD_THREAD(m, thread)->maker && MD_THREAD(m, MD_THREAD(m, thread)->maker)->pub.process != e->process)
		thread = MD_THREAD(m, thread)->maker;
	made_by(m, thread, e->thread, e->ts);
}

/* The thread that ended a process. */
static uint32_t last_thread(const struct ptt_model *m, const struct tk_process *p)
{
	uint32_t last = 0;

	for (uint32_t i = p->threads; i; i = MD_THREAD(m, i)->pub.process_next) {
		const struct md_thread *t = MD_THREAD(m, i), *best = MD_THREAD(m, last);

		if (t->pub.first_ns == INT64_MAX || t->pub.flags & PTT_THREAD_ENDED)
			continue;
		if (!last || (!t->pub.waits && best->pub.waits) ||
		    (!t->pub.waits == !best->pub.waits && t->pub.last_ns >= best->pub.last_ns))
			last = i;
	}
	return last;
}

void md_process_reaped(struct ptt_model *m, const struct tk_event *e)
{
	uint64_t pid = (uint64_t)tk_number(&e->e, TK_CHILD, 0);
	struct tk_process *p = child_of(m, e->process, pid, (uint32_t)e->object);
	uint32_t last = p ? last_thread(m, p) : 0;
	struct md_step step = {
		e->ts - tk_number(&e->e, TK_WAIT_NS, 0), TK_NEVER, e->ts, -1, e->thread, 0, 0,
		md_site(m, e->thread, e->site, e->id >> 6),
	};

	if (p) {
		p->reaped = true;
		p->reaped_ns = e->ts;
	}
	/* The trace does not contain its last program. */
	if (last && !p->exited && p->execs && MD_THREAD(m, p->execs)->pub.last_ns == p->exec_ns)
		last = 0;
	if (last) {
		const struct md_wait *w = MD_WAITING(m, MD_THREAD(m, last)->pub.waits);

		/* The process was killed during a wait. */
		if (MD_THREAD(m, last)->pub.waits && !p->exited)
			md_step_put(m, (struct md_step){ w->since, TK_NEVER, e->ts, -1, last, 0, w->object, w->site_row });
		step.waker = last;
		step.wake = p->exited ? p->last : e->ts;
	}
	md_step_put(m, step);
}
