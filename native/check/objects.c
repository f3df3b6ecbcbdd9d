/* SPDX-License-Identifier: MIT */
/* objects.c - objects by address, their generations, and what must not be done before or after their life. */
#include "internal.h"

static uint64_t key_of(uint64_t address, uint32_t kind)
{
	return (address & PTT_OBJECT_MASK) | (uint64_t)kind << 48;
}

/* Numbers of processes end below this; the objects of shared memory belong to numbers above. */
#define SHARED_SPACE UINT32_C(0x80000000)

/* Where an object lives: in memory that several processes have mapped that is not their address of it. */
static void place_of(const struct ptt_check *c, uint32_t *process, uint64_t *address)
{
	*address &= PTT_OBJECT_MASK;
	/* What was mapped at an address last is what counts. */
	for (uint32_t i = c->processes[*process].shares; i; i = CK_SHARE(c, i)->process_next) {
		const struct ck_share *s = CK_SHARE(c, i);

		if (*address >= s->start && *address < s->end) {
			*process = SHARED_SPACE | s->memory;
			*address = *address - s->start + s->offset;
			return;
		}
	}
}

int ptt_check_share(struct ptt_check *c, uint32_t process, uint64_t start, uint64_t end, uint32_t memory, uint64_t offset)
{
	uint32_t number, *shares;

	if (end <= start || memory >= SHARED_SPACE)
		return -EINVAL;
	if (rd_array_reach((void **)&c->processes, &c->process_count, process, sizeof(*c->processes)) < 0)
		return -ENOMEM;
	number = ck_new(c, &c->shares);
	if (!number)
		return c->error;
	shares = &c->processes[process].shares;
	*CK_SHARE(c, number) = (struct ck_share){ start, end, offset, process, memory, *shares };
	*shares = number;
	return 0;
}

uint32_t ck_known_object(const struct ptt_check *c, uint32_t process, uint32_t kind, uint64_t address)
{
	const struct rd_entry *e;

	place_of(c, &process, &address);
	e = rd_map_find(&c->object_of, key_of(address, kind), process);
	return e ? (uint32_t)e->value : 0;
}

static struct rd_entry *entry_of(struct ptt_check *c, uint32_t process, uint32_t kind, uint64_t address)
{
	place_of(c, &process, &address);
	return rd_map_put(&c->object_of, key_of(address, kind), process);
}

static uint32_t object_new(struct ptt_check *c, uint32_t process, uint32_t kind, uint64_t address, uint32_t before)
{
	struct rd_entry *e = entry_of(c, process, kind, address);
	uint32_t number = ck_new(c, &c->objects);
	struct ck_object *o = CK_OBJECT(c, number);

	if (!e || !number) {
		c->error = -ENOMEM;
		return 0;
	}
	e->value = number;
	o->address = address & PTT_OBJECT_MASK;
	o->process = process;
	o->kind = kind;
	o->taken = o->taken_before = CK_NEVER;
	o->before = before;
	o->process_next = c->processes[process].objects;
	c->processes[process].objects = number;
	if (before)
		CK_OBJECT(c, before)->flags |= CK_ENDED;
	return number;
}

/* What a forked child finds at an address is what its parent made of it. */
static void take_over(struct ptt_check *c, uint32_t object)
{
	struct ck_object *o = CK_OBJECT(c, object);
	uint32_t process = o->process, depth = 0;

	while (c->processes[process].parent && depth++ < 64) {
		uint32_t theirs;

		process = c->processes[process].parent - 1;
		if (process >= c->process_count)
			return;
		theirs = ck_known_object(c, process, o->kind, o->address);
		if (!theirs)
			continue;
		o->flags |= CK_OBJECT(c, theirs)->flags & (CK_INITED | CK_SHARED_MEMORY | CK_ROBUST | CK_INHERITS);
		o->flags |= CK_DOUBT; /* it may be locked */
		o->barrier_count = CK_OBJECT(c, theirs)->barrier_count;
		return;
	}
}

uint32_t ck_object(struct ptt_check *c, const struct ck_event *e, uint32_t kind, uint64_t address)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	uint64_t key = key_of(address, kind);
	struct ck_cached *cached = &t->cache[(key >> 3 ^ key >> 6 ^ key >> 12) % CK_CACHE];

	if (unlikely(cached->key != key || !cached->object || CK_OBJECT(c, cached->object)->flags & CK_ENDED)) {
		uint32_t object = ck_known_object(c, e->process, kind, address);

		if (!object) {
			object = object_new(c, e->process, kind, address, 0);
			take_over(c, object);
		} else if (CK_OBJECT(c, object)->process != e->process) {
			CK_OBJECT(c, object)->flags |= CK_SHARED_MEMORY;
		}
		*cached = (struct ck_cached){ .key = key, .object = object };
	}
	return cached->object;
}

bool ck_lasting(const struct ptt_check *c, const struct ck_object *o)
{
	const struct ck_process *p = &c->processes[o->process];

	for (uint32_t i = 0; i < p->memory_count; i++)
		if (o->address >= p->memory[2 * i] && o->address < p->memory[2 * i + 1])
			return true;
	return false;
}

