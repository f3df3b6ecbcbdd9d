/* SPDX-License-Identifier: MIT */
/* check.c - the checker as a whole: what each event means to it, its beginning and its end. */
#include "internal.h"

int ptt_check_version(void)
{
	return PTT_CHECK_VERSION;
}

/* ---- beginning ---- */

struct ptt_check *ptt_check_create(int64_t long_hold, int64_t long_wait)
{
	struct ptt_check *c = calloc(1, sizeof(*c));
	int err = 0;

	if (!c)
		return NULL;
	c->long_hold = long_hold;
	c->long_wait = long_wait;
	c->last_ts = INT64_MIN;
	err |= rd_pool_open(&c->objects, sizeof(struct ck_object));
	err |= rd_pool_open(&c->threads, sizeof(struct ck_thread));
	err |= rd_pool_open(&c->holds, sizeof(struct ck_hold));
	err |= rd_pool_open(&c->waits, sizeof(struct ck_wait));
	err |= rd_pool_open(&c->nodes, sizeof(struct ck_node));
	err |= ck_order_open(c);
	err |= rd_pool_open(&c->facts, sizeof(struct ptt_check_fact));
	err |= rd_pool_open(&c->steps, sizeof(struct ptt_check_step));
	err |= rd_pool_open(&c->shares, sizeof(struct ck_share));
	if (err) {
		ptt_check_destroy(c);
		return NULL;
	}
	ck_learn_catalogue(c);
	return c;
}

void ptt_check_destroy(struct ptt_check *c)
{
	struct rd_pool *pools[] = { &c->objects, &c->threads, &c->holds, &c->waits, &c->nodes,
				    &c->edges, &c->orders, &c->facts, &c->steps, &c->held, &c->shares };
	struct rd_map *maps[] = { &c->object_of, &c->pthread_of, &c->serial_of, &c->tid_of,
				  &c->seen, &c->seen_at, &c->edge_of, &c->order_of, &c->set_of };

	for (size_t i = 0; i < sizeof(pools) / sizeof(*pools); i++)
		rd_pool_close(pools[i]);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		rd_map_free(maps[i]);
	for (uint32_t i = 0; i < c->process_count; i++)
		free(c->processes[i].memory);
	free(c->processes);
	free(c->known);
	free(c->stack);
	free(c);
}

static int process_reach(struct ptt_check *c, uint32_t process)
{
	return rd_array_reach((void **)&c->processes, &c->process_count, process, sizeof(*c->processes));
}

int ptt_check_process(struct ptt_check *c, uint32_t process, uint32_t parent)
{
	if (process_reach(c, process) < 0)
		return -ENOMEM;
	c->processes[process].parent = parent + 1;
	return 0;
}

int ptt_check_stack(struct ptt_check *c, uint32_t process, uint64_t from)
{
	if (process_reach(c, process) < 0)
		return -ENOMEM;
	c->processes[process].stack = from;
	return 0;
}

