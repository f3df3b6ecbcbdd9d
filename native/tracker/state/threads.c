/* SPDX-License-Identifier: MIT */
/* threads.c - creation, beginning and end of threads, and the search of a thread by number, kernel thread id or pthread_t. */
#include "hot.h"

#define ANY_PROCESS UINT64_MAX

static uint32_t thread_new(struct tracker *t, uint32_t process, uint32_t tid, uint32_t number)
{
	uint32_t row = tk_new(t, &t->threads, &t->layout->thread);
	struct tk_process *p = TK_PROCESS(t, process);
	struct ptt_track_thread *thread = TK_THREAD(t, row);

	if (!row || !rd_pool_new(&t->caches, &t->error))
		return 0;
	*(p->threads ? &TK_THREAD(t, p->threads_last)->process_next : &p->threads) = row;
	p->threads_last = row;
	thread->process = process;
	thread->tid = tid;
	thread->number = number;
	thread->generation = 1;
	thread->first_ns = INT64_MAX;
	thread->last_ns = thread->end_ns = TK_NEVER;
	return row;
}

/* ---- by number and by kernel id ---- */

uint32_t tk_number_of_any_tid(const struct tracker *t, uint32_t tid)
{
	return tk_map_get(&t->tid_of, ANY_PROCESS, tid);
}

int ptt_tracker_thread(struct tracker *t, uint32_t number, uint32_t process, uint32_t tid)
{
	struct tk_known *known;
	uint32_t anywhere;

	if (rd_array_reach((void **)&t->known, &t->known_count, number, sizeof(*t->known)) < 0 ||
	    tk_process_reach(t, process) < 0)
		return -ENOMEM;
	known = &t->known[number];
	if (known->known)
		return 0;
	known->process = process;
	known->tid = tid;
	known->known = true;
	tk_map_set(t, &t->tid_of, process, tid, (uint64_t)number + 1);
	anywhere = tk_number_of_any_tid(t, tid);
	if (anywhere && (anywhere == TK_SEVERAL || t->known[anywhere - 1].process != process))
		tk_map_set(t, &t->tid_of, ANY_PROCESS, tid, TK_SEVERAL);
	else
		tk_map_set(t, &t->tid_of, ANY_PROCESS, tid, (uint64_t)number + 1);
	return t->error;
}

int ptt_tracker_child(struct tracker *t, uint32_t process, uint32_t parent)
{
	if (process == parent)
		return -EINVAL;
	if (tk_process_reach(t, process > parent ? process : parent) < 0)
		return -ENOMEM;
	TK_PROCESS(t, process)->parent = parent + 1;
	return 0;
}

int ptt_tracker_level(struct tracker *t, uint32_t process, uint32_t kinds)
{
	struct tk_process *p;

	if (tk_process_reach(t, process) < 0)
		return -ENOMEM;
	p = TK_PROCESS(t, process);
	for (uint32_t i = 0; i < PTT_KINDS && !p->leveled; i++)
		p->full[i] |= kinds >> i & 1;
	p->leveled = true;
	return 0;
}

static uint32_t thread_of_number(struct tracker *t, uint32_t number)
{
	struct tk_known *known = &t->known[number];

	if (!known->thread)
		known->thread = thread_new(t, known->process, known->tid, number);
	return known->thread;
}

static bool share_memory(const struct tracker *t, uint32_t a, uint32_t b)
{
	const struct tk_process *p = TK_PROCESS(t, a), *q = TK_PROCESS(t, b);

	for (uint32_t i = 0; i < p->range_count; i++)
		for (uint32_t k = 0; k < q->range_count; k++)
			if (TK_SHARE(t, p->ranges[i].share)->memory == TK_SHARE(t, q->ranges[k].share)->memory)
				return true;
	return false;
}

