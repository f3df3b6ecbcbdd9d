/* SPDX-License-Identifier: MIT */
/* object_misuse.c - objects by address, their generations, and misuse before, at the end of, and after their life. */
#include "../facts.h"

void ck_object_made(struct tracker *t, uint32_t object)
{
	struct ptt_check *c = (struct ptt_check *)(void *)t;
	struct ck_object *o = CK_OBJECT(c, object);
	uint32_t process = o->process, depth = 0;

	while (o->generation == 1 && CK_PROCESS(c, process)->parent && depth++ < 64) {
		uint32_t theirs;

		process = CK_PROCESS(c, process)->parent - 1;
		theirs = tk_known_object(t, process, o->kind, o->address);
		if (!theirs)
			continue;
		o->flags |= CK_OBJECT(c, theirs)->flags & (PTT_OBJECT_MADE | PTT_OBJECT_SHARED | CK_ROBUST | CK_INHERITS);
		o->flags |= CK_DOUBT; /* it may be locked */
		o->barrier_count = CK_OBJECT(c, theirs)->barrier_count;
		return;
	}
}

uint32_t ck_wait_begin(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode)
{
	uint32_t lost = tk_wait_of(&c->t, e->thread, object), wait;

	/* The trace lacks the end of an earlier wait. */
	if (lost)
		tk_wait_end(&c->t, lost);
	wait = tk_wait_begin(&c->t, e, object, mode);
	CK_WAITING(c, wait)->timed = tk_number(&e->e, TK_TIMED, 0) != 0;
	return wait;
}


void ck_use_destroyed(struct ptt_check *c, const struct tk_event *e, uint32_t object)
{
	const struct ck_object *o = CK_OBJECT(c, object);
	/* An initializer may have initialized it again, without a call. C++ constructs a condition in this way. */
	bool suspect = o->kind == PTT_KIND_COND || o->kind == PTT_KIND_RWLOCK || o->kind == PTT_KIND_BARRIER;

	if (!ck_fact_add(c, PTT_FACT_USE_OF_DESTROYED, e, (uint64_t)object << 16, e->site,
			 PTT_FLAG_WHOLE | (suspect ? PTT_FLAG_SUSPECT : 0)))
		return;
	ck_step_last(c, PTT_STEP_INIT, &o->init, object);
	ck_step_last(c, PTT_STEP_DESTROYED, &o->destroyed, object);
	ck_step_now(c, PTT_STEP_USED, e, object)->value = e->id;
}

uint32_t ck_use(struct ptt_check *c, const struct tk_event *e, uint32_t kind)
{
	uint32_t object = ck_object(c, e, kind, e->object);

	if (likely(!(CK_OBJECT(c, object)->flags & PTT_OBJECT_ENDED)))
		return object;
	/*
	 * Memory may be reused for an object that needs no initialization, but the memory of a global variable is not reused. A
	 * destroyed mutex would have refused.
	 */
	if (kind != NPTL_DOMAIN_MUTEX && ck_lasting(c, CK_OBJECT(c, object)))
		ck_use_destroyed(c, e, object);
	object = tk_renew(&c->t, object, e);
	CK_OBJECT(c, object)->flags |= CK_DOUBT;
	return object;
}

/* A lock is initialized in the place of a held lock. Whether the memory was freed in between or not, no thread released that lock. */
static void init_in_use(struct ptt_check *c, const struct tk_event *e, uint32_t before)
{
	const struct ck_object *o = CK_OBJECT(c, before);

	if (!o->holds || o->flags & CK_DOUBT ||
	    CK_THREAD(c, CK_HOLD(c, o->holds)->thread)->flags & PTT_THREAD_ENDED)
		return;
	if (!ck_fact_add(c, PTT_FACT_INIT_IN_USE, e, (uint64_t)before << 16, e->site, PTT_FLAG_WHOLE))
		return;
	ck_step_hold(c, o->holds);
	if (o->waits)
		ck_step_wait(c, o->waits, CK_HOLD(c, o->holds)->thread);
	ck_step_now(c, PTT_STEP_INIT, e, before);
}

