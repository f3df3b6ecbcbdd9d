/* SPDX-License-Identifier: MIT */
/* wakeups.c - conditions and barriers: lost wake-ups, waits with an unheld or a different mutex, incomplete rounds. */
#include "../facts.h"

/* ---- conditions ---- */

void ck_cond_unlocked(struct ptt_check *c, const struct tk_event *e, uint32_t mutex, uint32_t flags)
{
	uint32_t wait = CK_THREAD(c, e->thread)->waits, hold = CK_OBJECT(c, mutex)->holds;

	if (!wait || CK_WAITING(c, wait)->kind != NPTL_DOMAIN_COND ||
	    !ck_fact_add(c, PTT_FACT_COND_MUTEX_NOT_HELD, e, (uint64_t)mutex << 16, e->site, flags))
		return;
	if (hold)
		ck_step_hold(c, hold);
	else
		ck_step_released(c, mutex);
	ck_step_wait(c, wait, 0);
	if (flags & PTT_FLAG_REFUSED)
		ck_step_now(c, PTT_STEP_REFUSED, e, mutex)->value = EPERM;
	else
		ck_step_now(c, PTT_STEP_UNLOCKS, e, mutex);
}

/* Processes may have a mutex at different addresses, and a mutex may have been initialized again at its address. */
static bool is_same_mutex(const struct ptt_check *c, const struct ck_wait *a, const struct ck_wait *b)
{
	return a->mutex == b->mutex || (a->mutex_address == b->mutex_address &&
					CK_THREAD(c, a->thread)->process == CK_THREAD(c, b->thread)->process);
}

/* Another wait at the same condition with a different mutex, and without a wake-up; 0: none is certain. */
static uint32_t rival_of(const struct ptt_check *c, const struct ck_object *o, const struct ck_wait *w)
{
	if (ck_pending(c, o) >= o->waiters - 1)
		return 0;
	for (uint32_t wait = o->waits; wait; wait = CK_WAITING(c, wait)->object_next) {
		const struct ck_wait *other = CK_WAITING(c, wait);

		if (other != w && !ck_is_woken(c, other) && !is_same_mutex(c, other, w) && !ck_pending(c, o))
			return wait;
	}
	return 0;
}

/* Reports two waits with different mutexes. If the first has a time limit, it may be over already; its end shows this. */
static void two_mutexes(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint32_t first, uint32_t second)
{
	struct ck_wait *a = CK_WAITING(c, first);
	uint32_t fact = ck_fact_add(c, PTT_FACT_COND_TWO_MUTEXES, e, (uint64_t)object << 16, e->site,
				  PTT_FLAG_WHOLE | (a->timed ? PTT_FLAG_DROPPED : 0));

	if (!fact)
		return;
	ck_step_wait(c, first, 0);
	ck_step_wait(c, second, 0);
	/* The fact stays true when these waits end. */
	CK_STEP(c, c->steps.count - 1)->wait = CK_STEP(c, c->steps.count - 2)->wait = 0;
	if (a->timed)
		a->rival = fact;
}

/* The last acquisition of a mutex before the hold that a condition wait gives up. */
static int64_t last_look(const struct ptt_check *c, uint32_t thread, uint32_t mutex)
{
	uint32_t hold = tk_hold_find(&c->t, thread, mutex);
	const struct ck_object *o = CK_OBJECT(c, mutex);

	return hold && CK_HOLD(c, hold)->since == o->taken ? o->taken_before : o->taken;
}

void ck_cond_in(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t object = ck_use(c, e, NPTL_DOMAIN_COND), wait, rival;
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_wait *w;

	wait = ck_wait_begin(c, e, object, PTT_MODE_EXCLUSIVE);
	w = CK_WAITING(c, wait);
	w->timed = e->id != (NPTL_DOMAIN_COND << 6 | NPTL_EV_COND_WAIT_IN);
	w->mutex_address = (uint64_t)tk_number(&e->e, TK_MUTEX, 0) & PTT_OBJECT_MASK;
	if (w->timed)
		ck_limit_in(c, e, wait);
	if (!w->mutex_address)
		return;
	w->mutex = ck_object(c, e, NPTL_DOMAIN_MUTEX, w->mutex_address);
	w->looked = last_look(c, e->thread, w->mutex);
	CK_THREAD(c, e->thread)->cond_mutex = w->mutex_address;
	if (o->waiters == 1)
		o->mutex = w->mutex;
	o->two_mutexes = o->waiters > 1 && (o->two_mutexes || o->mutex != w->mutex);
	rival = o->two_mutexes ? rival_of(c, o, w) : 0;
	if (rival)
		two_mutexes(c, e, object, rival, wait);
}

/* The next actions of the thread come after everything before its wake-up. */
static void follow(struct ptt_check *c, uint32_t thread, uint32_t wakeup)
{
	CK_THREAD(c, thread)->order.base =
		tk_joined_node(&c->orders, tk_publish(&c->orders, thread), CK_WAKEUP(c, wakeup)->node);
}

