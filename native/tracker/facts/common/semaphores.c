/* SPDX-License-Identifier: MIT */
/* semaphores.c - semaphores used as locks, semaphores of interpreters, and the holders of their units. */
#include "../facts.h"

/* ---- purposes ---- */

/* The key in `uses` of semaphores of a process, with or without units; the second key is the stack. */
static uint64_t use_key(uint32_t process, bool units)
{
	return (uint64_t)process << 1 | units;
}

int ptt_check_semaphore(struct ptt_check *c, uint32_t process, uint32_t stack, uint32_t units, uint32_t use, uint32_t origin)
{
	struct rd_entry *entry = rd_map_put(&c->uses, use_key(process, units), stack);

	if (!entry)
		return -ENOMEM;
	entry->value = (uint64_t)origin << 8 | (use & 0xff);
	return 0;
}

/* The known use of a semaphore, by the stack of its initialization or its last wait; 0: unknown. It may become known late. */
static uint64_t use_of(const struct ptt_check *c, const struct ck_object *o)
{
	const struct rd_entry *entry = o->made_stack ? rd_map_find(&c->uses, use_key(o->process, o->made_full), o->made_stack) : NULL;

	return entry ? entry->value : 0;
}

uint32_t ck_sem_use(const struct ptt_check *c, const struct ck_object *o)
{
	return (uint32_t)use_of(c, o) & 0xff;
}


void ck_sem_made(struct ptt_check *c, const struct tk_event *e, uint32_t object)
{
	int64_t value = tk_number(&e->e, TK_VALUE, 0);
	struct ck_object *o = CK_OBJECT(c, object);

	if (value == 1)
		o->flags |= CK_AS_LOCK;
	/* The value of a semaphore with a name depends on its creator. */
	if (o->opens)
		return;
	o->made_stack = e->stack;
	o->made_full = value > 0;
	if (tk_number(&e->e, TK_SHARED, 0))
		return;
	o->order.units = (uint32_t)value;
	o->pool = value > 1 ? (uint32_t)value : 0;
}

void ck_sem_awaited(struct ptt_check *c, const struct tk_event *e, uint32_t object)
{
	struct ck_object *o = CK_OBJECT(c, object);

	/* sem_open() does not say the purpose. The stack of a waiter belongs to the process of the waiter. */
	if (e->stack && (o->opens || !o->made_stack)) {
		const struct rd_entry *entry = rd_map_find(&c->uses, use_key(e->process, false), e->stack);

		o->work |= entry && (entry->value & 0xff) == PTT_USED_FOR_WORK && !tk_number(&e->e, TK_LOCK, 0);
	}
	/* A thread of an interpreter is parked here. Its stack says why. */
	if (o->made_full || !tk_number(&e->e, TK_LOCK, 0))
		return;
	o->parks = true;
	if (e->stack)
		o->made_stack = e->stack;
}

/* ---- use as locks ---- */

/* Whether threads handed on units of semaphores that were made at the same line, or at the same call site. */
static struct rd_entry *alike(struct ptt_check *c, const struct ck_object *o)
{
	uint64_t line = use_of(c, o) >> 8, site = o->made_stack ? o->made_stack : o->init.site;
	struct rd_entry *entry;

	if (!line && !site)
		return NULL;
	entry = rd_map_put(&c->handed, (uint64_t)o->process << 2 | (line ? 2 : o->made_stack != 0), line ? line : site);
	if (!entry)
		c->t.error = -ENOMEM;
	return entry;
}

bool ck_sem_is_lock(struct ptt_check *c, const struct ck_object *o)
{
	const struct rd_entry *entry;
	uint32_t use;

	if (!(o->flags & CK_AS_LOCK) || o->flags & CK_GIVEN_BACK)
		return o->flags & CK_AS_LOCK;
	/* Threads hand on the units of such a semaphore. */
	use = ck_sem_use(c, o);
	if (use >= PTT_USED_FOR_WORK && use <= PTT_USED_FOR_RESULT)
		return false;
	entry = alike(c, o);
	return !entry || !entry->value;
}