int ptt_check_memory(struct ptt_check *c, uint32_t process, uint64_t from, uint64_t to)
{
	struct ck_process *p;
	uint64_t *bigger;

	if (process_reach(c, process) < 0)
		return -ENOMEM;
	p = &c->processes[process];
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

#define ID(domain, event) (NPTL_DOMAIN_##domain << 6 | NPTL_EV_##event)

/* What was known of locks before does not say what they are like now. */
static void level_changed(struct ptt_check *c, const struct ck_event *e)
{
	struct ck_process *p = &c->processes[e->process];

	for (uint32_t i = p->objects; i; i = CK_OBJECT(c, i)->process_next) {
		struct ck_object *o = CK_OBJECT(c, i);

		ck_drop_holds(c, i);
		o->flags |= CK_DOUBT;
		o->flags &= ~CK_AS_LOCK;
		o->sem_hold = 0;
	}
	for (uint32_t i = p->threads; i; i = CK_THREAD(c, i)->process_next)
		CK_THREAD(c, i)->flags &= ~CK_WHOLE;
	memset(p->full, 0, sizeof(p->full));
}

/* A process begins; its first thread has been there from the beginning. */
static void process_starts(struct ptt_check *c, const struct ck_event *e)
{
	c->processes[e->process].first_thread = e->thread;
	CK_THREAD(c, e->thread)->flags |= CK_WHOLE | CK_BEGUN;
}

static void lock_taken(struct ptt_check *c, const struct ck_event *e, uint8_t mode, enum ck_how how)
{
	uint32_t object = ck_use(c, e, e->id >> 6);

	if (how == CK_WAITED)
		ck_lock_waited(c, e, object);
	ck_acquire(c, e, object, mode, how);
}

static void other_event(struct ptt_check *c, const struct ck_event *e)
{
	uint32_t kind = e->id >> 6;

	switch (e->id) {
	case ID(MUTEX, MUTEX_INIT):
	case ID(RWLOCK, RWLOCK_INIT):
	case ID(SPIN, SPIN_INIT):
	case ID(COND, COND_INIT):
	case ID(BARRIER, BARRIER_INIT):
	case ID(SEM, SEM_INIT):
	case ID(SEM, SEM_OPEN):
		ck_init(c, e, kind);
		break;
	case ID(MUTEX, MUTEX_DESTROY):
	case ID(RWLOCK, RWLOCK_DESTROY):
	case ID(SPIN, SPIN_DESTROY):
	case ID(COND, COND_DESTROY):
	case ID(BARRIER, BARRIER_DESTROY):
	case ID(SEM, SEM_DESTROY):
	case ID(SEM, SEM_CLOSE):
		ck_destroy(c, e, kind);
		break;
	case ID(MUTEX, MUTEX_ERROR):
	case ID(RWLOCK, RWLOCK_ERROR):
		ck_lock_error(c, e, kind);
		break;
	case ID(COND, COND_WAIT_IN):
	case ID(COND, COND_TIMEDWAIT_IN):
	case ID(COND, COND_CLOCKWAIT_IN):
		ck_cond_in(c, e);
		break;
	case ID(COND, COND_WAIT_OUT):
	case ID(COND, COND_TIMEDWAIT_OUT):
	case ID(COND, COND_CLOCKWAIT_OUT):
		ck_cond_out(c, e);
		break;
	case ID(COND, COND_SIGNAL):
	case ID(COND, COND_BROADCAST):
		ck_wake(c, e, e->id == ID(COND, COND_BROADCAST));
		break;
	case ID(BARRIER, BARRIER_WAIT_IN):
		ck_barrier_in(c, e);
		break;
	case ID(BARRIER, BARRIER_WAIT_OUT):
		ck_barrier_out(c, e);
		break;
	case ID(SEM, SEM_TAKEN):
	case ID(SEM, SEM_TAKEN_WAITED):
		ck_sem_taken(c, e, e->id == ID(SEM, SEM_TAKEN_WAITED));
		break;
	case ID(SEM, SEM_POST):
		ck_sem_post(c, e);
		break;
	case ID(THREAD, NEW_THREAD_CREATED):
		ck_create(c, e);
		break;
	case ID(THREAD, THREAD_END):
		ck_exit_holding(c, e);
		ck_end(c, e);
		break;
	case ID(THREAD, THREAD_DETACH):
		ck_detach(c, e);
		break;
	case ID(THREAD, THREAD_PRIORITY):
		ck_priority(c, e);
		break;
	case ID(THREAD, THREAD_JOIN_IN):
	case ID(THREAD, THREAD_TIMEDJOIN_IN):
	case ID(THREAD, THREAD_CLOCKJOIN_IN):
		ck_join_in(c, e);
		break;
	case ID(THREAD, THREAD_JOIN_OUT):
	case ID(THREAD, THREAD_TIMEDJOIN_OUT):
	case ID(THREAD, THREAD_CLOCKJOIN_OUT):
		ck_join_out(c, e);
		break;
	case ID(PROCESS, PROCESS_START):
		process_starts(c, e);
		break;
	case ID(PROCESS, PROCESS_FORK):
		ck_fork(c, e);
		break;
	case ID(PROCESS, PROCESS_EXIT):
		c->processes[e->process].left = true;
		break;
	case ID(PROCESS, PROCESS_EXEC):
		c->processes[e->process].replaced = true;
		break;
	case ID(PROCESS, PROCESS_EXEC_FAILED):
		c->processes[e->process].replaced = false;
		break;
	case ID(HANDLER, LEVEL_CHANGED):
		level_changed(c, e);
		break;
	case ID(FUTEX, FUTEX_WAIT_IN):
		c->futex_waits++;
		break;
	case ID(HANDLER, EVENTS_LOST):
		c->lost += (uint64_t)ck_number(c, e, CK_COUNT, 0);
		break;
	}
}

static inline void event(struct ptt_check *c, const struct ck_event *e)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	struct ck_process *p = &c->processes[e->process];

	if (unlikely(t->first_ts == INT64_MAX))
		t->first_ts = e->ts;
	t->last_ts = e->ts;
	p->last_ts = e->ts;
	if (e->id >> 6 != NPTL_DOMAIN_THREAD)
		t->busy_ts = e->ts;
	p->full[e->id >> 6] |= c->level[e->id] >= 2;
	switch (e->id) {
	case ID(MUTEX, MUTEX_TAKEN):
	case ID(RWLOCK, RWLOCK_TAKEN_WRITE):
	case ID(SPIN, SPIN_TAKEN):
		lock_taken(c, e, CK_EXCLUSIVE, CK_PLAIN);
		break;
	case ID(MUTEX, MUTEX_FREE):
	case ID(RWLOCK, RWLOCK_FREE):
	case ID(SPIN, SPIN_FREE):
	case ID(ONCE, ONCE_END):
		ck_release(c, e, e->id >> 6);
		break;
	case ID(RWLOCK, RWLOCK_TAKEN_READ):
		lock_taken(c, e, CK_SHARED, CK_PLAIN);
		break;
	case ID(MUTEX, MUTEX_TAKEN_TRIED):
	case ID(RWLOCK, RWLOCK_TAKEN_WRITE_TRIED):
	case ID(SPIN, SPIN_TAKEN_TRIED):
	case ID(ONCE, ONCE_BEGIN):
		lock_taken(c, e, CK_EXCLUSIVE, CK_TRIED);
		break;
	case ID(RWLOCK, RWLOCK_TAKEN_READ_TRIED):
		lock_taken(c, e, CK_SHARED, CK_TRIED);
		break;
	case ID(MUTEX, MUTEX_TAKEN_WAITED):
	case ID(RWLOCK, RWLOCK_TAKEN_WRITE_WAITED):
	case ID(SPIN, SPIN_TAKEN_WAITED):
		lock_taken(c, e, CK_EXCLUSIVE, CK_WAITED);
		break;
	case ID(RWLOCK, RWLOCK_TAKEN_READ_WAITED):
		lock_taken(c, e, CK_SHARED, CK_WAITED);
		break;
	case ID(MUTEX, MUTEX_WAIT):
	case ID(RWLOCK, RWLOCK_WAIT):
	case ID(SPIN, SPIN_WAIT):
	case ID(SEM, SEM_WAIT):
	case ID(ONCE, ONCE_WAIT):
		ck_lock_wait(c, e, e->id >> 6);
		break;
	case ID(MUTEX, MUTEX_WAIT_END):
	case ID(RWLOCK, RWLOCK_WAIT_END):
	case ID(SEM, SEM_WAIT_END):
	case ID(ONCE, ONCE_WAIT_END):
		ck_lock_waited(c, e, ck_object(c, e, e->id >> 6, e->object));
		break;
	default:
		other_event(c, e);
	}
}

