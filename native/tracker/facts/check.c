/* SPDX-License-Identifier: MIT */
/* check.c - the checker as a whole: creation, the handler of each event, and the end. */
#include "facts.h"

int ptt_check_version(void)
{
	return PTT_CHECK_VERSION;
}

/* ---- beginning ---- */

static const struct ck_thread new_thread = { .busy_ts = TK_NEVER, .cond_left_ts = TK_NEVER };
static const struct ck_object new_object = { .taken = TK_NEVER, .taken_before = TK_NEVER, .asked = TK_NEVER };
static const struct tk_layout layout = {
	.process = { sizeof(struct ck_process), NULL },
	.thread = { sizeof(struct ck_thread), &new_thread },
	.object = { sizeof(struct ck_object), &new_object },
	.hold = { sizeof(struct tk_hold), NULL },
	.wait = { sizeof(struct ck_wait), NULL },
	.wakeup = { sizeof(struct ck_wakeup), NULL },
	.cache = sizeof(struct ck_cache),
};

struct ptt_check *ptt_check_create(int64_t long_hold, int64_t long_wait)
{
	struct ptt_check *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return NULL;
	c->long_hold = long_hold;
	c->long_wait = long_wait;
	c->t.object_made = ck_object_made;
	c->orders.in_thread = offsetof(struct ck_thread, order);
	c->orders.in_object = offsetof(struct ck_object, order);
	c->orders.closed = ck_order_closed;
	err = tk_open(&c->t, &layout);
	err |= tk_orders_open(&c->orders, &c->t);
	err |= rd_pool_open(&c->facts, sizeof(struct ptt_check_fact));
	err |= rd_pool_open(&c->steps, sizeof(struct ptt_check_step));
	err |= rd_pool_open(&c->extras, sizeof(struct ck_extra));
	err |= rd_pool_open(&c->links, sizeof(struct ck_link));
	if (err) {
		ptt_check_destroy(c);
		return NULL;
	}
	return c;
}

void ptt_check_destroy(struct ptt_check *c)
{
	struct rd_pool *pools[] = { &c->facts, &c->steps, &c->extras, &c->links };
	struct rd_map *maps[] = { &c->seen, &c->seen_at, &c->uses, &c->handed };

	for (size_t i = 0; i < sizeof(pools) / sizeof(*pools); i++)
		rd_pool_close(pools[i]);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		rd_map_free(maps[i]);
	for (uint32_t i = 0; i < c->t.process_count; i++)
		free(CK_PROCESS(c, i)->memory);
	tk_orders_close(&c->orders);
	tk_close(&c->t);
	free(c);
}

int ptt_check_stack(struct ptt_check *c, uint32_t process, uint64_t from)
{
	if (tk_process_reach(&c->t, process) < 0)
		return -ENOMEM;
	CK_PROCESS(c, process)->stack = from;
	return 0;
}

