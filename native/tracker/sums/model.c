/* SPDX-License-Identifier: MIT */
/* model.c - the model as a whole: creation, tables, the handler of each event, and the end. */
#include "holds.h"

int ptt_model_version(void)
{
	return PTT_MODEL_VERSION;
}

/* ---- beginning ---- */

static const struct md_thread new_thread = { .pub = { .create_ns = TK_NEVER, .join_ns = TK_NEVER, .cpu_ns = -1, .ready_ns = -1 },
					     .reported = TK_NEVER, .cut_ns = TK_NEVER };
static const struct md_wait new_wait = { .retaken = TK_NEVER };
static const struct tk_layout layout = {
	.process = { sizeof(struct tk_process), NULL },
	.thread = { sizeof(struct md_thread), &new_thread },
	.object = { sizeof(struct md_object), NULL },
	.hold = { sizeof(struct md_hold), NULL },
	.wait = { sizeof(struct md_wait), &new_wait },
	.wakeup = { sizeof(struct md_wakeup), NULL },
	.cache = sizeof(struct md_cache),
};

struct ptt_model *ptt_model_create(uint32_t flags)
{
	struct ptt_model *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return NULL;
	m->flags = flags;
	m->window = (struct md_window){ .begin = INT64_MIN, .end = INT64_MAX, .begun = true };
	m->t.renew = true;
	m->t.used = md_object_used;
	m->t.object_made = md_object_made;
	err = tk_open(&m->t, &layout);
	err |= rd_pool_open(&m->sites, sizeof(struct md_site));
	err |= rd_pool_open(&m->pairs, sizeof(struct ptt_model_pair));
	err |= rd_pool_open(&m->blames, sizeof(struct ptt_model_blame));
	err |= rd_pool_open(&m->causes, sizeof(struct ptt_model_cause));
	err |= rd_pool_open(&m->wakers, sizeof(struct ptt_model_waker));
	err |= rd_pool_open(&m->edges, sizeof(struct ptt_model_edge));
	err |= rd_pool_open(&m->histograms, PTT_BUCKETS * sizeof(uint32_t));
	err |= rd_pool_open(&m->insides, sizeof(struct ptt_model_inside_sum));
	err |= rd_pool_open(&m->logs, sizeof(struct md_log));
	if (err) {
		ptt_model_destroy(m);
		return NULL;
	}
	m->wait_rows.size = m->open_rows.size = sizeof(struct ptt_model_wait);
	m->hold_rows.size = sizeof(struct ptt_model_hold);
	m->inside_rows.size = sizeof(struct ptt_model_inside);
	m->wakeup_rows.size = sizeof(struct ptt_model_wakeup);
	m->state_rows.size = sizeof(struct ptt_model_event);
	m->segments.size = sizeof(struct ptt_model_segment);
	m->thread_states.size = sizeof(struct ptt_model_state);
	m->steps.held.size = sizeof(struct md_step);
	m->steps.file = -1;
	return m;
}

void ptt_model_destroy(struct ptt_model *m)
{
	struct rd_pool *pools[] = { &m->sites,  &m->pairs, &m->blames,	   &m->causes,
				    &m->wakers, &m->edges, &m->histograms, &m->logs, &m->insides };
	struct rd_map *maps[] = { &m->site_of,	&m->pair_of, &m->blame_of,     &m->cause_key, &m->cause_of,
				  &m->waker_of, &m->edge_of, &m->made_of, &m->only_sites, &m->site_uses,
				  &m->families, &m->gils, &m->semaphores, &m->inside_of };
	struct md_rows *rows[] = { &m->wait_rows, &m->hold_rows, &m->wakeup_rows, &m->open_rows, &m->state_rows,
				   &m->segments, &m->steps.held, &m->thread_states, &m->inside_rows };

	for (uint32_t i = 1; i < m->t.threads.count; i++)
		free(MD_THREAD(m, i)->switches);
	for (size_t i = 0; i < sizeof(pools) / sizeof(*pools); i++)
		rd_pool_close(pools[i]);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		rd_map_free(maps[i]);
	rd_choice_free(&m->only_objects);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		free(rows[i]->items);
	free(m->steps.back);
	free(m->window.threads);
	free(m->window.objects);
	tk_close(&m->t);
	free(m);
}

