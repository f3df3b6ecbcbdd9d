/* SPDX-License-Identifier: MIT */
/* wakes.c - waits that another thread's signal, post or arrival ends: conditions, semaphores, barriers, futexes. */
/*
 * A wake-up is given to as many waiters as are there and have not been given one; whoever goes on takes the oldest one
 * that was given since it began to wait. Who gives up takes none: what it may have been given is for those who waited
 * beside it then, and is forgotten when there are none of them left, so that it does not stand for the next wake-up.
 */
#include "holds.h"

#include <pthread.h>

/* Less than this after a signal, a thread that was woken has not yet come to ask for its mutex. */
#define REACQUIRE_NS 20000
/* A post may be stamped before the wait that it ends, for it is stamped before it is done. */
#define SKEW_NS 1000000

/* ---- tokens ---- */

static struct md_tokens *tokens_of(struct ptt_model *m, struct md_object *o)
{
	if (!o->tokens)
		o->tokens = md_new(m, &m->tokens);
	return MD_TOKENS_OF(m, o);
}

static void token_remove(struct md_tokens *tokens, uint32_t at)
{
	memmove(&tokens->items[at], &tokens->items[at + 1], (tokens->count - at - 1) * sizeof(*tokens->items));
	tokens->count--;
}

/* Who was woken waits for the mutex no more. Return: for how long it was held since the wake-up. */
static uint64_t unawait(struct ptt_model *m, const struct md_token *token, int64_t ts)
{
	struct md_object *mutex = MD_OBJECT(m, token->mutex);

	if (!token->mutex)
		return 0;
	md_share(m, mutex, ts);
	mutex->awaited--;
	return mutex->held - token->held;
}

static void tokens_drop(struct ptt_model *m, struct md_tokens *tokens, uint32_t excess, int64_t ts)
{
	while (excess-- > 0 && tokens->count) {
		struct md_token *oldest = &tokens->items[0];
		uint64_t held = unawait(m, oldest, ts);

		if (held)
			md_unblame(m, oldest->mutex, oldest->ts, ts, held);
		tokens->pending--;
		if (--oldest->left == 0)
			token_remove(tokens, 0);
	}
}

void md_drop_wakes(struct ptt_model *m, uint32_t object, int64_t ts)
{
	struct md_object *o = MD_OBJECT(m, object);

	if (o->tokens)
		tokens_drop(m, MD_TOKENS_OF(m, o), MD_TOKENS_OF(m, o)->pending, ts);
}

/*
 * How many more were given up to some moment than threads wait that waited then. Who takes one leaves that as it is: it is
 * the oldest that it could take.
 */
static uint32_t tokens_excess(const struct ptt_model *m, const struct md_object *o)
{
	const struct md_tokens *tokens = MD_TOKENS_OF(m, o);
	uint32_t given = tokens->pending, waiters = o->pub.waiters, wait = o->pub.waits, excess = 0;

	for (uint32_t i = tokens->count; given && i-- > 0;) {
		for (; wait && MD_WAITING(m, wait)->since > tokens->items[i].ts; wait = MD_WAITING(m, wait)->object_next)
			waiters--;
		if (given > waiters + excess)
			excess = given - waiters;
		given -= tokens->items[i].left;
	}
	return excess;
}

/* A thread left without a wake-up: there may be one that is for nobody now. */
static void tokens_left(struct ptt_model *m, struct md_object *o, int64_t ts)
{
	struct md_tokens *tokens = MD_TOKENS_OF(m, o);

	if (tokens->pending)
		tokens_drop(m, tokens, tokens_excess(m, o), ts);
}

static bool token_take(struct md_tokens *tokens, int64_t since, struct md_token *out)
{
	for (uint32_t i = 0; i < tokens->count; i++) {
		if (tokens->items[i].ts < since)
			continue;
		*out = tokens->items[i];
		tokens->pending--;
		if (--tokens->items[i].left == 0)
			token_remove(tokens, i);
		return true;
	}
	return false;
}

/* Whom a signal wakes has to take the mutex back, and waits for those who hold it from now on. */
static void await_mutex(struct ptt_model *m, const struct md_object *cond, struct md_token *token)
{
	uint32_t mutex = MD_WAITING(m, cond->pub.waits)->mutex;
	struct md_object *o = MD_OBJECT(m, mutex);

	if (!mutex || !TK_PROCESS(&m->t, o->pub.process)->full[PTT_KIND_MUTEX])
		return;
	md_share(m, o, token->ts);
	token->mutex = mutex;
	token->held = o->held;
	token->held_all = o->held_all;
	o->awaited += token->left;
	if (o->pub.holds)
		md_crowd(m, o, o->pub.waiters + o->awaited);
}