int ptt_check_memory(struct ptt_check *c, uint32_t process, uint64_t from, uint64_t to)
{
	struct ck_process *p;
	uint64_t *bigger;

	if (tk_process_reach(&c->t, process) < 0)
		return -ENOMEM;
	p = CK_PROCESS(c, process);
	bigger = realloc(p->memory, (p->memory_count + 1) * 2 * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	p->memory = bigger;
	p->memory[2 * p->memory_count] = from;
	p->memory[2 * p->memory_count + 1] = to;
	p->memory_count++;
	return 0;
}

/* ---- events ---- */

/* The level of a process changes: events may be missing, so the known state of its locks is no longer valid. */
static void level_changed(struct ptt_check *c, const struct tk_event *e)
{
	struct ck_process *p = CK_PROCESS(c, e->process);

	for (uint32_t i = p->objects; i; i = CK_OBJECT(c, i)->process_next) {
		struct ck_object *o = CK_OBJECT(c, i);

		ck_drop_holds(c, i);
		o->flags |= CK_DOUBT;
		o->flags &= ~CK_AS_LOCK;
		o->sem_hold = 0;
		o->extra = 0;
		o->order.units = 0;
	}
	for (uint32_t i = p->threads; i; i = CK_THREAD(c, i)->process_next) {
		CK_THREAD(c, i)->flags &= ~CK_WHOLE;
		CK_THREAD(c, i)->won.object = 0;
		CK_THREAD(c, i)->tries.count = 0;
	}
	memset(p->full, 0, sizeof(p->full));
}

/* A process begins. The trace has its first thread from the beginning on. */
static void process_starts(struct ptt_check *c, const struct tk_event *e)
{
	tk_own_event(&c->t, e, TK_PROCESS_START);
	CK_PROCESS(c, e->process)->first_thread = e->thread;
	CK_THREAD(c, e->thread)->flags |= CK_WHOLE | PTT_THREAD_BEGUN;
	ck_sem_forked(c, e, e->process);
}

static void lock_taken(struct ptt_check *c, const struct tk_event *e, uint8_t mode)
{
	uint32_t kind = e->id >> 6, object = ck_use(c, e, kind);
	/* The first thread runs a once control: no thread asks for it as for a lock. */
	enum tk_how how = kind == PTT_KIND_ONCE ? TK_TRIED : (enum tk_how)tk_meanings[e->id].how;

	if (how == TK_WAITED)
		ck_lock_waited(c, e, object);
	if (unlikely(how == TK_WAITED || CK_OBJECT(c, object)->passes))
		ck_pass(c, e, object, how);
	ck_acquire(c, e, object, mode, how);
}

static void lost(struct ptt_check *c, const struct tk_event *e)
{
	tk_sched_lose(&CK_THREAD(c, e->thread)->sched);
	c->lost += (uint64_t)tk_number(&e->e, TK_COUNT, 0);
}

/* Handlers of the events that are no acquisition, release or wait of a lock, by their meaning. */
static void (*const handlers[TK_ACTIONS])(struct ptt_check *c, const struct tk_event *e) = {
	[TK_INIT] = ck_init,		   [TK_DESTROY] = ck_destroy,	    [TK_FAILED] = ck_lock_error,
	[TK_COND_IN] = ck_cond_in,	   [TK_COND_OUT] = ck_cond_out,	    [TK_SIGNAL] = ck_wake,
	[TK_BROADCAST] = ck_wake,	   [TK_BARRIER_IN] = ck_barrier_in, [TK_BARRIER_OUT] = ck_barrier_out,
	[TK_BARRIER_ARRIVE] = ck_barrier_arrive, [TK_RELEASE_AWAITED] = ck_release_awaited,
	[TK_SEM_TAKEN] = ck_sem_taken,	   [TK_SEM_POST] = ck_sem_post,	    [TK_CREATE] = ck_create,
	[TK_BEGIN] = ck_begin,		   [TK_END] = ck_end,		    [TK_PRIORITY_SET] = ck_priority,
	[TK_JOIN_IN] = ck_join_in,	   [TK_JOIN_OUT] = ck_join_out,	    [TK_PROCESS_START] = process_starts,
	[TK_FORK] = ck_fork,		   [TK_REAPED] = ck_reaped,	    [TK_LEVEL] = level_changed,	    [TK_FUTEX_IN] = ck_futex_in,
	[TK_LOST] = lost,		   [TK_SCHED] = ck_sched,	    [TK_SCHED_UNKNOWN] = ck_sched_unknown,
	[TK_FUTEX_OUT] = ck_futex_out,	   [TK_FUTEX_WAKE] = ck_futex_wake,
	[TK_SLEEP_IN] = ck_sleep_in,	   [TK_SLEEP_OUT] = ck_sleep_out,   [TK_TRY_OUT] = ck_try_out,
};

static inline void silence(struct ck_thread *t, int64_t ts)
{
	/* unsigned: last_ns is INT64_MIN before the first event */
	int64_t since = (int64_t)((uint64_t)ts - (uint64_t)t->last_ns);

	if (unlikely(since >= PTT_SILENT_NS) && !t->waits && !t->call && !t->library_wait && t->last_ns >= t->first_ns)
		t->silent_ns += (uint64_t)since;
}

static inline void event(struct tracker *t, struct tk_event *e, enum tk_action action)
{
	struct ptt_check *c = (struct ptt_check *)(void *)t;
	uint32_t kind = e->id >> 6;

	silence(CK_THREAD(c, e->thread), e->ts);
	/* Events about threads, system calls and readings are no actions of the thread with locks. */
	if (kind != PTT_KIND_THREAD && kind != NPTL_DOMAIN_SYS && action != TK_SCHED) {
		if (action != TK_FORK)
			CK_THREAD(c, e->thread)->busy_ts = e->ts;
		/* the call has ended, or a signal handler runs, which may jump elsewhere */
		CK_THREAD(c, e->thread)->call = 0;
		if (unlikely(CK_THREAD(c, e->thread)->tries.count))
			ck_tries_end(c, e, action);
	}
	/* The program is not responsible for the C library's own locks. */
	if (unlikely(kind == PTT_KIND_LLL)) {
		CK_THREAD(c, e->thread)->library_wait = action == TK_WAIT;
		return;
	}
	switch (action) {
	case TK_IGNORE:
	case TK_CALL_IN:
	case TK_CALL_OUT:
		break;
	case TK_ACQUIRE:
	case TK_ONCE_BEGIN:
		lock_taken(c, e, PTT_MODE_EXCLUSIVE);
		break;
	case TK_ACQUIRE_SHARED:
		lock_taken(c, e, PTT_MODE_SHARED);
		break;
	case TK_RELEASE:
	case TK_ONCE_END:
		ck_release(c, e, kind);
		break;
	case TK_WAIT:
		ck_lock_wait(c, e, kind);
		break;
	case TK_WAIT_END:
		ck_lock_waited(c, e, ck_object(c, e, kind, e->object));
		break;
	default:
		if (handlers[action])
			handlers[action](c, e);
		else
			tk_own_event(t, e, action);
	}
}

int ptt_check_feed(struct ptt_check *c, const struct ptt_columns *columns, int64_t n)
{
	return tk_feed(&c->t, columns, 0, n, event, NULL);
}

/* ---- end ---- */

/* Finds the facts that are certain only when no more events follow. */
static void at_end(struct ptt_check *c, const int64_t *ends, uint32_t count)
{
	struct tk_event e = { .ts = INT64_MIN };

	for (uint32_t i = 0; i < c->t.process_count; i++)
		if (CK_PROCESS(c, i)->last > e.ts)
			e.ts = CK_PROCESS(c, i)->last;
	ck_find_hung(c, ends, count);
	ck_last_deadlocks(c, &e);
	ck_forked_locks(c);
	ck_abandoned_locks(c, ends, count);
	ck_kept_locks(c);
	ck_lost_wakeups(c);
	ck_stuck_barriers(c);
	ck_stuck(c, 0);
	if (ck_suppose_no_handlers(c, ends, count))
		ck_stuck(c, PTT_FLAG_UNLESS_HANDLER);
	ck_leaks(c);
}

/* The wait of a step, if it goes on. */
static struct ck_wait *wait_of(const struct ptt_check *c, const struct ptt_check_step *s)
{
	uint32_t wait = CK_THREAD(c, s->thread)->waits;

	while (wait && CK_WAITING(c, wait)->id != s->wait)
		wait = CK_WAITING(c, wait)->thread_next;
	return wait && s->wait ? CK_WAITING(c, wait) : NULL;
}

/* Drops waits of threads for themselves that are also part of a cycle, such as readers that all want to write. */
static void prefer_cycles(struct ptt_check *c)
{
	for (int drop = 0; drop <= 1; drop++) {
		enum ptt_fact_kind kind = drop ? PTT_FACT_WAIT_FOR_SELF : PTT_FACT_WAIT_CYCLE;

		for (uint32_t i = 1; i < c->facts.count; i++) {
			struct ptt_check_fact *f = CK_FACT(c, i);

			for (uint32_t k = f->first_step; f->kind == kind && k < f->first_step + f->steps; k++) {
				struct ck_wait *w = wait_of(c, CK_STEP(c, k));

				if (!w || f->flags & (PTT_FLAG_DROPPED | PTT_FLAG_REFUSED))
					continue;
				if (!drop)
					w->in_cycle = true;
				else if (w->in_cycle)
					f->flags |= PTT_FLAG_DROPPED;
			}
		}
	}
}

static void settle(struct ptt_check *c, uint32_t flags)
{
	int64_t ragged = INT64_MIN;

	for (uint32_t i = 1; i < c->t.threads.count && flags & PTT_CHECK_RAGGED; i++) {
		const struct ck_thread *t = CK_THREAD(c, i);

		if (!(t->flags & CK_WHOLE) && t->first_ns != INT64_MAX && t->first_ns > ragged)
			ragged = t->first_ns;
	}
	for (uint32_t i = 1; i < c->facts.count; i++) {
		struct ptt_check_fact *f = CK_FACT(c, i);

		if (f->flags & PTT_FLAG_WHOLE && flags & PTT_CHECK_INCOMPLETE)
			f->flags |= PTT_FLAG_DROPPED;
		for (uint32_t k = f->first_step; k < f->first_step + f->steps; k++) {
			const struct ptt_check_step *s = CK_STEP(c, k);
			const struct ck_wait *w;

			if (f->flags & PTT_FLAG_WHOLE && s->ts < ragged)
				f->flags |= PTT_FLAG_DROPPED;
			if (!(f->flags & PTT_FLAG_CLOSED) || !s->wait)
				continue;
			w = wait_of(c, s);
			/* If events are missing, a release may be missing: then the lock itself must name the same owner. */
			if (!w || (flags & PTT_CHECK_INCOMPLETE && s->kind == NPTL_DOMAIN_MUTEX && w->owner &&
				   w->owner != s->other))
				f->flags |= PTT_FLAG_DROPPED;
		}
	}
}

int ptt_check_finish(struct ptt_check *c, const int64_t *ends, uint32_t count, uint32_t flags)
{
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		ck_tries_report(c, i);
		ck_still_waits(c, i);
	}
	ck_extra_finish(c);
	if (!(flags & PTT_CHECK_RUNNING))
		at_end(c, ends, count);
	ck_prevented_cycles(c);
	settle(c, flags);
	prefer_cycles(c);
	return c->t.error;
}

