/* SPDX-License-Identifier: MIT */
/* model.c - the model as a whole: its tables, which part each event is for, its beginning and its end. */
#include "holds.h"

int ptt_model_version(void)
{
	return PTT_MODEL_VERSION;
}

/* ---- beginning ---- */

struct ptt_model *ptt_model_create(uint32_t flags)
{
	struct ptt_model *m = calloc(1, sizeof(*m));
	int err = 0;

	if (!m)
		return NULL;
	m->flags = flags;
	m->window = (struct md_window){ .begin = INT64_MIN, .end = INT64_MAX, .begun = true };
	err |= rd_pool_open(&m->objects, sizeof(struct md_object));
	err |= rd_pool_open(&m->sites, sizeof(struct md_site));
	err |= rd_pool_open(&m->threads, sizeof(struct md_thread));
	err |= rd_pool_open(&m->pairs, sizeof(struct ptt_model_pair));
	err |= rd_pool_open(&m->blames, sizeof(struct ptt_model_blame));
	err |= rd_pool_open(&m->causes, sizeof(struct ptt_model_cause));
	err |= rd_pool_open(&m->wakers, sizeof(struct ptt_model_waker));
	err |= rd_pool_open(&m->edges, sizeof(struct ptt_model_edge));
	err |= rd_pool_open(&m->histograms, PTT_BUCKETS * sizeof(uint32_t));
	err |= rd_pool_open(&m->holds, sizeof(struct md_hold));
	err |= rd_pool_open(&m->waits, sizeof(struct md_wait));
	err |= rd_pool_open(&m->logs, sizeof(struct md_log));
	err |= rd_pool_open(&m->tokens, sizeof(struct md_tokens));
	if (err) {
		ptt_model_destroy(m);
		return NULL;
	}
	m->wait_rows.size = m->open_rows.size = sizeof(struct ptt_model_wait);
	m->hold_rows.size = sizeof(struct ptt_model_hold);
	m->wakeup_rows.size = sizeof(struct ptt_model_wakeup);
	m->state_rows.size = sizeof(struct ptt_model_event);
	m->segments.size = sizeof(struct ptt_model_segment);
	m->steps.held.size = sizeof(struct md_step);
	m->steps.file = -1;
	md_learn_catalogue(m);
	return m;
}

void ptt_model_destroy(struct ptt_model *m)
{
	struct rd_pool *pools[] = { &m->objects, &m->sites, &m->threads, &m->pairs, &m->blames, &m->causes,
				    &m->wakers, &m->edges, &m->histograms, &m->holds, &m->waits, &m->logs };
	struct rd_map *maps[] = { &m->object_of, &m->site_of, &m->pair_of, &m->blame_of, &m->cause_key,
				  &m->cause_of, &m->waker_of, &m->edge_of, &m->pthread_of, &m->serial_of,
				  &m->tid_of, &m->only_objects, &m->only_sites };
	struct md_rows *rows[] = { &m->wait_rows, &m->hold_rows, &m->wakeup_rows, &m->open_rows, &m->state_rows,
				   &m->segments, &m->steps.held };

	for (uint32_t i = 1; i < m->tokens.count; i++)
		free(((struct md_tokens *)(void *)m->tokens.items)[i].items);
	rd_pool_close(&m->tokens);
	for (size_t i = 0; i < sizeof(pools) / sizeof(*pools); i++)
		rd_pool_close(pools[i]);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		rd_map_free(maps[i]);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		free(rows[i]->items);
	free(m->steps.back);
	free(m->known);
	free(m->processes);
	free(m->shared);
	free(m->window.threads);
	free(m->window.objects);
	free(m);
}

int ptt_model_child(struct ptt_model *m, uint32_t process, uint32_t parent)
{
	if (process >= m->process_count || parent >= m->process_count || process == parent)
		return -EINVAL;
	m->processes[process].parent = parent + 1;
	return 0;
}

int ptt_model_only_object(struct ptt_model *m, uint32_t process, uint64_t address)
{
	return rd_map_put(&m->only_objects, process, address) ? 0 : -ENOMEM;
}

int ptt_model_only_site(struct ptt_model *m, uint32_t process, uint64_t address)
{
	return rd_map_put(&m->only_sites, process, address) ? 0 : -ENOMEM;
}

/* ---- events ---- */

static void level_changed(struct ptt_model *m, const struct md_event *e)
{
	memset(m->processes[e->process].full, 0, sizeof(m->processes[e->process].full));
	for (uint32_t i = 1; i < m->objects.count; i++)
		if (MD_OBJECT(m, i)->pub.process == e->process)
			md_drop_holds(m, i, e->ts);
}