void ck_use_destroyed(struct ptt_check *c, const struct ck_event *e, uint32_t object)
{
	const struct ck_object *o = CK_OBJECT(c, object);

	if (!ck_found(c, PTT_FACT_USE_OF_DESTROYED, e, (uint64_t)object << 16, e->site, PTT_FLAG_WHOLE))
		return;
	ck_step_last(c, PTT_STEP_INIT, &o->init, object);
	ck_step_last(c, PTT_STEP_DESTROYED, &o->destroyed, object);
	ck_step_now(c, PTT_STEP_USED, e, object)->value = e->id;
}

uint32_t ck_use(struct ptt_check *c, const struct ck_event *e, uint32_t kind)
{
	uint32_t object = ck_object(c, e, kind, e->object);

	if (likely(!(CK_OBJECT(c, object)->flags & CK_DESTROYED)))
		return object;
	/*
	 * Memory is used again for objects that need no initialization; only where the memory is no other's that is no
	 * explanation. A mutex would have refused if it had not been made anew.
	 */
	if (kind != NPTL_DOMAIN_MUTEX && ck_lasting(c, CK_OBJECT(c, object)))
		ck_use_destroyed(c, e, object);
	object = object_new(c, e->process, kind, e->object, object);
	CK_OBJECT(c, object)->flags |= CK_DOUBT;
	return object;
}

void ck_init(struct ptt_check *c, const struct ck_event *e, uint32_t kind)
{
	uint32_t object = ck_object(c, e, kind, e->object);
	struct ck_object *o = CK_OBJECT(c, object);
	int64_t value = ck_number(c, e, CK_VALUE, 0);

	/* A named semaphore that is open already is the same one again. */
	if (e->id == (NPTL_DOMAIN_SEM << 6 | NPTL_EV_SEM_OPEN)) {
		if (o->opens++ && !(o->flags & CK_DESTROYED))
			return;
		o->opens = 1;
		o->flags &= ~(CK_DESTROYED | CK_AS_LOCK); /* what its value is depends on who made it */
		return;
	}
	/* Made anew where another was: its memory was used for something else, or nobody destroyed it. */
	if (o->init.thread || o->flags & CK_DESTROYED || o->holds || o->waits || o->released.thread || o->woke.thread) {
		ck_drop_holds(c, object);
		object = object_new(c, e->process, kind, e->object, object);
		o = CK_OBJECT(c, object);
	}
	o->flags = CK_INITED;
	o->init = ck_now(e);
	if (ck_number(c, e, CK_SHARED_FIELD, 0))
		o->flags |= CK_SHARED_MEMORY;
	if (ck_number(c, e, CK_ROBUST_FIELD, 0))
		o->flags |= CK_ROBUST;
	if (ck_number(c, e, CK_PROTOCOL, 0))
		o->flags |= CK_INHERITS;
	if (kind == NPTL_DOMAIN_SEM && value == 1)
		o->flags |= CK_AS_LOCK;
	o->barrier_count = (uint32_t)ck_number(c, e, CK_COUNT, 0);
}

/* Who waits for a semaphore that nobody has posted since. */
static uint32_t hungry(const struct ptt_check *c, const struct ck_object *o)
{
	uint32_t wait = o->waits;

	while (wait && (CK_WAITING(c, wait)->timed || (o->woke.thread && o->woke.ts >= CK_WAITING(c, wait)->since)))
		wait = CK_WAITING(c, wait)->object_next;
	return wait;
}

/* Waiters of a condition that nobody has woken, and that do not wake up by themselves. */
static uint32_t sleeper(const struct ptt_check *c, const struct ck_object *o)
{
	uint32_t found = 0;

	if (o->kind != NPTL_DOMAIN_COND || o->woken >= o->waiters)
		return 0;
	for (uint32_t wait = o->waits; wait; wait = CK_WAITING(c, wait)->object_next) {
		if (CK_WAITING(c, wait)->timed)
			return 0;
		if (!ck_is_woken(c, CK_WAITING(c, wait)))
			found = wait;
	}
	return found;
}

void ck_destroy(struct ptt_check *c, const struct ck_event *e, uint32_t kind)
{
	uint32_t object = ck_object(c, e, kind, e->object), waits;
	struct ck_object *o = CK_OBJECT(c, object);

	if (o->opens) { /* a named semaphore */
		if (--o->opens == 0)
			object_new(c, e->process, kind, e->object, object);
		return;
	}
	if (o->flags & CK_DESTROYED) {
		if (ck_lasting(c, o))
			ck_use_destroyed(c, e, object);
		return;
	}
	waits = kind == NPTL_DOMAIN_SEM ? hungry(c, o) : sleeper(c, o);
	if ((waits || (o->holds && !(o->flags & CK_DOUBT))) &&
	    ck_found(c, PTT_FACT_DESTROY_IN_USE, e, (uint64_t)object << 16, e->site,
		     PTT_FLAG_WHOLE | (kind == NPTL_DOMAIN_SEM ? PTT_FLAG_CLOSED : 0))) {
		for (uint32_t hold = o->holds; hold; hold = CK_HOLD(c, hold)->object_next)
			ck_step_hold(c, hold);
		if (waits)
			ck_step_wait(c, waits, 0);
		ck_step_now(c, PTT_STEP_DESTROYED, e, object);
	}
	ck_drop_holds(c, object);
	o->flags |= CK_DESTROYED | CK_DOUBT;
	o->destroyed = ck_now(e);
}