int ptt_model_no_object(struct ptt_model *m)
{
	rd_choice_free(&m->only_objects);
	/* No object has this address. */
	return ptt_model_only_object(m, RD_EVERY, UINT64_MAX, RD_EVERY, 0, 0);
}

int ptt_model_only_object(struct ptt_model *m, uint32_t process, uint64_t address, uint32_t kind, int64_t begin_ns,
			  int64_t end_ns)
{
	return rd_choice_add(&m->only_objects, process, address, kind, begin_ns, end_ns) ? -ENOMEM : 0;
}

int ptt_model_only_site(struct ptt_model *m, uint32_t process, uint64_t address)
{
	return rd_map_put(&m->only_sites, process, address) ? 0 : -ENOMEM;
}

int ptt_model_site(struct ptt_model *m, uint32_t process, uint64_t site, uint32_t use)
{
	struct rd_entry *entry = rd_map_put(&m->site_uses, site, process);
	const struct rd_entry *known;

	if (!entry)
		return -ENOMEM;
	entry->value = use;
	known = rd_map_find(&m->site_of, site, process);
	if (known)
		MD_SITE(m, known->value)->use = (uint8_t)use;
	return 0;
}

/* ---- events ---- */

static void level_changed(struct ptt_model *m, const struct tk_event *e)
{
	struct tk_process *p = TK_PROCESS(&m->t, e->process);

	memset(p->full, 0, sizeof(p->full));
	for (uint32_t i = p->objects; i; i = MD_OBJECT(m, i)->pub.process_next)
		md_drop_holds(m, i, e->ts);
}

static void wait_begin(struct ptt_model *m, const struct tk_event *e, uint32_t object)
{
	bool read = e->id >> 6 == PTT_KIND_RWLOCK && !tk_number(&e->e, TK_WRITE, 1);
	bool semaphore = e->id >> 6 == PTT_KIND_SEM;
	uint32_t wait;

	if (semaphore)
		object = md_parked_at(m, e, object);
	wait = md_wait_begin(m, e, object, read ? PTT_MODE_SHARED : PTT_MODE_EXCLUSIVE);
	if (semaphore)
		md_wait_of_kind(m, e, object, wait);
}

static void lock_event(struct ptt_model *m, struct tk_event *e, enum tk_action action)
{
	uint32_t pair, object = md_object(m, e, e->id >> 6, e->object, &pair);
	bool acquires = action == TK_ACQUIRE || action == TK_ACQUIRE_SHARED || action == TK_ONCE_BEGIN;

	if (acquires && unlikely(MD_OBJECT(m, object)->owner_follows))
		md_place_owner(m, e, object);
	switch (action) {
	case TK_ACQUIRE:
	case TK_ACQUIRE_SHARED:
		if (tk_has(e->id, TK_WAIT_NS)) {
			md_take_call_of_wait(m, e, object);
			md_lock_waited(m, e, object);
		}
		md_acquire(m, e, object, pair, action == TK_ACQUIRE_SHARED ? PTT_MODE_SHARED : PTT_MODE_EXCLUSIVE);
		break;
	case TK_ONCE_BEGIN:
		md_acquire(m, e, object, pair, PTT_MODE_EXCLUSIVE);
		break;
	case TK_WAIT_END:
		md_lock_waited(m, e, object);
		break;
	default:
		wait_begin(m, e, object);
	}
}

static void wake(struct ptt_model *m, const struct tk_event *e)
{
	bool all = tk_meanings[e->id].action == TK_BROADCAST;
	uint32_t pair, object = md_object(m, e, e->id >> 6, e->object, &pair);

	md_wake(m, e, object, all ? UINT32_MAX : 1, all ? PTT_WAKE_BROADCAST : PTT_WAKE_SIGNAL, false);
}

static void lost(struct ptt_model *m, const struct tk_event *e)
{
	tk_sched_lose(&MD_THREAD(m, e->thread)->sched);
	if (md_in_window(m, e->ts))
		m->lost += (uint64_t)tk_number(&e->e, TK_COUNT, 0);
}