void ck_cond_out(struct ptt_check *c, const struct tk_event *e)
{
	/* A new condition may have taken its place. */
	uint32_t wait = tk_wait_at(&c->t, e), object = CK_WAITING(c, wait)->object, wakeup = 0;
	int64_t result = tk_number(&e->e, TK_RESULT, 0);
	const struct ck_wait *w = CK_WAITING(c, wait);

	if (wait && result == EPERM && CK_WAITING(c, wait)->mutex && CK_THREAD(c, e->thread)->flags & CK_WHOLE &&
	    !tk_hold_find(&c->t, e->thread, CK_WAITING(c, wait)->mutex))
		ck_cond_unlocked(c, e, CK_WAITING(c, wait)->mutex, PTT_FLAG_REFUSED | PTT_FLAG_WHOLE);
	CK_THREAD(c, e->thread)->cond_mutex = 0;
	ck_waited_with_holds(c, e, wait);
	if (!wait)
		return;
	if (w->limit_over)
		ck_limit_out(c, e, wait);
	tk_wait_end(&c->t, wait);
	CK_THREAD(c, e->thread)->cond_left = object;
	CK_THREAD(c, e->thread)->cond_left_ts = e->ts;
	if (w->rival && result == 0)
		CK_FACT(c, w->rival)->flags &= ~PTT_FLAG_DROPPED;
	if (result == 0 || result == EOWNERDEAD)
		wakeup = tk_wake_use(&c->t, object, w->since);
	if (!wakeup)
		tk_wake_drop(&c->t, object, tk_wake_excess(&c->t, object));
	else if (!w->mutex_address)
		follow(c, e->thread, wakeup);
}

void ck_wake(struct ptt_check *c, const struct tk_event *e)
{
	bool all = tk_meanings[e->id].action == TK_BROADCAST;
	uint32_t object = ck_use(c, e, NPTL_DOMAIN_COND), waiting = CK_OBJECT(c, object)->waits;
	struct ck_thread *t = CK_THREAD(c, e->thread);
	struct ck_wakeup *by = CK_WAKEUP(c, tk_wake(&c->t, e, object, all ? UINT32_MAX : 1,
						   all ? PTT_WAKE_BROADCAST : PTT_WAKE_SIGNAL));

	by->nobody = !by->left;
	by->unlocked = !t->locked;
	/* threads of a pool wait without a mutex, so only the wake-up lets them continue */
	if (waiting && !CK_WAITING(c, waiting)->mutex_address)
		by->node = tk_publish(&c->orders, e->thread);
	t->locked = false;
}

/*
 * Whether a wait to the end missed the last signal of its condition
 *
 * The wait began after the signal, and no other thread got the signal. No thread took the mutex in between to look at the state:
 * the hold that the wait gave up is the first hold after the signal.
 */
static bool missed(const struct ptt_check *c, const struct ck_wait *w)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);
	const struct ck_wakeup *by = ck_woke(c, o);
	const struct ck_thread *t = CK_THREAD(c, w->thread);

	if (w->kind != NPTL_DOMAIN_COND || !w->mutex_address || w->timed || ck_is_woken(c, w) || o->flags & PTT_OBJECT_SHARED)
		return false;
	if (!by->thread || by->ts > w->since || w->looked > by->ts)
		return false;
	if (!by->nobody && by->kind != PTT_WAKE_BROADCAST)
		return false;
	return t->cond_left != w->object || t->cond_left_ts < by->ts;
}

/*
 * Whether the last wake-up of a condition reached another waiter, which began to wait again at once. Return: that other wait, or 0
 *
 * No other thread has taken the mutex since to look at the state. This wait to the end began before the wake-up.
 */
static uint32_t misled(const struct ptt_check *c, const struct ck_wait *w)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);
	const struct ck_wakeup *by = ck_woke(c, o);

	if (w->kind != NPTL_DOMAIN_COND || w->timed || ck_is_woken(c, w) || o->flags & PTT_OBJECT_SHARED)
		return 0;
	if (!by->thread || by->ts < w->since || by->nobody || by->kind == PTT_WAKE_BROADCAST)
		return 0;
	for (uint32_t wait = o->waits; wait; wait = CK_WAITING(c, wait)->object_next) {
		const struct ck_wait *other = CK_WAITING(c, wait);
		const struct ck_thread *t = CK_THREAD(c, other->thread);

		if (other->since > by->ts && other->looked <= by->ts && t->cond_left == w->object &&
		    t->cond_left_ts > by->ts && other->mutex == w->mutex)
			return wait;
	}
	return 0;
}

/* Whether the program needs the end of a thread: it is the first thread, or another thread waits for its end. */
static bool is_awaited(const struct ptt_check *c, uint32_t thread)
{
	if (!CK_THREAD(c, thread)->created.thread && CK_THREAD(c, thread)->flags & CK_WHOLE)
		return true;
	return CK_THREAD(c, thread)->flags & CK_AWAITED;
}

static void find_awaited(struct ptt_check *c)
{
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		const struct ck_wait *w = CK_WAITING(c, CK_THREAD(c, i)->waits);

		if (CK_THREAD(c, i)->waits && w->kind == PTT_KIND_THREAD && w->owner)
			CK_THREAD(c, w->owner)->flags |= CK_AWAITED;
	}
}