/* Several threads have an id: the kernel reuses the ids of ended threads, and other PID namespaces have the same ids. */
static uint32_t number_of_several(const struct tracker *t, uint32_t process, uint32_t tid)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < t->known_count; i++) {
		const struct tk_known *known = &t->known[i];

		if (known->known && known->tid == tid && !TK_PROCESS(t, known->process)->exited &&
		    share_memory(t, process, known->process)) {
			if (number)
				return 0; /* both may be meant */
			number = i + 1;
		}
	}
	return number;
}

uint32_t tk_number_of_tid(const struct tracker *t, uint32_t process, uint32_t tid)
{
	uint32_t number = tk_map_get(&t->tid_of, process, tid), of = process;

	/* The lock may be the copy of a lock of the parent, or be shared with another process. */
	while (!number && TK_PROCESS(t, of)->parent && TK_PROCESS(t, of)->parent - 1 < of) {
		of = TK_PROCESS(t, of)->parent - 1;
		number = tk_map_get(&t->tid_of, of, tid);
	}
	if (!number)
		number = tk_number_of_any_tid(t, tid);
	return number == TK_SEVERAL ? number_of_several(t, process, tid) : number;
}

uint32_t tk_thread_of_tid(struct tracker *t, uint32_t process, uint32_t tid)
{
	uint32_t number = tk_number_of_tid(t, process, tid);

	return number ? thread_of_number(t, number - 1) : 0;
}

/* ---- life ---- */

bool tk_process_left(const struct tracker *t, const struct tk_process *p)
{
	/* A thread with later events did not become another program: exec() failed, or a vfork() child called it. */
	return p->exited || (p->execs && TK_THREAD(t, p->execs)->last_ns == p->exec_ns);
}

int64_t tk_process_end(const struct tracker *t, uint32_t process, int64_t killed, int64_t seen)
{
	const struct tk_process *p = TK_PROCESS(t, process);
	int64_t end = killed;

	if (end == TK_NEVER && !tk_process_left(t, p))
		end = seen;
	if (p->reaped && p->reaped_ns < end)
		end = p->reaped_ns;
	return end < p->last ? p->last : end;
}

void ptt_tracker_ends(const struct tracker *t, const int64_t *killed, const int64_t *seen, uint32_t count, int64_t *ends)
{
	for (uint32_t i = 0; i < count; i++)
		ends[i] = i < t->process_count ? tk_process_end(t, i, killed[i], seen[i]) : TK_NEVER;
}

/* Enters a thread by its pthread_t, and by the serial number of its creation, which a process does not reuse. */
static void name_thread(struct tracker *t, uint32_t process, uint64_t pthread, int64_t serial, uint32_t thread)
{
	uint32_t before = tk_map_get(&t->pthread_of, process, pthread);

	if (before && before != thread)
		TK_THREAD(t, before)->flags |= PTT_THREAD_GONE;
	TK_THREAD(t, thread)->pthread = pthread;
	if (serial > 0)
		tk_map_set(t, &t->serial_of, process, (uint64_t)serial, thread);
	tk_map_set(t, &t->pthread_of, process, pthread, thread);
}

uint32_t tk_create(struct tracker *t, const struct tk_event *e)
{
	int64_t serial = tk_number(&e->e, TK_SERIAL, 0);
	uint32_t thread = serial > 0 ? tk_map_get(&t->serial_of, e->process, (uint64_t)serial) : 0;

	if (!thread) {
		thread = thread_new(t, e->process, 0, UINT32_MAX);
		name_thread(t, e->process, e->object, serial, thread);
	}
	TK_THREAD(t, thread)->creator = e->thread;
	if (tk_number(&e->e, TK_DETACHED, 0))
		TK_THREAD(t, thread)->flags |= PTT_THREAD_DETACHED;
	return thread;
}