static void buffer_wait(struct ptt_model *m, const struct tk_event *e)
{
	MD_THREAD(m, e->thread)->pub.buffer_ns +=
		(uint64_t)md_portion(m, e->ts - tk_number(&e->e, TK_WAIT_NS, 0), e->ts, 1, 1);
}

static void try_lock(struct ptt_model *m, const struct tk_event *e)
{
	MD_THREAD(m, e->thread)->trying = tk_meanings[e->id].action == TK_TRY_IN;
}

static void sleep_begin(struct ptt_model *m, const struct tk_event *e)
{
	md_cut_holds(m, e);
	md_sleep_begin(m, e);
}

/* Handlers of the events that are no acquisition, release or wait of a lock, by their meaning. */
static void (*const handlers[TK_ACTIONS])(struct ptt_model *m, const struct tk_event *e) = {
	[TK_INIT] = md_init,		   [TK_DESTROY] = md_destroy,	    [TK_TYPE] = md_type,
	[TK_COND_IN] = md_cond_in,	   [TK_COND_OUT] = md_cond_out,	    [TK_SIGNAL] = wake,
	[TK_BROADCAST] = wake,		   [TK_BARRIER_IN] = md_barrier_in, [TK_BARRIER_OUT] = md_barrier_out,
	[TK_BARRIER_ARRIVE] = md_barrier_arrive,
	[TK_SEM_TAKEN] = md_sem_taken,	   [TK_SEM_POST] = md_sem_post,	    [TK_FUTEX_IN] = md_futex_in,
	[TK_FUTEX_OUT] = md_futex_out,	   [TK_FUTEX_WAKE] = md_futex_wake, [TK_JOIN_IN] = md_join_in,
	[TK_JOIN_OUT] = md_join_out,	   [TK_CREATE] = md_create,	    [TK_BEGIN] = md_begin,
	[TK_PROCESS_START] = md_process_start, [TK_FORK] = md_process_made, [TK_SPAWN] = md_process_made,
	[TK_REAPED] = md_process_reaped,   [TK_PRIORITY_SET] = md_schedule,   [TK_LEVEL] = level_changed,
	[TK_LOST] = lost,		   [TK_BUFFER_WAIT] = buffer_wait,  [TK_TRY_IN] = try_lock,
	[TK_TRY_OUT] = try_lock,		   [TK_SCHED] = md_sched,
	[TK_SCHED_UNKNOWN] = md_sched_unknown, [TK_SLEEP_IN] = sleep_begin,
};

static inline void event(struct tracker *t, struct tk_event *e, enum tk_action action)
{
	struct ptt_model *m = (struct ptt_model *)(void *)t;

	/* unsigned: last_ns is INT64_MIN before the first event */
	if (unlikely((int64_t)((uint64_t)e->ts - (uint64_t)MD_THREAD(m, e->thread)->pub.last_ns) >= PTT_SILENT_NS))
		md_silence(m, MD_THREAD(m, e->thread), e->ts);
	if (unlikely(MD_THREAD(m, e->thread)->call) && action != TK_SCHED) {
		md_cut_holds(m, e);
		md_sleep_end(m, e);
	}
	switch (action) {
	case TK_IGNORE:
	case TK_CALL_IN:
	case TK_CALL_OUT:
		break;
	case TK_ACQUIRE:
	case TK_ACQUIRE_SHARED:
	case TK_ONCE_BEGIN:
		lock_event(m, e, action);
		break;
	case TK_RELEASE:
	case TK_RELEASE_AWAITED:
	case TK_ONCE_END:
		md_release(m, e);
		break;
	case TK_WAIT:
	case TK_WAIT_END:
		if (e->id >> 6 == PTT_KIND_SEM && action == TK_WAIT_END)
			md_sem_gave_up(m, e);
		else
			lock_event(m, e, action);
		break;
	default:
		if (handlers[action])
			handlers[action](m, e);
		else
			tk_own_event(t, e, action);
	}
}