void ck_lost_wakeups(struct ptt_check *c)
{
	find_awaited(c);
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		uint32_t wait = CK_THREAD(c, i)->waits;
		const struct ck_wait *w = CK_WAITING(c, wait);
		const struct ck_object *o = CK_OBJECT(c, w->object);
		const struct ck_wakeup *by = ck_woke(c, o);
		bool hung = CK_PROCESS(c, CK_THREAD(c, i)->process)->hung;
		uint32_t instead = wait && hung ? misled(c, w) : 0;
		struct tk_event at;

		if (!wait || (!instead && !missed(c, w)))
			continue;
		/* Other threads may still signal. But a waker without the mutex, and a thread that the program needs, are enough. */
		if (!hung && !(by->unlocked && is_awaited(c, i)))
			continue;
		at = (struct tk_event){ .ts = w->since, .site = w->site, .process = o->process, .thread = i };
		if (!ck_fact_add(c, PTT_FACT_SIGNAL_MISSED, &at, (uint64_t)w->object << 16 ^ i, w->site, PTT_FLAG_WHOLE))
			continue;
		ck_step(c, by->kind == PTT_WAKE_BROADCAST ? PTT_STEP_BROADCAST : PTT_STEP_SIGNALLED, by->thread, by->ts,
			by->site, w->object);
		if (instead)
			ck_step_wait(c, instead, 0);
		ck_step_wait(c, wait, 0);
	}
}

/* ---- barriers ---- */

/* A round is complete: the next actions of its threads come after all earlier actions of its threads. */
static void complete(struct ptt_check *c, uint32_t object)
{
	CK_WAKEUP(c, tk_round_over(&c->t, object))->node = CK_OBJECT(c, object)->round;
	CK_OBJECT(c, object)->round = 0;
}

void ck_barrier_in(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t object = ck_use(c, e, NPTL_DOMAIN_BARRIER);
	struct ck_object *o = CK_OBJECT(c, object);

	ck_wait_begin(c, e, object, PTT_MODE_EXCLUSIVE);
	o->round = tk_joined_node(&c->orders, o->round, tk_publish(&c->orders, e->thread));
	if (tk_arrive(&c->t, object, o->barrier_count))
		complete(c, object);
}

void ck_barrier_arrive(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t object = ck_use(c, e, NPTL_DOMAIN_BARRIER);
	struct ck_object *o = CK_OBJECT(c, object);

	o->round = tk_joined_node(&c->orders, o->round, tk_publish(&c->orders, e->thread));
	if (tk_arrive_only(&c->t, e, object, o->barrier_count))
		complete(c, object);
}

void ck_barrier_out(struct ptt_check *c, const struct tk_event *e)
{
	/* A new barrier may have taken its place. */
	uint32_t wait = tk_wait_at(&c->t, e);
	const struct ck_wait *w = CK_WAITING(c, wait);
	uint32_t wakeup;

	if (!wait)
		return;
	wakeup = tk_wake_use(&c->t, w->object, w->since);
	/* The number of threads of a round is unknown: the round ends when the first thread leaves. */
	if (!wakeup) {
		complete(c, w->object);
		wakeup = tk_wake_use(&c->t, w->object, w->since);
	}
	ck_waited_with_holds(c, e, wait);
	tk_wait_end(&c->t, wait);
	follow(c, e->thread, wakeup);
}

void ck_stuck_barriers(struct ptt_check *c)
{
	for (uint32_t i = 1; i < c->t.objects.count; i++) {
		const struct ck_object *o = CK_OBJECT(c, i);
		struct tk_event at = { .ts = INT64_MIN, .process = o->process };
		uint32_t waiting = 0;

		if (o->kind != NPTL_DOMAIN_BARRIER || !o->arrived || o->arrived >= o->barrier_count)
			continue;
		if (!(o->flags & PTT_OBJECT_SHARED ? CK_PROCESS(c, o->process)->alone : CK_PROCESS(c, o->process)->hung))
			continue;
		for (uint32_t wait = o->waits; wait; wait = CK_WAITING(c, wait)->object_next) {
			if (ck_is_woken(c, CK_WAITING(c, wait)))
				continue;
			waiting++;
			if (CK_WAITING(c, wait)->since > at.ts) {
				at.ts = CK_WAITING(c, wait)->since;
				at.site = CK_WAITING(c, wait)->site;
			}
		}
		if (!waiting || !ck_fact_add(c, PTT_FACT_BARRIER_INCOMPLETE, &at, (uint64_t)i << 16, 0, PTT_FLAG_WHOLE))
			continue;
		CK_FACT(c, c->facts.count - 1)->value = o->barrier_count - o->arrived;
		ck_step_last(c, PTT_STEP_INIT, &o->init, i);
		for (uint32_t wait = o->waits; wait; wait = CK_WAITING(c, wait)->object_next)
			if (!ck_is_woken(c, CK_WAITING(c, wait)))
				ck_step_wait(c, wait, 0);
	}
}
