/* SPDX-License-Identifier: MIT */
/* objects.c - objects and their generations, their purposes, and the threads that use them. */
#include "../holds.h"

/* A child has the semaphores of its parent, which were initialized there. */
static void inherit(const struct ptt_model *m, struct md_object *o)
{
	uint32_t parent = TK_PROCESS(&m->t, o->pub.process)->parent;
	const struct md_object *from;

	if (!parent || o->pub.kind != PTT_KIND_SEM || o->pub.before)
		return;
	from = MD_OBJECT(m, tk_known_object(&m->t, parent - 1, PTT_KIND_SEM, o->pub.address));
	o->pub.attributes = from->pub.attributes;
	o->as_lock = from->as_lock;
	o->pool = from->pool;
	o->purpose = from->purpose;
	o->made_by_stack = from->made_by_stack;
}

/* Whether the object before at the address was initialized at the same place, as far as it is known. */
static bool alike_before(const struct ptt_model *m, uint32_t object)
{
	uint32_t before = MD_OBJECT(m, object)->pub.before;

	return before && MD_OBJECT(m, before)->pub.init_site == MD_OBJECT(m, object)->pub.init_site;
}

/* Finds the first object at the address that was initialized at the same place. Allocates. */
static void find_first(struct ptt_model *m, uint32_t object)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct rd_entry *e;

	if (alike_before(m, object)) {
		o->first = MD_OBJECT(m, o->pub.before)->first;
		return;
	}
	e = rd_map_put(&m->made_of, (uint64_t)o->pub.init_site << 32 | o->pub.process << 8 | o->pub.kind, o->pub.address);
	if (!e) {
		m->t.error = -ENOMEM;
		return;
	}
	if (!e->value)
		e->value = object;
	o->first = (uint32_t)e->value;
}

/* Contents of `gils`: the purpose of an address, and the offset of the condition that a taker of the interpreter's lock signals. */
#define PURPOSE UINT64_C(0xff)
#define HAND_OVER_SHIFT 8

void md_object_made(struct tracker *t, uint32_t object)
{
	struct ptt_model *m = (struct ptt_model *)(void *)t;
	struct md_object *o = MD_OBJECT(m, object);
	const struct rd_entry *entry;

	o->pub.last_ns = o->pub.first_ns;
	o->first = alike_before(m, object) ? MD_OBJECT(m, o->pub.before)->first : object;
	inherit(m, o);
	entry = m->gils.count ? rd_map_find(&m->gils, o->pub.process, o->pub.address) : NULL;
	if (entry)
		o->purpose = (uint8_t)(entry->value & PURPOSE);
	o->counted = !m->only_objects.count ||
		     rd_chosen(&m->only_objects, o->pub.process, o->pub.address, o->pub.kind, o->pub.first_ns);
}

#define PAIR_OBJECT 1u
#define PAIR_ADDRESS 2u

/* Counts the users of all objects of an address that were initialized at one place, at the first of these objects. */
static void count_at_address(struct ptt_model *m, uint32_t thread, uint32_t first)
{
	struct md_object *o = MD_OBJECT(m, first);
	uint64_t bit = thread < 64 ? UINT64_C(1) << thread : 0;
	uint32_t pair = bit ? 0 : md_pair(m, thread, first);

	if (bit ? o->address_users & bit : MD_PAIR(m, pair)->used & PAIR_ADDRESS)
		return;
	o->address_users |= bit;
	MD_PAIR(m, pair)->used |= PAIR_ADDRESS;
	o->pub.address_threads++;
}

uint32_t md_user(struct ptt_model *m, uint32_t thread, uint32_t object)
{
	struct md_object *o = MD_OBJECT(m, object);
	uint64_t bit = thread < 64 ? UINT64_C(1) << thread : 0;
	uint32_t pair = 0;

	if (!bit || m->flags & PTT_MODEL_PAIRS_OF)
		pair = md_pair(m, thread, object);
	/* A use after the window does not count. */
	if (m->window.ended || (bit ? o->pub.users & bit : MD_PAIR(m, pair)->used & PAIR_OBJECT))
		return pair;
	o->pub.users |= bit;
	MD_PAIR(m, pair)->used |= PAIR_OBJECT;
	o->pub.threads++;
	count_at_address(m, thread, o->first);
	return pair;
}

