/* SPDX-License-Identifier: MIT */
/* objects.c - objects by address: their generations, and memory that several processes have mapped. */
#include "hot.h"

/* Numbers of processes are below this number. Objects in shared memory belong to numbers from here on. */
#define SHARED_SPACE UINT32_C(0x80000000)
#define FILES (SHARED_SPACE - 2) /* the number of the memory that holds objects for files: the same in all processes */

/* ---- shared memory ---- */

/* The first range with an end after an address. */
static uint32_t range_behind(const struct tk_process *p, uint64_t address)
{
	uint32_t low = 0, high = p->range_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (p->ranges[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Adds a range; it replaces the parts of other ranges that it covers. Return: 0 or -ENOMEM. */
static int put_range(struct tk_process *p, struct tk_range range)
{
	uint32_t from = range_behind(p, range.start), to = from, count = 0;
	struct tk_range part[3];

	if (rd_array_reach((void **)&p->ranges, &p->range_room, p->range_count + 1, sizeof(range)) < 0)
		return -ENOMEM;
	while (to < p->range_count && p->ranges[to].start < range.end)
		to++;
	if (from < to && p->ranges[from].start < range.start)
		part[count++] = (struct tk_range){ p->ranges[from].start, range.start, p->ranges[from].share };
	part[count++] = range;
	if (from < to && p->ranges[to - 1].end > range.end)
		part[count++] = (struct tk_range){ range.end, p->ranges[to - 1].end, p->ranges[to - 1].share };
	memmove(&p->ranges[from + count], &p->ranges[to], (p->range_count - to) * sizeof(range));
	memcpy(&p->ranges[from], part, count * sizeof(range));
	p->range_count += count - (to - from);
	return 0;
}

static int make_range(struct tracker *t, uint32_t share)
{
	const struct tk_share *s = TK_SHARE(t, share);

	return put_range(TK_PROCESS(t, s->process), (struct tk_range){ s->start, s->end, share });
}

int ptt_tracker_share(struct tracker *t, uint32_t process, uint64_t start, uint64_t end, uint32_t memory, uint64_t offset)
{
	uint32_t number;

	if (end <= start || memory >= FILES)
		return -EINVAL;
	if (tk_process_reach(t, process) < 0)
		return -ENOMEM;
	number = rd_pool_new(&t->shares, &t->error);
	if (!number)
		return t->error;
	*TK_SHARE(t, number) = (struct tk_share){ start, end, offset, process, memory };
	return make_range(t, number);
}

void tk_make_ranges(struct tracker *t)
{
	for (uint32_t i = 0; i < t->process_count; i++) {
		TK_PROCESS(t, i)->ranges = NULL;
		TK_PROCESS(t, i)->range_count = TK_PROCESS(t, i)->range_room = 0;
	}
	for (uint32_t i = 1; i < t->shares.count; i++)
		if (tk_process_reach(t, TK_SHARE(t, i)->process) < 0 || make_range(t, i) < 0)
			t->error = -ENOMEM;
}

uint32_t tk_share_at(const struct tracker *t, uint32_t process, uint64_t address)
{
	const struct tk_process *p = TK_PROCESS(t, process);
	uint32_t at = range_behind(p, address);

	return at < p->range_count && p->ranges[at].start <= address ? p->ranges[at].share : 0;
}

/* Replaces process and address of an object in shared memory by the number of the memory and the offset in it. */
static void place_of(const struct tracker *t, uint32_t kind, uint32_t *process, uint64_t *address)
{
	const struct tk_share *s;

	*address &= PTT_OBJECT_MASK;
	/* a futex is a word with an even address; an odd address stands for a file */
	if (kind == PTT_KIND_FUTEX && *address & 1 && !t->apart) {
		*process = SHARED_SPACE | FILES;
		return;
	}
	if (likely(!TK_PROCESS(t, *process)->range_count) || t->apart)
		return;
	s = TK_SHARE(t, tk_share_at(t, *process, *address));
	if (!s->end)
		return;
	*process = SHARED_SPACE | s->memory;
	*address = *address - s->start + s->offset;
}

/* ---- objects ---- */

uint32_t tk_known_object(const struct tracker *t, uint32_t process, uint32_t kind, uint64_t address)
{
	place_of(t, kind, &process, &address);
	return tk_map_get(&t->object_of, tk_key(address, kind), process);
}

static uint32_t object_new(struct tracker *t, uint32_t process, uint32_t kind, uint64_t address, int64_t ts,
			   uint32_t before)
{
	uint32_t number = tk_new(t, &t->objects, &t->layout->object);
	struct ptt_track_object *o = TK_OBJECT(t, number);

	if (!number)
		return 0;
	o->address = address & PTT_OBJECT_MASK;
	o->process = process;
	o->kind = kind;
	o->first_ns = ts;
	o->generation = before ? TK_OBJECT(t, before)->generation + 1 : 1;
	o->before = before;
	o->process_next = TK_PROCESS(t, process)->objects;
	TK_PROCESS(t, process)->objects = number;
	if (before)
		TK_OBJECT(t, before)->flags |= PTT_OBJECT_ENDED;
	if (t->object_made)
		t->object_made(t, number);
	return number;
}

/* Adds an object at an address. @before: the object that was there, or 0 */
static uint32_t put_object(struct tracker *t, uint32_t process, uint32_t kind, uint64_t address, int64_t ts,
			   uint32_t before)
{
	uint32_t number = object_new(t, process, kind, address, ts, before);

	place_of(t, kind, &process, &address);
	tk_map_set(t, &t->object_of, tk_key(address, kind), process, number);
	return number;
}

uint32_t tk_renew(struct tracker *t, uint32_t object, const struct tk_event *e)
{
	return put_object(t, e->process, TK_OBJECT(t, object)->kind, e->object, e->ts, object);
}

struct tk_cached *tk_meet(struct tracker *t, const struct tk_event *e, uint32_t kind, uint64_t address,
			  struct tk_cached *cached)
{
	uint32_t object = tk_known_object(t, e->process, kind, address);

	if (!object || (t->renew && TK_OBJECT(t, object)->flags & PTT_OBJECT_ENDED))
		object = put_object(t, e->process, kind, address, e->ts, object);
	else if (TK_OBJECT(t, object)->process != e->process)
		TK_OBJECT(t, object)->flags |= PTT_OBJECT_SHARED;
	*cached = (struct tk_cached){ tk_key(address, kind), object, t->used ? t->used(t, e->thread, object) : 0 };
	return cached;
}

/* ---- initialization and destruction ---- */

/* Whether a semaphore has a name: only the event that opens such a semaphore lacks the field `shared`. */
static bool is_named(const struct tk_event *e)
{
	return e->id >> 6 == PTT_KIND_SEM && !tk_has(e->id, TK_SHARED);
}

uint32_t tk_init(struct tracker *t, const struct tk_event *e)
{
	uint32_t object = tk_object(t, e, e->id >> 6, e->object);
	struct ptt_track_object *o = TK_OBJECT(t, object);

	/* A process that opens a semaphore again gets the same semaphore. */
	if (is_named(e) && o->opens && !(o->flags & PTT_OBJECT_ENDED)) {
		o->opens++;
		return 0;
	}
	/* Another object was there: its memory was reused, or the program did not destroy it. */
	if (o->first_ns != e->ts || o->flags || o->holds || o->waits)
		object = tk_renew(t, object, e);
	o = TK_OBJECT(t, object);
	o->opens = is_named(e);
	o->flags |= PTT_OBJECT_MADE | (tk_number(&e->e, TK_SHARED, 0) ? PTT_OBJECT_SHARED : 0);
	return object;
}

uint32_t tk_destroy(struct tracker *t, const struct tk_event *e)
{
	uint32_t object = tk_object(t, e, e->id >> 6, e->object);
	struct ptt_track_object *o = TK_OBJECT(t, object);

	if (o->opens > 1) {
		o->opens--;
		return 0;
	}
	o->flags |= PTT_OBJECT_ENDED;
	return object;
}