uint32_t ck_sem_holder(struct ptt_check *c, const struct ck_object *o)
{
	return o->opens ? 0 : ck_sem_unit_of(c, o);
}

uint32_t ck_sem_unit_of(struct ptt_check *c, const struct ck_object *o)
{
	return o->sem_hold && ck_sem_is_lock(c, o) ? o->sem_hold : 0;
}

void ck_sem_no_lock(struct ptt_check *c, struct ck_object *o)
{
	struct rd_entry *entry = o->flags & CK_AS_LOCK ? alike(c, o) : NULL;

	o->flags &= ~CK_AS_LOCK;
	if (entry)
		entry->value = 1;
}

/* ---- copies by a fork ---- */

void ck_sem_taken_by(struct ptt_check *c, uint32_t object, uint32_t thread)
{
	struct ck_object *o = CK_OBJECT(c, object);

	o->sem_hold = thread;
	if (o->is_listed || !(o->flags & CK_AS_LOCK))
		return;
	o->is_listed = true;
	o->taken_next = CK_PROCESS(c, o->process)->taken;
	CK_PROCESS(c, o->process)->taken = object;
}

static void copy_taken(struct ptt_check *c, const struct tk_event *e, uint32_t theirs)
{
	struct tk_cached made;
	uint32_t object = tk_meet(&c->t, e, PTT_KIND_SEM, CK_OBJECT(c, theirs)->address, &made)->object;
	const struct ck_object *o = CK_OBJECT(c, theirs);
	const struct ck_wakeup *post = ck_woke(c, o);

	if (!object || object == theirs)
		return;
	CK_OBJECT(c, object)->copied = theirs;
	CK_OBJECT(c, object)->flags |= o->flags & CK_GIVEN_BACK;
	CK_OBJECT(c, object)->kept_by = (struct ck_last){ .ts = o->release_ns, .site = o->release_site, .thread = o->sem_hold };
	CK_OBJECT(c, object)->free_before = post->thread ? post->ts : TK_NEVER;
}

void ck_sem_forked(struct ptt_check *c, const struct tk_event *e, uint32_t process)
{
	struct ck_process *p = CK_PROCESS(c, process);
	struct tk_event at = { .ts = e->ts, .process = process };
	uint32_t i, next;

	/* Events of the parent and of the child report the fork. The first event counts: at the second, the state may differ. */
	if (!p->parent || p->has_copies)
		return;
	p->has_copies = true;
	i = CK_PROCESS(c, p->parent - 1)->taken;
	CK_PROCESS(c, p->parent - 1)->taken = 0;
	for (; i; i = next) {
		struct ck_object *o = CK_OBJECT(c, i);

		next = o->taken_next;
		o->is_listed = false;
		if (!o->sem_hold || o->flags & (PTT_OBJECT_ENDED | PTT_OBJECT_SHARED) || o->opens)
			continue;
		ck_sem_taken_by(c, i, o->sem_hold);
		/* if the holder had ended, the fork is not the cause */
		if (!(CK_THREAD(c, o->sem_hold)->flags & PTT_THREAD_ENDED))
			copy_taken(c, &at, i);
	}
}

/* ---- other posters ---- */

int ptt_check_waits_for_posts(const struct ptt_check *c, uint32_t process)
{
	if (process >= c->t.process_count || CK_PROCESS(c, process)->exited)
		return 0;
	for (uint32_t i = CK_PROCESS(c, process)->threads; i; i = CK_THREAD(c, i)->process_next)
		if (CK_THREAD(c, i)->waits && CK_WAITING(c, CK_THREAD(c, i)->waits)->kind == PTT_KIND_SEM)
			return 1;
	return 0;
}

int ptt_check_no_handlers(struct ptt_check *c, uint32_t process, uint32_t may)
{
	if (tk_process_reach(&c->t, process) < 0)
		return -ENOMEM;
	CK_PROCESS(c, process)->no_handlers = !may;
	CK_PROCESS(c, process)->handlers_may = may;
	return 0;
}