uint64_t ptt_check_lost(const struct ptt_check *c)
{
	return c->lost;
}

uint64_t ptt_check_crowded(const struct ptt_check *c)
{
	return c->orders.crowded;
}

uint64_t ptt_check_nested_semaphores(const struct ptt_check *c, uint32_t process)
{
	return process < c->t.process_count ? CK_PROCESS(c, process)->nested : 0;
}

uint64_t ptt_check_futex_waits(const struct ptt_check *c)
{
	return c->futex_waits;
}

_Static_assert(offsetof(struct ck_thread, library_wait) - offsetof(struct ck_thread, first_ns) ==
		       offsetof(struct ptt_check_thread_row, library_wait), "a thread's row lies in it");

int ptt_check_table(const struct ptt_check *c, uint32_t which, struct ptt_check_table *out)
{
	const struct rd_pool *pool = which == PTT_CHECK_FACTS ? &c->facts :
				     which == PTT_CHECK_STEPS	 ? &c->steps :
				     which == PTT_CHECK_THREADS	 ? &c->t.threads :
								   NULL;

	if (!pool)
		return -EINVAL;
	*out = (struct ptt_check_table){ pool->items, pool->count, pool->size };
	if (which == PTT_CHECK_THREADS)
		out->items = &CK_THREAD(c, 0)->first_ns;
	return 0;
}