static void lock_event(struct ptt_model *m, const struct md_event *e, enum md_action action)
{
	uint32_t pair, object = md_object(m, e->thread, e->id >> 6, e->object, e->ts, &pair);
	bool acquires = action == MD_ACQUIRE || action == MD_ACQUIRE_SHARED || action == MD_ONCE_BEGIN;

	if (acquires && unlikely(MD_OBJECT(m, object)->named))
		md_place_owner(m, e, object);
	switch (action) {
	case MD_ACQUIRE:
	case MD_ACQUIRE_SHARED:
		if (m->field_at[e->id][MD_WAIT_NS].number)
			md_lock_waited(m, e, object);
		md_acquire(m, e, object, pair, action == MD_ACQUIRE_SHARED ? PTT_MODE_SHARED : PTT_MODE_EXCLUSIVE);
		break;
	case MD_ONCE_BEGIN:
		md_acquire(m, e, object, pair, PTT_MODE_EXCLUSIVE);
		break;
	case MD_WAIT_END:
		md_lock_waited(m, e, object);
		break;
	default:
		md_wait_begin(m, e, object, pair,
			      e->id >> 6 == PTT_KIND_RWLOCK && !md_number(m, e, MD_WRITE, 1) ? PTT_MODE_SHARED :
											      PTT_MODE_EXCLUSIVE);
	}
}

static void other_event(struct ptt_model *m, const struct md_event *e, enum md_action action)
{
	uint32_t pair;

	switch (action) {
	case MD_INIT:
		md_init(m, e, e->id >> 6);
		break;
	case MD_DESTROY:
		md_destroy(m, e, e->id >> 6);
		break;
	case MD_COND_IN:
		md_cond_in(m, e);
		break;
	case MD_COND_OUT:
		md_cond_out(m, e);
		break;
	case MD_WAKE:
	case MD_WAKE_ALL:
		md_wake(m, e, md_object(m, e->thread, e->id >> 6, e->object, e->ts, &pair),
			action == MD_WAKE ? 1 : UINT32_MAX,
			action == MD_WAKE ? PTT_WAKE_SIGNAL : PTT_WAKE_BROADCAST, false);
		break;
	case MD_BARRIER_IN:
		md_barrier_in(m, e);
		break;
	case MD_BARRIER_OUT:
		md_barrier_out(m, e);
		break;
	case MD_SEM_TAKEN:
		md_sem_taken(m, e);
		break;
	case MD_SEM_POST:
		md_sem_post(m, e);
		break;
	case MD_FUTEX_IN:
		md_futex_in(m, e);
		break;
	case MD_FUTEX_OUT:
		md_futex_out(m, e);
		break;
	case MD_FUTEX_WAKE:
		md_futex_wake(m, e);
		break;
	case MD_JOIN_IN:
		md_join_in(m, e);
		break;
	case MD_JOIN_OUT:
		md_join_out(m, e);
		break;
	case MD_CREATE:
		md_create(m, e);
		break;
	case MD_END:
		md_end(m, e);
		break;
	case MD_SCHEDULE:
		md_schedule(m, e);
		break;
	case MD_DETACH:
		md_detach(m, e);
		break;
	case MD_LEVEL:
		level_changed(m, e);
		break;
	case MD_LOST:
		if (md_in_window(m, e->ts))
			m->lost += (uint64_t)md_number(m, e, MD_COUNT, 0);
		break;
	case MD_BUFFER:
		MD_THREAD(m, e->thread)->pub.buffer_ns +=
			(uint64_t)md_portion(m, e->ts - md_number(m, e, MD_WAIT_NS, 0), e->ts, 1, 1);
		break;
	case MD_LLL_PURPOSE:
		md_lll_purpose(m, e);
		break;
	case MD_EXEC:
		m->processes[e->process].exec_ns = e->ts;
		m->processes[e->process].execs = e->thread;
		break;
	case MD_EXIT:
		m->processes[e->process].exited = true;
		break;
	case MD_TRY_IN:
	case MD_TRY_OUT:
		MD_THREAD(m, e->thread)->trying = action == MD_TRY_IN;
		break;
	default:
		break;
	}
}

static inline void event(struct ptt_model *m, struct md_event *e)
{
	enum md_action action = m->action[e->id];
	struct md_process *process;
	struct md_thread *thread;

	thread = MD_THREAD(m, e->thread);
	process = &m->processes[e->process];
	if (thread->pub.first_ns == INT64_MAX) {
		thread->pub.first_ns = e->ts;
		process->threads++;
	}
	thread->pub.last_ns = e->ts;
	if (process->first > e->ts) {
		if (process->first == INT64_MAX && process->parent)
			memcpy(process->full, m->processes[process->parent - 1].full, sizeof(process->full));
		process->first = e->ts;
	}
	process->last = e->ts;
	/* Waits alone do not tell who holds what: that needs changes of state. */
	process->full[e->id >> 6] |= m->level[e->id] >= 2;
	switch (action) {
	case MD_IGNORE:
	case MD_BEGIN:
		break;
	case MD_ACQUIRE:
	case MD_ACQUIRE_SHARED:
	case MD_ONCE_BEGIN:
		lock_event(m, e, action);
		break;
	case MD_RELEASE:
	case MD_ONCE_END:
		md_release(m, e);
		break;
	case MD_WAIT:
	case MD_WAIT_END:
		if (e->id >> 6 == PTT_KIND_SEM && action == MD_WAIT_END)
			md_sem_gave_up(m, e);
		else
			lock_event(m, e, action);
		break;
	default:
		other_event(m, e, action);
	}
}