/* The thread that begins with this event: another thread may have had its kernel thread id before. */
static uint32_t begin(struct tracker *t, const struct tk_event *e)
{
	uint32_t number = e->number, process = t->known[number].process, before = t->known[number].thread;
	int64_t serial = tk_number(&e->e, TK_SERIAL, 0);
	uint32_t thread = serial > 0 ? tk_map_get(&t->serial_of, process, (uint64_t)serial) : 0;

	if (thread && TK_THREAD(t, thread)->flags & PTT_THREAD_BEGUN)
		thread = 0;
	/* So far the thread is only known as an owner. */
	if (before && TK_THREAD(t, before)->first_ns == INT64_MAX && !thread)
		thread = before;
	if (!thread)
		thread = thread_new(t, process, t->known[number].tid, number);
	t->known[number].thread = thread;
	TK_THREAD(t, thread)->tid = t->known[number].tid;
	TK_THREAD(t, thread)->number = number;
	TK_THREAD(t, thread)->flags |= PTT_THREAD_BEGUN;
	if (before && before != thread) {
		TK_THREAD(t, thread)->generation = TK_THREAD(t, before)->generation + 1;
		TK_THREAD(t, before)->flags |= PTT_THREAD_REPLACED;
		if (t->replaced)
			t->replaced(t, before);
	}
	name_thread(t, process, e->object, serial, thread);
	return thread;
}

bool tk_first_event(struct tracker *t, struct tk_event *e, enum tk_action action)
{
	struct tk_process *process = TK_PROCESS(t, e->process);

	if (!t->known[e->number].known)
		return false;
	e->thread = action == TK_BEGIN ? begin(t, e) : thread_of_number(t, e->number);
	t->known[e->number].seen = true;
	if (TK_THREAD(t, e->thread)->first_ns != INT64_MAX)
		return true;
	TK_THREAD(t, e->thread)->first_ns = e->ts;
	/* A child is recorded at the levels of its parent; ptt_model_set_full() may have set more. */
	if (!process->thread_count++ && process->parent)
		for (uint32_t i = 0; i < PTT_KINDS; i++)
			process->full[i] |= TK_PROCESS(t, process->parent - 1)->full[i];
	return true;
}

void tk_end(struct tracker *t, const struct tk_event *e)
{
	struct ptt_track_thread *thread = TK_THREAD(t, e->thread);

	thread->end_ns = e->ts;
	thread->flags |= PTT_THREAD_ENDED;
	if (tk_number(&e->e, TK_CANCELLED, 0))
		thread->flags |= PTT_THREAD_CANCELLED;
	if (!thread->pthread)
		name_thread(t, e->process, e->object, 0, e->thread);
}

uint32_t tk_thread_named(const struct tracker *t, const struct tk_event *e)
{
	return tk_map_get(&t->pthread_of, e->process, e->object);
}

uint32_t tk_scheduled(const struct tracker *t, const struct tk_event *e)
{
	uint32_t thread = tk_thread_named(t, e);

	/* Without the start of a process, the pthread_t of its first thread is unknown. */
	return thread || TK_THREAD(t, e->thread)->pthread ? thread : e->thread;
}

uint32_t tk_join_target(const struct tracker *t, const struct tk_event *e, uint32_t owner)
{
	uint32_t thread = owner && !(TK_THREAD(t, owner)->flags & PTT_THREAD_JOINED) ? owner : tk_thread_named(t, e);

	return thread && !(TK_THREAD(t, thread)->flags & PTT_THREAD_JOINED) ? thread : 0;
}

void tk_own_event(struct tracker *t, const struct tk_event *e, enum tk_action action)
{
	struct tk_process *p = TK_PROCESS(t, e->process);
	uint32_t thread;

	switch (action) {
	case TK_END:
		tk_end(t, e);
		break;
	case TK_PROCESS_START:
		if (tk_number(&e->e, TK_PTHREAD, 0))
			name_thread(t, e->process, (uint64_t)tk_number(&e->e, TK_PTHREAD, 0), 0, e->thread);
		break;
	case TK_DETACH:
		thread = tk_thread_named(t, e);
		if (thread && tk_number(&e->e, TK_RESULT, 0) == 0)
			TK_THREAD(t, thread)->flags |= PTT_THREAD_DETACHED;
		break;
	case TK_PROCESS_EXIT:
		p->exited = true;
		break;
	case TK_EXEC:
		p->exec_ns = e->ts;
		p->execs = e->thread;
		break;
	default:
		break;
	}
}
