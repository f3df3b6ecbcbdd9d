/* SPDX-License-Identifier: MIT */
/* facts.c - facts, and the steps that prove them. A fact that is found again is counted. */
#include "../facts.h"

/* Maximum of facts of a kind at a call site, so that a loop over many objects does not hide other facts. */
#define SAME_SITE_MAX 20

static uint64_t what_of(enum ptt_fact_kind kind, uint32_t flags)
{
	return (uint64_t)kind << 8 | (flags & (PTT_FLAG_CLOSED | PTT_FLAG_SUSPECT));
}

uint32_t ck_fact_add(struct ptt_check *c, enum ptt_fact_kind kind, const struct tk_event *e, uint64_t a, uint64_t b,
		     uint32_t flags)
{
	uint64_t what = what_of(kind, flags);
	struct rd_entry *entry = rd_map_put(&c->seen, a ^ what << 48, b), *site;
	struct ptt_check_fact *f;
	uint32_t number;

	if (!entry) {
		c->t.error = -ENOMEM;
		return 0;
	}
	if (entry->value) {
		/* The search at the end finds the same waits again. */
		CK_FACT(c, entry->value)->count += !(flags & PTT_FLAG_CLOSED);
		return 0;
	}
	site = rd_map_put(&c->seen_at, e->site, (uint64_t)e->process << 16 | what);
	if (!site) {
		c->t.error = -ENOMEM;
		return 0;
	}
	/* Low half: number of facts; high half: the last of these facts. */
	if (e->site && (uint32_t)site->value >= SAME_SITE_MAX) {
		CK_FACT(c, site->value >> 32)->count++;
		return 0;
	}
	number = ck_new(c, &c->facts);
	if (!number)
		return 0;
	entry->value = c->current = number;
	site->value = (uint64_t)number << 32 | ((uint32_t)site->value + 1);
	f = CK_FACT(c, number);
	*f = (struct ptt_check_fact){
		.ts = e->ts, .count = 1, .kind = kind, .flags = flags, .process = e->process,
		.first_step = c->steps.count,
	};
	return number;
}

bool ck_fact_known(const struct ptt_check *c, enum ptt_fact_kind kind, uint64_t a, uint64_t b, uint32_t flags)
{
	const struct rd_entry *entry = rd_map_find(&c->seen, a ^ what_of(kind, flags) << 48, b);

	return entry && entry->value;
}

uint32_t ck_fact_add_largest(struct ptt_check *c, enum ptt_fact_kind kind, const struct tk_event *e, uint64_t a, uint64_t b,
			     int64_t value)
{
	uint32_t number = ck_fact_add(c, kind, e, a, b, PTT_FLAG_WHOLE);
	const struct rd_entry *entry = rd_map_find(&c->seen, a ^ what_of(kind, PTT_FLAG_WHOLE) << 48, b);
	struct ptt_check_fact *f;

	if (!entry || !entry->value)
		return 0;
	f = CK_FACT(c, entry->value);
	f->total += value;
	if (!number) {
		if (value <= f->value)
			return 0;
		f->ts = e->ts;
		f->first_step = c->steps.count;
		f->steps = 0;
		c->current = (uint32_t)entry->value;
	}
	f->value = value;
	return c->current;
}

struct ptt_check_step *ck_step(struct ptt_check *c, enum ptt_check_what what, uint32_t thread, int64_t ts, uint64_t site,
			       uint32_t object)
{
	uint32_t number = ck_new(c, &c->steps);
	struct ptt_check_step *s = CK_STEP(c, number);

	*s = (struct ptt_check_step){
		.ts = ts, .site = site, .thread = thread, .what = (uint16_t)what,
		.process = CK_THREAD(c, thread)->process,
	};
	if (object) {
		s->object = CK_OBJECT(c, object)->address;
		s->process = CK_OBJECT(c, object)->process;
		s->kind = (uint16_t)CK_OBJECT(c, object)->kind;
	}
	if (number)
		CK_FACT(c, c->current)->steps++;
	return s;
}

void ck_step_last(struct ptt_check *c, enum ptt_check_what what, const struct ck_last *last, uint32_t object)
{
	if (last->thread)
		ck_step(c, what, last->thread, last->ts, last->site, object);
}

void ck_step_released(struct ptt_check *c, uint32_t object)
{
	const struct ck_object *o = CK_OBJECT(c, object);

	if (o->releaser)
		ck_step(c, PTT_STEP_RELEASED, o->releaser, o->release_ns, o->release_site, object);
}

void ck_step_hold(struct ptt_check *c, uint32_t hold)
{
	const struct tk_hold *h = CK_HOLD(c, hold);

	if (hold)
		ck_step(c, PTT_STEP_TOOK, h->thread, h->since, h->site, h->object)->value = h->mode;
}

void ck_step_wait(struct ptt_check *c, uint32_t wait, uint32_t other)
{
	const struct ck_wait *w = CK_WAITING(c, wait);
	struct ptt_check_step *s;

	switch (w->kind) {
	case PTT_KIND_THREAD:
		s = ck_step(c, PTT_STEP_JOINS, w->thread, w->since, w->site, w->object);
		s->value = ck_joined_before(c, w);
		other = other ? other : w->owner;
		break;
	case NPTL_DOMAIN_COND:
		if (w->asks_again) {
			s = ck_step(c, PTT_STEP_WAITS, w->thread, w->since, w->site, w->object);
			break;
		}
		s = ck_step(c, PTT_STEP_COND, w->thread, w->since, w->site, w->object);
		s->value = (int64_t)w->mutex_address;
		break;
	case NPTL_DOMAIN_BARRIER:
		s = ck_step(c, PTT_STEP_BARRIER, w->thread, w->since, w->site, w->object);
		s->value = CK_OBJECT(c, w->object)->barrier_count;
		break;
	case PTT_KIND_FUTEX:
		s = ck_step(c, PTT_STEP_WAITS, w->thread, w->since, w->site, w->object);
		s->value = w->futex;
		break;
	default:
		s = ck_step(c, PTT_STEP_WAITS, w->thread, w->since, w->site, w->object);
		s->value = w->mode;
	}
	s->wait = w->id;
	s->other = other;
}

void ck_step_held(struct ptt_check *c, uint32_t wait, uint32_t thread)
{
	const struct ck_wait *w = CK_WAITING(c, wait);
	const struct ck_object *o = CK_OBJECT(c, w->object);

	/* The releaser of a semaphore is the thread that took it last. */
	if (w->kind == NPTL_DOMAIN_SEM && o->sem_hold == thread && o->releaser == thread)
		ck_step(c, PTT_STEP_TOOK, thread, o->release_ns, o->release_site, w->object);
	else if (w->asks_again)
		ck_step_last(c, PTT_STEP_TOOK, &o->gil, w->object);
	else
		ck_step_hold(c, tk_hold_find(&c->t, thread, w->kind == NPTL_DOMAIN_COND ? w->mutex : w->object));
}

struct ptt_check_step *ck_step_now(struct ptt_check *c, enum ptt_check_what what, const struct tk_event *e,
				   uint32_t object)
{
	return ck_step(c, what, e->thread, e->ts, e->site, object);
}

bool ck_lasting(const struct ptt_check *c, const struct ck_object *o)
{
	const struct ck_process *p = CK_PROCESS(c, o->process);

	for (uint32_t i = 0; i < p->memory_count; i++)
		if (o->address >= p->memory[2 * i] && o->address < p->memory[2 * i + 1])
			return true;
	return false;
}
