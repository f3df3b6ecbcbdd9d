/* SPDX-License-Identifier: MIT */
/* table.c - threads and objects by what events call them. */
#include "internal.h"

/* In place of an object's number: there was one, and it is gone. */
#define GONE UINT64_MAX

/* ---- objects ---- */

static bool is_shared(const struct vf_process *p, uint64_t address)
{
	for (uint32_t i = 0; i < p->shared_count; i++)
		if (address >= p->shared[i].from && address < p->shared[i].to)
			return true;
	return false;
}

void vf_drop_holds(struct ptt_verify *v, struct vf_object *o)
{
	while (o->lock.holds) {
		uint32_t number = o->lock.holds;

		o->lock.holds = VF_HOLD(v, number)->next;
		vf_drop(&v->holds, number);
	}
}

struct vf_object *vf_mutex_of(struct ptt_verify *v, const struct vf_waiter *w)
{
	struct vf_object *o;

	if (!w->mutex)
		return NULL;
	o = VF_OBJECT(v, w->mutex);
	return o->serial == w->mutex_serial ? o : NULL;
}

static void drop_waiters(struct ptt_verify *v, struct vf_object *o)
{
	while (o->cond.waiters) {
		uint32_t number = o->cond.waiters;
		struct vf_object *mutex = vf_mutex_of(v, VF_WAITER(v, number));

		if (mutex && mutex->calls)
			mutex->calls--;
		o->cond.waiters = VF_WAITER(v, number)->next;
		vf_drop(&v->waiters, number);
	}
	o->cond.last = 0;
}

void vf_renew(struct ptt_verify *v, struct vf_object *o)
{
	struct vf_object fresh = {
		.number = o->number,
		.serial = ++v->serial,
		.address = o->address,
		.process = o->process,
		.epoch = v->processes[o->process].epoch,
		.kind = o->kind,
		.flags = is_shared(&v->processes[o->process], o->address) ? VF_SHARED : 0,
		.before = o->before,
		.last_ts = VF_NEVER,
		.other_ts = VF_NEVER,
	};

	if (o->kind == VF_MUTEX || o->kind == VF_RWLOCK || o->kind == VF_SPIN) {
		vf_drop_holds(v, o);
		fresh.lock.free_ts = VF_NEVER;
	} else if (o->kind == VF_COND) {
		drop_waiters(v, o);
	}
	*o = fresh;
}

static struct vf_object *object_find(struct ptt_verify *v, uint32_t process, uint32_t kind, uint64_t address)
{
	struct rd_entry *entry = rd_map_put(&v->object_of, (uint64_t)process << 8 | kind, address);
	struct vf_object *o;
	uint32_t number;

	if (unlikely(!entry)) {
		v->error = -ENOMEM;
		return NULL;
	}
	if (entry->value && entry->value != GONE)
		return VF_OBJECT(v, (uint32_t)entry->value);
	number = vf_new(v, &v->objects);
	if (!number)
		return NULL;
	o = VF_OBJECT(v, number);
	o->number = number;
	o->address = address;
	o->process = process;
	o->kind = (uint8_t)kind;
	o->before = entry->value == GONE;
	entry->value = number;
	vf_renew(v, o);
	return o;
}

struct vf_object *vf_object(struct ptt_verify *v, const struct vf_event *e, uint32_t kind, uint64_t address)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	struct vf_known *known = &t->known[rd_hash(address, kind) % VF_RECENT];
	struct vf_object *o;

	if (likely(known->serial && known->address == address && known->kind == kind)) {
		o = VF_OBJECT(v, known->object);
		if (likely(o->serial == known->serial && o->epoch == v->processes[e->process].epoch))
			return o;
	}
	o = object_find(v, e->process, kind, address);
	if (unlikely(!o))
		return NULL;
	if (unlikely(o->epoch != v->processes[e->process].epoch))
		vf_renew(v, o);
	*known = (struct vf_known){ .address = address, .kind = kind, .object = o->number, .serial = o->serial };
	return o;
}

struct vf_object *vf_object_there(struct ptt_verify *v, const struct vf_event *e, uint32_t kind)
{
	const struct rd_entry *entry = rd_map_find(&v->object_of, (uint64_t)e->process << 8 | kind, e->e.object);

	return entry && entry->value && entry->value != GONE ? VF_OBJECT(v, (uint32_t)entry->value) : NULL;
}

void vf_object_gone(struct ptt_verify *v, struct vf_object *o)
{
	uint32_t number = o->number;

	rd_map_find(&v->object_of, (uint64_t)o->process << 8 | o->kind, o->address)->value = GONE;
	vf_renew(v, o); /* lets go of what it holds */
	o->serial = 0;
	vf_drop(&v->objects, number);
}

struct vf_object *vf_same(struct ptt_verify *v, const struct vf_call *call)
{
	struct vf_object *o;

	if (!call->in.id || !call->object)
		return NULL;
	o = VF_OBJECT(v, call->object);
	return o->serial == call->serial && o->epoch == v->processes[o->process].epoch ? o : NULL;
}

/* ---- threads ---- */

uint32_t vf_thread_new(struct ptt_verify *v, uint32_t reader, uint32_t process, uint32_t tid)
{
	uint32_t number = vf_new(v, &v->threads);
	struct vf_thread *t;

	if (!number)
		return 0;
	t = VF_THREAD_AT(v, number);
	t->reader = reader;
	t->process = process;
	t->tid = tid;
	t->last_ts = VF_NEVER;
	t->epoch = v->processes[process].epoch;
	v->threads_of[reader] = number;
	return number;
}