static void switched(struct tracker *t, const struct tk_event *e, enum tk_action action)
{
	struct ptt_model *m = (struct ptt_model *)(void *)t;

	if (!tk_process_left(t, TK_PROCESS(t, e->process)))
		md_switched(m, e, action);
}

/* The number of the first event at or after a time. */
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

	tk_feed(&m->t, c, 0, begin, event, switched);
	if (begin < n)
		md_window_reach(m, c->ts[begin]);
	tk_feed(&m->t, c, begin, end, event, switched);
	if (end < n)
		md_window_reach(m, c->ts[end]);
	return tk_feed(&m->t, c, end > begin ? end : begin, n, event, switched);
}

/* The first event of a thread says that the thread lives. Its other meaning counts only if it is fed once more. */
static void early_event(struct tracker *t, struct tk_event *e, enum tk_action action)
{
	const struct ptt_track_thread *by = TK_THREAD(t, e->thread);

	if (action == TK_BEGIN || by->first_ns != e->ts || by->last_ns == e->ts)
		event(t, e, action);
}

int ptt_model_feed_early(struct ptt_model *m, const struct ptt_columns *c, int64_t n)
{
	int err;

	m->early = true;
	err = tk_feed(&m->t, c, 0, n, early_event, NULL);
	m->early = false;
	return err;
}

/* ---- end ---- */

int ptt_model_finish(struct ptt_model *m, const int64_t *killed, const int64_t *seen, uint32_t count)
{
	int64_t *until = calloc(m->t.process_count + 1, sizeof(*until));
	int err;

	if (!until)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->t.process_count; i++)
		until[i] = tk_process_end(&m->t, i, i < count ? killed[i] : TK_NEVER, i < count ? seen[i] : TK_NEVER);
	md_lives(m, until);
	m->open_rows.count = 0;
	md_window_reach(m, m->window.begin);
	err = md_finish_waits(m, until);
	md_finish_states(m);
	md_hold_open_rows(m, until);
	md_settle(m);
	md_window_finish(m, until);
	free(until);
	return err < 0 ? err : m->t.error;
}

uint64_t ptt_model_lost(const struct ptt_model *m)
{
	return m->lost;
}

int ptt_model_table(const struct ptt_model *m, uint32_t which, struct ptt_model_table *out)
{
	const struct rd_pool *pools[PTT_MODEL_TABLES] = {
		[PTT_MODEL_OBJECTS] = &m->t.objects, [PTT_MODEL_SITES] = &m->sites,   [PTT_MODEL_THREADS] = &m->t.threads,
		[PTT_MODEL_PAIRS] = &m->pairs,	     [PTT_MODEL_BLAMES] = &m->blames, [PTT_MODEL_CAUSES] = &m->causes,
		[PTT_MODEL_WAKERS] = &m->wakers,     [PTT_MODEL_EDGES_TABLE] = &m->edges,
		[PTT_MODEL_HISTOGRAMS] = &m->histograms, [PTT_MODEL_INSIDES] = &m->insides,
	};
	const struct md_rows *rows[PTT_MODEL_TABLES] = {
		[PTT_MODEL_WAITS] = &m->wait_rows,     [PTT_MODEL_HOLDS] = &m->hold_rows,   [PTT_MODEL_WAKEUPS] = &m->wakeup_rows,
		[PTT_MODEL_OPEN] = &m->open_rows,      [PTT_MODEL_SEGMENTS] = &m->segments, [PTT_MODEL_STATE] = &m->state_rows,
		[PTT_MODEL_THREAD_STATES] = &m->thread_states, [PTT_MODEL_INSIDE_ROWS] = &m->inside_rows,
	};

	if (which >= PTT_MODEL_TABLES)
		return -EINVAL;
	*out = pools[which] ? (struct ptt_model_table){ pools[which]->items, pools[which]->count, pools[which]->size } :
			      (struct ptt_model_table){ rows[which]->items, rows[which]->count, rows[which]->size };
	return 0;
}

void ptt_model_drop_rows(struct ptt_model *m)
{
	m->wait_rows.count = m->hold_rows.count = m->wakeup_rows.count = m->thread_states.count = 0;
	m->inside_rows.count = 0;
}