uint32_t md_object_used(struct tracker *t, uint32_t thread, uint32_t object)
{
	struct ptt_model *m = (struct ptt_model *)(void *)t;

	return m->unused ? 0 : md_user(m, thread, object);
}

static uint32_t attributes(const struct tk_event *e, uint32_t kind)
{
	switch (kind) {
	case PTT_KIND_MUTEX:
		return (uint32_t)(tk_number(&e->e, TK_KIND, 0) | tk_number(&e->e, TK_PROTOCOL, 0) << 8 |
				  tk_number(&e->e, TK_ROBUST, 0) << 16);
	case PTT_KIND_RWLOCK:
		return (uint32_t)tk_number(&e->e, TK_PREFERENCE, 0);
	case PTT_KIND_COND:
		return (uint32_t)tk_number(&e->e, TK_CLOCK, 0);
	case PTT_KIND_BARRIER:
		return (uint32_t)tk_number(&e->e, TK_COUNT, 0);
	case PTT_KIND_SEM:
		return (uint32_t)tk_number(&e->e, TK_VALUE, 0);
	}
	return 0;
}

/* The key of semaphores that a process initializes with a stack, with units or without. */
static uint64_t semaphore_key(uint32_t process, bool units)
{
	return (uint64_t)process << 1 | units;
}

static int add_purpose(struct ptt_model *m, uint32_t process, uint64_t address, uint8_t purpose, uint32_t hand_over)
{
	struct rd_entry *entry = rd_map_put(&m->gils, process, address);

	if (!entry)
		return -ENOMEM;
	entry->value = purpose | (uint64_t)hand_over << HAND_OVER_SHIFT;
	for (uint32_t i = 1; i < m->t.objects.count; i++)
		if (MD_OBJECT(m, i)->pub.process == process && MD_OBJECT(m, i)->pub.address == address)
			MD_OBJECT(m, i)->purpose = purpose;
	return 0;
}

int ptt_model_gil(struct ptt_model *m, uint32_t process, uint64_t address, uint32_t hand_over)
{
	return add_purpose(m, process, address, PTT_FOR_GIL, hand_over);
}

int ptt_model_gate(struct ptt_model *m, uint32_t process, uint64_t address)
{
	return add_purpose(m, process, address, PTT_FOR_WORK, 0);
}

const struct md_wakeup *md_gil_taken(const struct ptt_model *m, const struct md_object *o)
{
	const struct rd_entry *entry =
		o->purpose == PTT_FOR_GIL ? rd_map_find(&m->gils, o->pub.process, o->pub.address) : NULL;
	uint64_t hand_over = entry ? entry->value >> HAND_OVER_SHIFT : 0;
	uint32_t other = hand_over ? tk_known_object(&m->t, o->pub.process, PTT_KIND_COND, o->pub.address + hand_over) : 0;
	const struct md_wakeup *given_up, *taken;

	if (!other)
		return NULL;
	given_up = MD_WAKEUP(m, TK_WAKING(&m->t, &o->pub)->latest);
	taken = MD_WAKEUP(m, TK_WAKING(&m->t, &MD_OBJECT(m, other)->pub)->latest);
	return taken->thread && (!given_up->thread || given_up->ts < taken->ts) ? taken : NULL;
}

int ptt_model_semaphore(struct ptt_model *m, uint32_t process, uint32_t stack, uint32_t units, uint32_t purpose)
{
	struct rd_entry *entry = rd_map_put(&m->semaphores, semaphore_key(process, units), stack);

	if (!entry)
		return -ENOMEM;
	entry->value = purpose;
	return 0;
}

uint8_t md_class(const struct md_object *o, uint8_t otherwise)
{
	switch (o->purpose) {
	case PTT_FOR_WORK:
		return PTT_IDLE;
	case PTT_FOR_END:
		return PTT_JOIN;
	case PTT_FOR_HOLDER:
		return PTT_CONTENDED;
	case PTT_FOR_GIL:
		return PTT_GIL;
	case PTT_FOR_UNKNOWN:
		return PTT_UNKNOWN;
	}
	return otherwise;
}

static uint8_t purpose_of(const struct ptt_model *m, const struct tk_event *e, uint32_t units)
{
	const struct rd_entry *entry =
		e->stack ? rd_map_find(&m->semaphores, semaphore_key(e->process, units), e->stack) : NULL;

	return entry ? (uint8_t)entry->value : PTT_FOR_ANYTHING;
}

