/* SPDX-License-Identifier: MIT */
/* table.c - threads and objects by what events call them, in tables that never move. */
#include "internal.h"

/* In place of an object's number: there was one, and it is gone. */
#define GONE UINT64_MAX

int vf_pool_open(struct vf_pool *pool, size_t size)
{
	*pool = (struct vf_pool){ .size = size };
	pool->blocks = calloc(1, sizeof(*pool->blocks));
	if (!pool->blocks)
		return -ENOMEM;
	pool->room = 1;
	pool->blocks[0] = calloc(VF_BLOCK, size);
	pool->count = 1;
	return pool->blocks[0] ? 0 : -ENOMEM;
}

void vf_pool_close(struct vf_pool *pool)
{
	for (uint32_t i = 0; pool->blocks && i < pool->room; i++)
		free(pool->blocks[i]);
	free(pool->blocks);
}

static int pool_grow(struct vf_pool *pool)
{
	uint32_t block = pool->count / VF_BLOCK;

	if (block >= pool->room) {
		uint8_t **bigger = realloc(pool->blocks, 2 * (size_t)pool->room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		memset(bigger + pool->room, 0, pool->room * sizeof(*bigger));
		pool->blocks = bigger;
		pool->room *= 2;
	}
	pool->blocks[block] = calloc(VF_BLOCK, pool->size);
	return pool->blocks[block] ? 0 : -ENOMEM;
}

uint32_t vf_new(struct ptt_verify *v, struct vf_pool *pool)
{
	uint32_t number = pool->free;

	if (number) {
		memcpy(&pool->free, vf_at(pool, number), sizeof(pool->free));
		memset(vf_at(pool, number), 0, pool->size);
		return number;
	}
	if (pool->count == UINT32_MAX || (pool->count % VF_BLOCK == 0 && pool_grow(pool) < 0)) {
		v->error = -ENOMEM;
		return 0;
	}
	return pool->count++;
}

void vf_drop(struct vf_pool *pool, uint32_t number)
{
	if (!number)
		return;
	memcpy(vf_at(pool, number), &pool->free, sizeof(pool->free));
	pool->free = number;
}

/* ---- objects ---- */

static bool is_shared(const struct vf_process *p, uint64_t address)
{
	for (uint32_t i = 0; i < p->shared_count; i++)
		if (address >= p->shared[i].from && address < p->shared[i].to)
			return true;
	return false;
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
		vf_cond_drop(v, o);
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

void vf_object_gone(struct ptt_verify *v, const struct vf_event *e, uint32_t kind)
{
	struct rd_entry *entry = rd_map_find(&v->object_of, (uint64_t)e->process << 8 | kind, e->e.object);
	struct vf_object *o;

	if (!entry || !entry->value || entry->value == GONE)
		return;
	o = VF_OBJECT(v, (uint32_t)entry->value);
	vf_settle(v, o, e->e.ts);
	vf_renew(v, o); /* lets go of what it holds */
	o->serial = 0;
	vf_drop(&v->objects, (uint32_t)entry->value);
	entry->value = GONE;
}

struct vf_object *vf_same(struct ptt_verify *v, const struct vf_call *call)
{
	struct vf_object *o;

	if (!call->in.id || !call->object)
		return NULL;
	o = VF_OBJECT(v, call->object);
	return o->serial == call->serial && o->epoch == v->processes[o->process].epoch ? o : NULL;
}

void vf_touch(struct ptt_verify *v, struct vf_object *o, const struct vf_event *e)
{
	if (unlikely(o->refused.id))
		vf_settle_refusal(v, o, e->e.ts, o->refused.thread != e->e.thread);
	o->events++;
	if (o->last_thread != e->thread) {
		o->other_ts = o->last_ts;
		o->last_thread = e->thread;
	}
	o->last_ts = e->e.ts;
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