int ptt_check_feed(struct ptt_check *c, const struct ptt_columns *columns, int64_t n)
{
	for (int64_t i = 0; i < n && !c->error; i++) {
		struct ck_event e = {
			.ts = columns->ts[i],
			.object = columns->object[i],
			.site = columns->site[i],
			.payload = columns->payload[i],
			.id = columns->id[i] & PTT_ID_MASK,
		};
		uint32_t number = columns->thread[i];

		if (unlikely(number >= c->known_count || !c->known[number].known))
			continue;
		e.process = c->known[number].process;
		e.thread = c->known[number].thread;
		if (unlikely(e.id == ID(THREAD, THREAD_BEGIN)))
			e.thread = ck_begin(c, &e, number);
		else if (unlikely(!e.thread))
			e.thread = ck_thread_of_number(c, number);
		event(c, &e);
		c->last_ts = e.ts;
	}
	return c->error;
}

/* ---- end ---- */

/* What can be said only when nothing more will happen. */
static void at_end(struct ptt_check *c, const int64_t *ends, uint32_t count)
{
	struct ck_event e = { .ts = c->last_ts };

	ck_find_hung(c, ends, count);
	for (uint32_t i = 1; i < c->threads.count; i++)
		if (CK_THREAD(c, i)->waits)
			ck_deadlock(c, i, &e, true);
	ck_forked_locks(c);
	ck_kept_locks(c);
	ck_lost_wakeups(c);
	ck_stuck_barriers(c);
	ck_stuck(c);
	ck_leaks(c);
}