/* Takes in the events from one number up to another. */
static void take(struct ptt_model *m, const struct ptt_columns *c, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to && !m->error; i++) {
		struct md_event e = {
			.ts = c->ts[i],
			.object = c->object[i],
			.site = c->site[i],
			.payload = c->payload[i],
			.id = c->id[i] & PTT_ID_MASK,
		};

		if (unlikely(c->thread[i] >= m->known_count || !m->known[c->thread[i]].known))
			continue;
		e.process = m->known[c->thread[i]].process;
		e.thread = m->known[c->thread[i]].thread;
		if (unlikely(m->action[e.id] == MD_BEGIN))
			e.thread = md_begin(m, &e, c->thread[i]);
		else if (unlikely(!e.thread))
			e.thread = md_thread_of_number(m, c->thread[i]);
		event(m, &e);
	}
}

/* The number of the first event at a time or behind it. */
static int64_t first_at(const struct ptt_columns *c, int64_t n, int64_t ts)
{
	int64_t low = 0, high = n;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (c->ts[middle] < ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int ptt_model_feed(struct ptt_model *m, const struct ptt_columns *c, int64_t n)
{
	int64_t begin = m->window.begun ? 0 : first_at(c, n, m->window.begin);
	int64_t end = m->window.ended ? n : first_at(c, n, m->window.end);

	take(m, c, 0, begin);
	if (begin < n)
		md_window_reach(m, c->ts[begin]);
	take(m, c, begin, end);
	if (end < n)
		md_window_reach(m, c->ts[end]);
	take(m, c, end > begin ? end : begin, n);
	return m->error;
}

/* ---- end ---- */

/* When a process ended: with its last event if one says so, or else when it was seen that it had. */
static int64_t end_of(const struct ptt_model *m, const struct md_process *p, int64_t killed, int64_t seen)
{
	bool executed = p->execs && MD_THREAD(m, p->execs)->pub.last_ns == p->exec_ns;
	int64_t end = killed;

	if (end == MD_NEVER && !p->exited && !executed)
		end = seen;
	return end < p->last ? p->last : end;
}

int ptt_model_finish(struct ptt_model *m, const int64_t *killed, const int64_t *seen, uint32_t count)
{
	int64_t *until = calloc(m->process_count + 1, sizeof(*until));
	int err;

	if (!until)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->process_count; i++)
		until[i] = end_of(m, &m->processes[i], i < count ? killed[i] : MD_NEVER,
				  i < count ? seen[i] : MD_NEVER);
	md_lives(m, until);
	m->open_rows.count = 0;
	md_window_reach(m, m->window.begin);
	err = md_finish_waits(m, until);
	md_hold_open_rows(m, until);
	md_settle(m);
	md_window_finish(m, until);
	free(until);
	return err < 0 ? err : m->error;
}

uint64_t ptt_model_lost(const struct ptt_model *m)
{
	return m->lost;
}

static int of_pool(struct ptt_model_table *out, const struct rd_pool *pool)
{
	*out = (struct ptt_model_table){ pool->items, pool->count, pool->size };
	return 0;
}

static int of_rows(struct ptt_model_table *out, const struct md_rows *rows)
{
	*out = (struct ptt_model_table){ rows->items, rows->count, rows->size };
	return 0;
}

int ptt_model_table(const struct ptt_model *m, uint32_t which, struct ptt_model_table *out)
{
	switch (which) {
	case PTT_MODEL_OBJECTS:
		return of_pool(out, &m->objects);
	case PTT_MODEL_SITES:
		return of_pool(out, &m->sites);
	case PTT_MODEL_THREADS:
		return of_pool(out, &m->threads);
	case PTT_MODEL_PAIRS:
		return of_pool(out, &m->pairs);
	case PTT_MODEL_BLAMES:
		return of_pool(out, &m->blames);
	case PTT_MODEL_CAUSES:
		return of_pool(out, &m->causes);
	case PTT_MODEL_WAKERS:
		return of_pool(out, &m->wakers);
	case PTT_MODEL_EDGES_TABLE:
		return of_pool(out, &m->edges);
	case PTT_MODEL_HISTOGRAMS:
		return of_pool(out, &m->histograms);
	case PTT_MODEL_WAITS:
		return of_rows(out, &m->wait_rows);
	case PTT_MODEL_HOLDS:
		return of_rows(out, &m->hold_rows);
	case PTT_MODEL_WAKEUPS:
		return of_rows(out, &m->wakeup_rows);
	case PTT_MODEL_OPEN:
		return of_rows(out, &m->open_rows);
	case PTT_MODEL_SEGMENTS:
		return of_rows(out, &m->segments);
	case PTT_MODEL_STATE:
		return of_rows(out, &m->state_rows);
	}
	return -EINVAL;
}

void ptt_model_drop_rows(struct ptt_model *m)
{
	m->wait_rows.count = m->hold_rows.count = m->wakeup_rows.count = 0;
}