void md_wake(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t count, uint8_t kind,
	     bool gave_back)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_tokens *tokens = tokens_of(m, o);
	uint32_t free = o->pub.waiters > tokens->pending ? o->pub.waiters - tokens->pending : 0;

	tokens->last = (struct md_token){
		.ts = e->ts,
		.thread = e->thread,
		.site = md_site(m, e->thread, e->site, o->pub.kind),
		.left = count < free ? count : free,
		.kind = kind,
		.gave_back = gave_back,
	};
	if (!o->pub.waiters && (kind == PTT_WAKE_SIGNAL || kind == PTT_WAKE_BROADCAST) && md_in_window(m, e->ts))
		o->pub.wasted++;
	if (!tokens->last.left)
		return;
	await_mutex(m, o, &tokens->last);
	if (tokens->count == tokens->room) {
		uint32_t room = tokens->room ? tokens->room * 2 : 4;
		struct md_token *bigger = realloc(tokens->items, room * sizeof(*bigger));

		if (!bigger) {
			m->t.error = -ENOMEM;
			return;
		}
		tokens->items = bigger;
		tokens->room = room;
	}
	tokens->items[tokens->count++] = tokens->last;
	tokens->pending += tokens->last.left;
}

void md_blame_waker(struct ptt_model *m, const struct md_wait *w, struct md_end *end)
{
	int64_t until;

	if (end->dur < 0)
		end->dur = end->ts - w->since;
	until = w->since + end->dur;
	if (end->wake != TK_NEVER && end->wake < until)
		until = end->wake;
	end->held = (uint64_t)md_portion(m, w->since, until, 1, 1);
	if (w->counted)
		md_charge(m, md_blame(m, w->object, end->waker, end->waker_site), (int64_t)end->held);
}

static void woken_by(struct md_end *end, const struct md_token *token)
{
	end->waker = token->thread;
	end->waker_site = token->site;
	end->wake = token->ts;
	end->wake_kind = token->kind;
}

/* ---- conditions ---- */

void md_cond_in(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_COND, e->object, &pair);
	uint64_t address = (uint64_t)tk_number(&e->e, TK_MUTEX, 0);
	uint32_t wait = md_wait_begin(m, e, object, PTT_MODE_EXCLUSIVE);

	if (!address || !wait)
		return;
	MD_WAITING(m, wait)->mutex = md_object(m, e, PTT_KIND_MUTEX, address, &pair);
	md_log_of(m, MD_OBJECT(m, MD_WAITING(m, wait)->mutex));
}

/*
 * Whether others held the mutex, from the wake-up until the thread had it, for as long as to be waited for. If not, or if
 * the wait does not count, that time is taken from what they are blamed for. @out: how much of it lies in the window.
 */
static bool held_by_others(struct ptt_model *m, const struct md_wait *w, const struct md_token *token, int64_t now,
			   uint64_t *out)
{
	bool long_enough;
	uint64_t held = unawait(m, token, now);
	uint32_t own = token->mutex ? tk_hold_find(&m->t, w->thread, token->mutex) : 0;

	if (!token->mutex)
		return false;
	if (w->retaken == TK_NEVER || w->retaken <= token->ts) {
		md_unblame(m, token->mutex, token->ts, now, held);
		return false;
	}
	/* Since then it has had the mutex itself. */
	if (own)
		MD_HOLD(m, own)->share += held - (w->mutex_held - token->held);
	*out = held = w->mutex_held - token->held;
	long_enough = w->mutex_held_all - token->held_all >= REACQUIRE_NS;
	if (!long_enough || !md_counted(m, w->thread, token->mutex, w->site_row))
		md_unblame(m, token->mutex, token->ts, w->retaken, held);
	return long_enough;
}