uint32_t md_object_without_use(struct ptt_model *m, const struct tk_event *e,
			       uint32_t (*call)(struct tracker *t, const struct tk_event *e))
{
	struct tk_cached *cached;
	uint32_t object;

	m->unused = true;
	cached = tk_cached(&m->t, e, e->id >> 6, e->object);
	MD_OBJECT(m, cached->object)->pub.last_ns = e->ts;
	object = call(&m->t, e);
	*cached = (struct tk_cached){ 0 }; /* so that its next use is counted */
	m->unused = false;
	return object;
}

void md_init(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t kind = e->id >> 6, object = md_object_without_use(m, e, tk_init);
	struct md_object *o;

	if (!object)
		return;
	MD_OBJECT(m, object)->pub.init_site = md_site(m, e->thread, e->site, kind);
	find_first(m, object);
	o = MD_OBJECT(m, object);
	if (MD_OBJECT(m, o->pub.before)->pub.holds || MD_OBJECT(m, o->pub.before)->tail)
		md_drop_holds(m, o->pub.before, e->ts);
	o->pub.attributes = attributes(e, kind);
	/* Processes that are not traced may use a semaphore that has a name or is shared. */
	if (kind == PTT_KIND_SEM && m->semaphores.count)
		o->purpose = purpose_of(m, e, o->pub.attributes > 0);
	o->made_by_stack = e->stack != 0;
	o->as_lock = kind == PTT_KIND_SEM && tk_number(&e->e, TK_SHARED, 1) == 0 && o->pub.attributes == 1 &&
		     (o->purpose == PTT_FOR_ANYTHING || o->purpose == PTT_FOR_LOCK);
	o->pool = kind == PTT_KIND_SEM && o->pub.attributes > 1;
	o->maker = e->thread;
}

/* Whether a semaphore serves a single wait, or the end of a single thread. */
static bool is_for_once(uint8_t purpose)
{
	return purpose == PTT_FOR_WORK || purpose == PTT_FOR_END;
}

/* A semaphore may be older than the recording, or was opened by name: its first wait says whether it is a lock of the interpreter. */
static void learn_from_wait(struct ptt_model *m, const struct tk_event *e, struct md_object *o)
{
	bool made = o->maker || o->made_by_stack;
	uint8_t purpose;

	if (!m->semaphores.count || (made && o->purpose != PTT_FOR_ANYTHING))
		return;
	purpose = purpose_of(m, e, 1);
	/* For a semaphore of several processes, only the wait says the purpose. */
	if ((purpose == PTT_FOR_WORK || purpose == PTT_FOR_UNKNOWN) && o->purpose == PTT_FOR_ANYTHING)
		o->purpose = purpose;
	if (made || purpose != PTT_FOR_LOCK)
		return;
	o->purpose = PTT_FOR_LOCK;
	o->as_lock = o->made_by_stack = true;
}

uint32_t md_parked_at(struct ptt_model *m, const struct tk_event *e, uint32_t object)
{
	uint8_t purpose = purpose_of(m, e, 0);
	struct md_object *o = MD_OBJECT(m, object);

	if (!tk_number(&e->e, TK_LOCK, 0))
		learn_from_wait(m, e, o);
	if (purpose == PTT_FOR_ANYTHING || o->pub.waiters || !tk_number(&e->e, TK_LOCK, 0))
		return object;
	if (o->made_by_stack && (is_for_once(o->purpose) || is_for_once(purpose))) {
		object = tk_renew(&m->t, object, e);
		md_user(m, e->thread, object);
		o = MD_OBJECT(m, object);
	}
	o->purpose = purpose;
	o->made_by_stack = true;
	return object;
}

void md_set_type(struct ptt_model *m, uint32_t object, uint32_t type)
{
	struct ptt_model_object *o = &MD_OBJECT(m, object)->pub;

	o->flags &= (1u << PTT_OBJECT_TYPE_SHIFT) - 1;
	o->flags |= type << PTT_OBJECT_TYPE_SHIFT;
}

void md_type(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t pair, object = md_object(m, e, e->id >> 6, e->object, &pair);
	enum tk_field field = e->id >> 6 == PTT_KIND_LLL ? TK_PURPOSE : TK_LOCK_TYPE;

	md_set_type(m, object, (uint32_t)tk_number(&e->e, field, 0));
}