static void settle(struct ptt_check *c, uint32_t flags)
{
	int64_t ragged = INT64_MIN;

	for (uint32_t i = 1; i < c->threads.count && flags & PTT_CHECK_RAGGED; i++) {
		const struct ck_thread *t = CK_THREAD(c, i);

		if (!(t->flags & CK_WHOLE) && t->first_ts != INT64_MAX && t->first_ts > ragged)
			ragged = t->first_ts;
	}
	for (uint32_t i = 1; i < c->facts.count; i++) {
		struct ptt_check_fact *f = CK_FACT(c, i);

		if (f->flags & PTT_FLAG_WHOLE && flags & PTT_CHECK_INCOMPLETE)
			f->flags |= PTT_FLAG_DROPPED;
		for (uint32_t k = f->first_step; k < f->first_step + f->steps; k++) {
			const struct ptt_check_step *s = CK_STEP(c, k);
			uint32_t wait;

			if (f->flags & PTT_FLAG_WHOLE && s->ts < ragged)
				f->flags |= PTT_FLAG_DROPPED;
			if (!(f->flags & PTT_FLAG_CLOSED) || !s->wait)
				continue;
			wait = CK_THREAD(c, s->thread)->waits;
			while (wait && CK_WAITING(c, wait)->id != s->wait)
				wait = CK_WAITING(c, wait)->thread_next;
			/* With events missing, a release may be: then the lock itself must say the same. */
			if (!wait || (flags & PTT_CHECK_INCOMPLETE && s->kind == NPTL_DOMAIN_MUTEX &&
				      CK_WAITING(c, wait)->owner && CK_WAITING(c, wait)->owner != s->other))
				f->flags |= PTT_FLAG_DROPPED;
		}
	}
}

int ptt_check_finish(struct ptt_check *c, const int64_t *ends, uint32_t count, uint32_t flags)
{
	if (!(flags & PTT_CHECK_RUNNING))
		at_end(c, ends, count);
	settle(c, flags);
	return c->error;
}

uint64_t ptt_check_lost(const struct ptt_check *c)
{
	return c->lost;
}

uint64_t ptt_check_crowded(const struct ptt_check *c)
{
	return c->crowded;
}

uint64_t ptt_check_futex_waits(const struct ptt_check *c)
{
	return c->futex_waits;
}

int ptt_check_table(const struct ptt_check *c, uint32_t which, struct ptt_check_table *out)
{
	const struct rd_pool *pool = which == PTT_CHECK_FACTS ? &c->facts :
				     which == PTT_CHECK_STEPS	 ? &c->steps :
				     which == PTT_CHECK_THREADS	 ? &c->threads :
								   NULL;

	if (!pool)
		return -EINVAL;
	*out = (struct ptt_check_table){ pool->items, pool->count, pool->size };
	return 0;
}