/* The time from the wake-up to the mutex, if others had it meanwhile, as a wait of its own for the mutex. */
static void reacquired(struct ptt_model *m, const struct md_wait *w, const struct md_token *token, uint64_t held)
{
	struct md_object *o = MD_OBJECT(m, w->mutex);
	const struct md_log *log = MD_LOG_OF(m, o);
	struct md_log_entry last = { 0 }, first = { 0 };
	struct md_wait again = *w;
	struct md_end end = { .ts = w->retaken, .dur = -1, .held = held, .wait_class = PTT_CONTENDED };

	for (uint32_t i = 0; o->log && i < MD_LOG && i < log->count; i++) {
		const struct md_log_entry *entry = &log->entry[(log->count - 1 - i) % MD_LOG];

		if (entry->thread == w->thread || entry->ended > w->retaken)
			continue;
		if (entry->ended <= token->ts)
			break;
		first = *entry;
		last = last.ended ? last : *entry;
	}
	again.since = token->ts;
	md_wait_behind(&again, w);
	again.id = ++m->t.wait_id;
	again.object = w->mutex;
	again.kind = PTT_KIND_MUTEX;
	again.depth = o->pub.waiters + 1;
	again.owner = first.thread;
	again.owner_site = first.site;
	end.waker = last.thread;
	end.waker_site = o->release_thread == last.thread && o->release_ts == last.ended ? o->release_site : 0;
	end.wake = last.thread ? last.ended : TK_NEVER;
	end.wake_kind = PTT_WAKE_RELEASE;
	md_wait_account(m, &again, &end);
}

void md_cond_out(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_COND, e->object, &pair);
	struct md_object *o = MD_OBJECT(m, object);
	struct md_tokens *tokens = tokens_of(m, o);
	struct md_end end = md_end_of(e, PTT_IDLE, -1);
	struct md_token token;
	struct md_wait w;

	md_wait_take(m, e, object, &w);
	if (end.wait_class == PTT_IDLE && token_take(tokens, w.since, &token)) {
		uint64_t held;

		woken_by(&end, &token);
		if (held_by_others(m, &w, &token, e->ts, &held)) {
			reacquired(m, &w, &token, held);
			end.ts = token.ts;
			end.dur = -1;
		}
	} else {
		tokens_left(m, o, e->ts);
	}
	md_wait_account(m, &w, &end);
}

bool md_cond_open(struct ptt_model *m, struct md_wait *w, int64_t *signalled)
{
	struct md_tokens *tokens = tokens_of(m, MD_OBJECT(m, w->object));
	const struct md_object *mutex = MD_OBJECT(m, w->mutex);
	struct md_token token;

	if (!w->mutex || w->retaken != TK_NEVER || !mutex->pub.holds || MD_HOLD(m, mutex->pub.holds)->thread == w->thread ||
	    !token_take(tokens, w->since, &token))
		return false;
	*signalled = token.ts;
	w->since = token.ts;
	w->held = token.mutex ? token.held : mutex->held;
	w->counted = md_counted(m, w->thread, w->mutex, w->site_row);
	md_wait_behind(w, w);
	w->id = ++m->t.wait_id;
	w->object = w->mutex;
	w->kind = PTT_KIND_MUTEX;
	return true;
}

/* ---- barriers ---- */

/* Lets go everybody who waits; @last came last. */
static void barrier_open(struct ptt_model *m, struct md_object *o, uint32_t last)
{
	const struct md_wait *by = MD_WAITING(m, last);

	for (uint32_t i = o->pub.waits; i; i = MD_WAITING(m, i)->object_next) {
		struct md_wait *w = MD_WAITING(m, i);

		if (w->woken != TK_NEVER)
			continue;
		w->woken = by->since;
		w->waker = by->thread;
		w->waker_site = by->site_row;
	}
	o->arrived = 0;
}

void md_barrier_in(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_BARRIER, e->object, &pair);
	uint32_t wait = md_wait_begin(m, e, object, PTT_MODE_EXCLUSIVE);
	struct md_object *o = MD_OBJECT(m, object);

	if (++o->arrived == o->pub.attributes && wait)
		barrier_open(m, o, wait);
}

void md_barrier_out(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_BARRIER, e->object, &pair);
	struct md_object *o = MD_OBJECT(m, object);
	uint32_t number = tk_wait_of(&m->t, e->thread, object);
	struct md_end end = md_end_of(e, PTT_CONTENDED, -1);
	struct md_wait w;

	if (end.result == PTHREAD_BARRIER_SERIAL_THREAD)
		end.wait_class = PTT_CONTENDED;
	/* How many it takes is not known: those who are there when the first one leaves. */
	if (number && MD_WAITING(m, number)->woken == TK_NEVER && end.wait_class == PTT_CONTENDED)
		barrier_open(m, o, o->pub.waits);
	md_wait_take(m, e, object, &w);
	if (w.waker == e->thread)
		return; /* came last, and waited for nobody */
	if (w.waker && end.wait_class == PTT_CONTENDED) {
		end.waker = w.waker;
		end.waker_site = w.waker_site;
		end.wake = w.woken;
		end.wake_kind = PTT_WAKE_BARRIER;
		md_blame_waker(m, &w, &end);
	}
	md_wait_account(m, &w, &end);
}