void ck_init(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t object = tk_init(&c->t, e);
	struct ck_object *o = CK_OBJECT(c, object);

	if (!object)
		return;
	if (o->before)
		init_in_use(c, e, o->before);
	o = CK_OBJECT(c, object);
	ck_drop_holds(c, o->before);
	o->init = ck_now(e);
	o->clock = tk_number(&e->e, TK_CLOCK, 0);
	if (tk_number(&e->e, TK_ROBUST, 0))
		o->flags |= CK_ROBUST;
	if (tk_number(&e->e, TK_PROTOCOL, 0))
		o->flags |= CK_INHERITS;
	if (o->kind == PTT_KIND_SEM)
		ck_sem_made(c, e, object);
	o->order.prefers_writers = o->kind == PTT_KIND_RWLOCK &&
				   tk_number(&e->e, TK_PREFERENCE, 0) == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
	o->barrier_count = (uint32_t)tk_number(&e->e, TK_COUNT, 0);
}

/* A wait for a semaphore without a post since the wait began; 0: none. */
static uint32_t hungry(const struct ptt_check *c, const struct ck_object *o)
{
	const struct ck_wakeup *post = ck_woke(c, o);
	uint32_t wait = o->waits;

	while (wait && (CK_WAITING(c, wait)->timed || (post->thread && post->ts >= CK_WAITING(c, wait)->since)))
		wait = CK_WAITING(c, wait)->object_next;
	return wait;
}

/* A wait for a condition without a wake-up; 0: none, or a wait ends by itself. */
static uint32_t sleeper(const struct ptt_check *c, const struct ck_object *o)
{
	uint32_t asleep = 0;

	if (o->kind != NPTL_DOMAIN_COND || ck_pending(c, o) >= o->waiters)
		return 0;
	for (uint32_t wait = o->waits; wait; wait = CK_WAITING(c, wait)->object_next) {
		if (CK_WAITING(c, wait)->timed)
			return 0;
		if (!ck_is_woken(c, CK_WAITING(c, wait)))
			asleep = wait;
	}
	return asleep;
}

/* Reports the destruction of an object that a thread holds, or that a thread waits for without a wake-up. */
static void destroyed_in_use(struct ptt_check *c, const struct tk_event *e, uint32_t object)
{
	const struct ck_object *o = CK_OBJECT(c, object);
	bool sem = o->kind == PTT_KIND_SEM;
	uint32_t waits = sem ? hungry(c, o) : sleeper(c, o);

	if (!waits && (!o->holds || o->flags & CK_DOUBT))
		return;
	if (!ck_fact_add(c, PTT_FACT_DESTROY_IN_USE, e, (uint64_t)object << 16, e->site,
			 PTT_FLAG_WHOLE | (sem ? PTT_FLAG_CLOSED : 0)))
		return;
	for (uint32_t hold = o->holds; hold; hold = CK_HOLD(c, hold)->object_next)
		ck_step_hold(c, hold);
	if (waits)
		ck_step_wait(c, waits, 0);
	ck_step_now(c, PTT_STEP_DESTROYED, e, object);
}

void ck_destroy(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t object = ck_object(c, e, e->id >> 6, e->object);
	struct ck_object *o = CK_OBJECT(c, object);

	if (o->flags & PTT_OBJECT_ENDED) {
		if (ck_lasting(c, o))
			ck_use_destroyed(c, e, object);
		return;
	}
	/* A named semaphore is only closed. */
	if (!o->opens)
		destroyed_in_use(c, e, object);
	if (!tk_destroy(&c->t, e))
		return;
	ck_drop_holds(c, object);
	o->flags |= CK_DOUBT;
	o->destroyed = ck_now(e);
}