/* ---- semaphores ---- */

uint8_t md_sem_unknown_class(struct ptt_model *m, uint32_t thread, uint32_t object)
{
	const struct md_object *o = MD_OBJECT(m, object);
	uint32_t own = MD_PAIR(m, md_pair(m, thread, object))->balance > 0;

	if (!TK_PROCESS(&m->t, o->pub.process)->full[PTT_KIND_SEM])
		return PTT_IDLE;
	return o->units_out > own ? PTT_CONTENDED : PTT_IDLE;
}

/* Who ended a wait for a semaphore or futex decides what it was. */
static void granted(struct ptt_model *m, const struct md_wait *w, struct md_end *end, const struct md_token *token)
{
	woken_by(end, token);
	end->wait_class = token->gave_back ? PTT_CONTENDED : PTT_IDLE;
	if (token->gave_back)
		md_blame_waker(m, w, end);
}

static void sem_waited(struct ptt_model *m, const struct tk_event *e, uint32_t object)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_tokens *tokens = tokens_of(m, o);
	struct md_end end = md_end_of(e, PTT_IDLE, -1);
	struct md_token token;
	struct md_wait w;
	bool woken;

	md_wait_take(m, e, object, &w);
	if (end.dur < 0)
		end.dur = e->ts - w.since;
	woken = end.wait_class == PTT_IDLE && token_take(tokens, w.since, &token);
	if (!woken)
		tokens_left(m, o, e->ts);
	if (end.wait_class == PTT_IDLE) {
		if (woken)
			granted(m, &w, &end, &token);
		else if (tokens->last.thread && tokens->last.ts >= w.since - SKEW_NS)
			granted(m, &w, &end, &tokens->last);
		else
			end.wait_class = md_sem_unknown_class(m, e->thread, object);
		if (end.wait_class == PTT_CONTENDED && !end.waker)
			md_blame_waker(m, &w, &end);
	}
	md_wait_account(m, &w, &end);
}

void md_sem_taken(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_SEM, e->object, &pair);

	if (tk_has(e->id, TK_WAIT_NS))
		sem_waited(m, e, object);
	pair = md_pair(m, e->thread, object);
	MD_PAIR(m, pair)->balance_ns = e->ts;
	if (MD_PAIR(m, pair)->balance++ == 0)
		MD_OBJECT(m, object)->units_out++;
}

void md_sem_gave_up(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair;

	sem_waited(m, e, md_object(m, e, PTT_KIND_SEM, e->object, &pair));
}

void md_sem_post(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_SEM, e->object, &pair);
	bool gave_back;

	pair = md_pair(m, e->thread, object);
	gave_back = MD_PAIR(m, pair)->balance > 0;
	if (gave_back && --MD_PAIR(m, pair)->balance == 0)
		MD_OBJECT(m, object)->units_out--;
	md_wake(m, e, object, 1, PTT_WAKE_POST, gave_back);
}

/* ---- futexes ---- */

static void has_waited(struct ptt_model *m, const struct tk_event *e, uint32_t object)
{
	struct ptt_model_pair *pair = MD_PAIR(m, md_pair(m, e->thread, object));

	pair->balance = 1;
	pair->balance_ns = e->ts;
}

void md_futex_in(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_FUTEX, e->object, &pair);

	has_waited(m, e, object);
	md_wait_begin(m, e, object, PTT_MODE_EXCLUSIVE);
}

void md_futex_out(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_FUTEX, e->object, &pair);
	struct md_object *o = MD_OBJECT(m, object);
	struct md_tokens *tokens = tokens_of(m, o);
	struct md_end end = md_end_of(e, PTT_IDLE, 0);
	struct md_token token;
	struct md_wait w;

	has_waited(m, e, object);
	md_wait_take(m, e, object, &w);
	if (!end.result && token_take(tokens, w.since, &token))
		granted(m, &w, &end, &token);
	else
		tokens_left(m, o, e->ts);
	if (end.result != EAGAIN) /* the value had changed: it did not block */
		md_wait_account(m, &w, &end);
}

void md_futex_wake(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, PTT_KIND_FUTEX, e->object, &pair);
	int64_t count = tk_number(&e->e, TK_COUNT, 1);

	md_wake(m, e, object, count > 0 ? (uint32_t)count : 0, PTT_WAKE_FUTEX,
		MD_PAIR(m, md_pair(m, e->thread, object))->balance > 0);
}
