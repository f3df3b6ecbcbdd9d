/* SPDX-License-Identifier: MIT */
/* ring.c - the default handler: events go to per-thread buffers in shared memory, which a collector drains. */
#define NPTL_TRACE_IMPLEMENTATION
#include <stdbool.h>
#include <string.h>

#include "origin/call_site.h"
#include "origin/module_log.h"
#include "writer/readings.h"
#include "catalog.h"
#include "joining.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "ring_stack.h"
#include "writer/writer.h"
#include "origin/site.h"
#include "writer/taker.h"

#define EXPORT __attribute__((visibility("default")))

#define ID(domain, number) ((uint32_t)(domain) << 6 | (uint32_t)(number))

/* This handler calls nothing that is traced. */
EXPORT extern const int nptl_trace_handler_reentrant;
EXPORT const int nptl_trace_handler_reentrant = 1;

/* By event id, NULL where it is none. */
static const struct ptt_event_type *types[1024];

/* By event id: what it does to its object, enum ptt_taking. */
static int8_t takings[1024];

/* The same as far as it decides about the short way; negative: never that. */
static int8_t ways[1024];

/* The same: does a wait begin or end with it, or the thread? A reading that belongs to it is whole, but see need_of(). */
enum bound { NO_BOUND, BEGINS_WAIT, TAKES, ENDS };
static uint8_t bounds[1024];

/* The calling thread's last event of these began a wait. */
static __thread bool in_wait __attribute__((tls_model("initial-exec")));

/* Its last reading was behind a wait for a lock, and may not have been whole; so many of the next ones of these will be. */
static __thread bool owes_of_wait __attribute__((tls_model("initial-exec")));
static __thread uint8_t whole_takes __attribute__((tls_model("initial-exec")));

static bool attached;

static enum ptt_taking taking_of(const struct ptt_event_type *type)
{
	uint32_t domain = type->id >> 6;
	bool lock = domain == NPTL_DOMAIN_MUTEX || domain == NPTL_DOMAIN_RWLOCK;

	if (strncmp(type->role, "acquire", 7) == 0) {
		/* a post by a thread that never takes leaves no mark, and a spin lock does not say whether it is shared */
		if (!lock)
			return PTT_TAKING_UNKNOWN;
		if (domain == NPTL_DOMAIN_MUTEX)
			return PTT_TAKING_MUTEX;
		return strcmp(type->role, "acquire-shared") == 0 ? PTT_TAKING_READ : PTT_TAKING_WRITE;
	}
	if (lock && strcmp(type->role, "release") == 0)
		return PTT_TAKING_RELEASE;
	return lock && strcmp(type->role, "init") == 0 ? PTT_TAKING_INIT : PTT_TAKING_NONE;
}

static bool is_one_of(const char *role, const char *const *roles)
{
	for (; *roles; roles++)
		if (strcmp(role, *roles) == 0)
			return true;
	return false;
}

static enum bound bound_of(const struct ptt_event_type *type)
{
	static const char *const begins[] = {"wait", "wait-in", "sleep-in", NULL};
	static const char *const ends[] = {"wait-out", "sleep-out", "begin", "end", NULL};

	if (is_one_of(type->role, begins))
		return BEGINS_WAIT;
	/* an acquisition that has fields comes after a wait; nobody waits for a thread that has a unit of a semaphore */
	if (strncmp(type->role, "acquire", 7) == 0 && type->field_count)
		return type->id >> 6 == NPTL_DOMAIN_SEM ? ENDS : TAKES;
	if (is_one_of(type->role, ends) || type->id == ID(NPTL_DOMAIN_PROCESS, NPTL_EV_PROCESS_EXIT))
		return ENDS;
	return NO_BOUND;
}

static void choose_ways(void)
{
	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		const struct ptt_event_type *type = &ptt_event_types[i];
		uint32_t id = type->id;

		types[id] = type;
		takings[id] = (int8_t)taking_of(type);
		bounds[id] = (uint8_t)bound_of(type);
		ways[id] = bounds[id] || ptt_stack_needs_look(id) ? PTT_TAKING_LOOK : takings[id];
	}
}

EXPORT void nptl_trace_init(char **args)
{
	int err;

	if (attached && ptt_ring_is_in(args[0])) {
		err = ptt_ring_fork_child(true);
	} else if (attached) {
		err = ptt_ring_rejoin(args[0]);
	} else if (!args[0] || !args[0][0]) {
		ptt_refuse("ring", args, "no session directory given (start the program with ptt record)", 0);
		return;
	} else {
		err = ptt_ring_attach(args[0]);
		ptt_stack_choose();
		choose_ways();
	}
	attached = err == 0;
	ptt_joined("ring", args, err);
}

EXPORT void nptl_trace_handler_module(const struct nptl_trace_module *module)
{
	if (module)
		ptt_ring_note_module(module);
	else
		ptt_ring_forget_sites();
}

EXPORT void nptl_trace_fini(void)
{
	ptt_ring_detach();
}

/* Every acquisition must leave its mark, also one that is stamped behind a fence anyway. */
static void note_taking(uint32_t id, uint64_t object)
{
	if (takings[id])
		ptt_taker_mark(takings[id], object & PTT_OBJECT_MASK, ptt_ring_self);
}

/* A site in a wrapper, where the program's own could not be found: known by another name than one that is its own. */
#define IN_WRAPPER (UINT64_C(1) << 63)

/* The number of a call site that is not where its hash points. That of a wrapper stands for another one each time. */
static __attribute__((noinline)) uint64_t number_of_other_site(void *site)
{
	uint64_t address = (uint64_t)(uintptr_t)site;
	void *outer = ptt_outer_site(site);

	if (outer == PTT_NO_SITE)
		return PTT_SITE_NONE;
	if (outer)
		address = outer == site ? address | IN_WRAPPER : (uint64_t)(uintptr_t)outer;
	return ptt_ring_site(address);
}

static inline uint64_t number_of_site(void *site)
{
	uint64_t address = (uint64_t)(uintptr_t)site;

	return __builtin_expect(ptt_ring_knows_site(address), 1) ? PTT_SITE_HASH(address) : number_of_other_site(site);
}

static uint64_t place(const struct nptl_trace_param *param)
{
	return ((uint64_t)(uintptr_t)param->object & PTT_OBJECT_MASK) | number_of_site(param->site) << PTT_SITE_SHIFT;
}

/* Cut @size bytes into continuation slots of 14. Return: how many. */
static uint32_t cut_pieces(struct ptt_slot *slot, const char *data, size_t size)
{
	uint32_t count = 0;

	for (; size; count++) {
		size_t part = size < PTT_PIECE_SIZE ? size : PTT_PIECE_SIZE;
		char *to = (char *)&slot[count];

		memset(to, 0, sizeof(slot[count]));
		memcpy(to + 2, data, part);
		data += part;
		size -= part;
	}
	return count;
}

/* Mark the continuation slots of an event, each with how many of them still follow. */
static void mark(struct ptt_slot *slot, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint32_t left = count - 1 - i;

		slot[i].w0 = (slot[i].w0 & ~UINT64_C(0xffff)) | PTT_ID_MORE | (left < 63 ? left : 63) << PTT_ID_BITS;
	}
}

/*
 * Nearly all events have few slots. A frame that held the longest one would be too large for the stacks of some signal
 * handlers; so each is put by a function whose frame fits it.
 */
#define FEW_SLOTS 24u

static uint32_t pieces(size_t size)
{
	return (uint32_t)((size + PTT_PIECE_SIZE - 1) / PTT_PIECE_SIZE);
}

/* An event with fields: its parameter struct has the shape of the slots, variable data of @kept bytes follows it. */
static inline __attribute__((always_inline)) void put_fields(uint32_t id, uint32_t fixed, const struct nptl_trace_param *param,
							     size_t kept, struct ptt_slot *slot)
{
	const char *more = (const char *)(param + 1);
	uint32_t count = fixed;

	memcpy(slot, more, count * sizeof(*slot));
	if (kept)
		count += cut_pieces(slot + count, more + count * sizeof(*slot), kept);
	mark(slot, count);
	note_taking(id, (uint64_t)(uintptr_t)param->object);
	count += ptt_stack_slot(id, (uint64_t)(uintptr_t)param->object & PTT_OBJECT_MASK, param->site, slot + count);
	ptt_ring_put_slow(id, place(param), slot, count, true);
}

static __attribute__((noinline)) void put_many_fields(uint32_t id, uint32_t fixed, const struct nptl_trace_param *param,
						      size_t kept)
{
	struct ptt_slot slot[PTT_EVENT_SLOTS_MAX];

	put_fields(id, fixed, param, kept, slot);
}

static __attribute__((noinline)) void put_long(uint32_t id, const struct nptl_trace_event *event)
{
	const struct ptt_event_type *type = types[id];
	const struct nptl_trace_param *param = event->param;
	size_t left = event->param_size - sizeof(*param), kept = 0;
	struct ptt_slot slot[FEW_SLOTS];

	if (!type || left < type->slots * sizeof(struct ptt_slot))
		return;
	left -= type->slots * sizeof(struct ptt_slot);
	if (type->has_bytes)
		kept = left < PTT_BYTES_MAX ? left : PTT_BYTES_MAX;
	if (kept && type->slots + pieces(kept) + 1 > FEW_SLOTS)
		put_many_fields(id, type->slots, param, kept);
	else
		put_fields(id, type->slots, param, kept, slot);
}

static inline __attribute__((always_inline)) void put_user_slots(const struct nptl_trace_event *event, size_t kept,
								 void *site, struct ptt_slot *slot)
{
	struct nptl_trace_param param = {.site = site};
	struct nptl_trace_user head = {
		.user_domain = (uint8_t)event->domain,
		.user_event = (uint8_t)event->event,
		.size = event->param ? (uint32_t)event->param_size : 0,
		.data_pieces = pieces(kept),
	};
	uint32_t count;

	memcpy(slot, (const char *)&head + sizeof(param), sizeof(*slot));
	count = 1 + cut_pieces(slot + 1, event->param, kept);
	mark(slot, count);
	count += ptt_stack_slot(ID(NPTL_DOMAIN_USER, NPTL_EV_USER), 0, site, slot + count);
	ptt_ring_put_slow(ID(NPTL_DOMAIN_USER, NPTL_EV_USER), place(&param), slot, count, true);
}

static __attribute__((noinline)) void put_small_user(const struct nptl_trace_event *event, size_t kept, void *site)
{
	struct ptt_slot slot[FEW_SLOTS];

	put_user_slots(event, kept, site, slot);
}

static __attribute__((noinline)) void put_large_user(const struct nptl_trace_event *event, size_t kept, void *site)
{
	struct ptt_slot slot[PTT_EVENT_SLOTS_MAX];

	put_user_slots(event, kept, site, slot);
}

/* An event of the program, whose parameters are its own affair. */
static void put_user(const struct nptl_trace_event *event, void *site)
{
	size_t size = event->param ? event->param_size : 0;
	size_t kept = size < PTT_BYTES_MAX ? size : PTT_BYTES_MAX;

	if (1 + pieces(kept) + 1 <= FEW_SLOTS)
		put_small_user(event, kept, site);
	else
		put_large_user(event, kept, site);
}

static __attribute__((noinline)) void put_with_stack(uint64_t id, uint64_t w1, void *site, bool fence)
{
	struct ptt_slot stack;
	uint32_t count = ptt_stack_find((uint32_t)id, w1 & PTT_OBJECT_MASK, site, &stack);

	if (count)
		ptt_ring_put_slow(id, w1, &stack, count, fence);
	else
		ptt_ring_put1(ptt_ring_self, id, w1, fence);
}

/* One whose fence is decided, and that may have a stack. */
static inline __attribute__((always_inline)) void put_fenced(uint64_t id, uint64_t w1, void *site, bool fence)
{
	if (__builtin_expect(ptt_stack_may_follow((uint32_t)id, w1 & PTT_OBJECT_MASK), 0))
		return put_with_stack(id, w1, site, fence);
	ptt_ring_put1(ptt_ring_self, id, w1, fence);
}

/* One that changes what is known of the object's last taker. */
static __attribute__((noinline)) void put_changing(uint64_t id, uint64_t w1, void *site)
{
	put_fenced(id, w1, site, ptt_taker_change(takings[id], w1 & PTT_OBJECT_MASK, ptt_ring_self));
}

/*
 * A thread that has just taken a lock keeps others waiting while it reads. So there the rest may be owed until its next wait
 * begins, and says the same if the thread keeps its processor until then. A thread that did not keep it, or had not released the lock,
 * is likely to do so again: its next readings are whole.
 */
#define WHOLE_TAKES 32u

static enum ptt_reading_need need_of(uint32_t id)
{
	uint8_t left = whole_takes;

	if (bounds[id] == TAKES && !left)
		return PTT_READING_SPARING;
	if (bounds[id] == TAKES)
		whole_takes = left - 1;
	/* in a wait, too: an event there can be about the mutex of a condition */
	if (bounds[id] || in_wait)
		return PTT_READING_WHOLE;
	return takings[id] == PTT_TAKING_RELEASE ? PTT_READING_HELD : PTT_READING_LIMITED;
}

/* Says before an event that its thread has lost the processor. Return: it is the thread's first, with which its life begins. */
static bool read_before(uint32_t id)
{
	enum ptt_reading_need need;
	int tries = 0;

	if (ptt_ring_is_nowhere(ptt_ring_self))
		return true;
	/* a wait for a condition begins before its mutex is released */
	if (owes_of_wait && ptt_reading_is_owed && (!ptt_processor_kept() || id >> 6 == NPTL_DOMAIN_COND))
		whole_takes = WHOLE_TAKES;
	need = need_of(id);
	owes_of_wait = need == PTT_READING_SPARING;
	/*
	 * What is lost between a reading and the time stamp of the event would count as the time behind the event. In between, a
	 * signal handler may have had a reading that is not whole.
	 */
	do
		ptt_reading_put(need);
	while ((!ptt_processor_kept() || (need == PTT_READING_WHOLE && ptt_reading_is_owed)) && ++tries < PTT_READING_TRIES);
	return false;
}

/* An event that bounds a wait, or the thread: also one whose thread has kept the processor gets the reading that it is owed. */
static __attribute__((noinline)) void before_bound(uint32_t id)
{
	if (ptt_reading_is_owed && bounds[id] != TAKES)
		read_before(id);
	in_wait = bounds[id] == BEGINS_WAIT;
}

/* One whose taker is not known to be the last one too, or that is stamped behind a fence, or may have a stack, or bounds a wait. */
static __attribute__((noinline)) void put_marked(uint64_t id, uint64_t w1, void *site)
{
	bool fence;

	if (__builtin_expect(bounds[id], 0))
		before_bound((uint32_t)id);
	if (!ptt_taker_knows(takings[id], w1 & PTT_OBJECT_MASK, &fence))
		return put_changing(id, w1, site);
	put_fenced(id, w1, site, fence);
}

/* An event one slot long. */
static inline __attribute__((always_inline)) void put_one(uint64_t id, uint64_t object, uint64_t number_of_site, void *site)
{
	struct ptt_thread *self = ptt_ring_self;
	int way = ways[id];

	if (way && __builtin_expect(way < 0 || !ptt_taker_is_known(object, self), 0))
		return put_marked(id, object | number_of_site << PTT_SITE_SHIFT, site);
	ptt_ring_put1(self, id, object | number_of_site << PTT_SITE_SHIFT, false);
}

/* One whose site is not where its hash points, or is new, or in a wrapper. */
static __attribute__((noinline)) void put_other_site(uint64_t id, uint64_t object, void *site)
{
	put_one(id, object, number_of_other_site(site), site);
}

/* And behind its first one, from where on it is asked. */
static void read_behind(bool first)
{
	if (first && !ptt_ring_is_nowhere(ptt_ring_self))
		ptt_reading_put(PTT_READING_WHOLE);
}

static __attribute__((cold, noinline)) void put_uncommon(struct nptl_trace_event event)
{
	uint32_t id = ID((uint8_t)event.domain, (uint8_t)event.event) & PTT_ID_MASK;
	bool first = false;

	if (event.source == NPTL_TRACE_SOURCE_PROGRAM) {
		put_user(&event, ptt_upcalls.user_site());
		return;
	}
	/* what the thread has run in all is known by its end */
	if (!ptt_processor_kept() || id == ID(NPTL_DOMAIN_THREAD, NPTL_EV_THREAD_END))
		first = read_before(id);
	if (bounds[id])
		before_bound(id);
	put_long(id, &event);
	read_behind(first);
	switch (id) {
	case ID(NPTL_DOMAIN_THREAD, NPTL_EV_THREAD_END):
		ptt_ring_thread_end();
		break;
	case ID(NPTL_DOMAIN_PROCESS, NPTL_EV_PROCESS_EXEC):
		ptt_ring_exec(true);
		break;
	case ID(NPTL_DOMAIN_PROCESS, NPTL_EV_PROCESS_EXEC_FAILED):
		ptt_ring_exec(false);
		break;
	case ID(NPTL_DOMAIN_HANDLER, NPTL_EV_EVENTS_LOST):
		ptt_ring_lost(((const struct nptl_trace_events_lost *)(const void *)event.param)->count);
		break;
	}
}

/* An event without fields. */
static inline __attribute__((always_inline)) void put_plain(uint64_t id, void *object, void *site)
{
	uint64_t place = (uint64_t)(uintptr_t)object & PTT_OBJECT_MASK;
	uint64_t address = (uint64_t)(uintptr_t)site;

	if (__builtin_expect(!ptt_ring_knows_site(address), 0))
		return put_other_site(id, place, site);
	put_one(id, place, PTT_SITE_HASH(address), site);
}

/* The thread has not kept the processor since its previous event, or this is its first. */
static __attribute__((cold, noinline)) void put_switched(uint64_t id, void *object, void *site)
{
	bool first = read_before((uint32_t)id);

	put_plain(id, object, site);
	read_behind(first);
}

static inline __attribute__((always_inline)) void put_kept(uint64_t id, void *object, void *site)
{
	if (__builtin_expect(!ptt_processor_kept(), 0))
		return put_switched(id, object, site);
	put_plain(id, object, site);
}

/* The one common case, in as few instructions as it can be: see what ptt_ring_put1() says of calls in tail position. */
EXPORT void nptl_trace_handler_getplain(void *object, void *site, unsigned int domain, unsigned int event)
{
	put_kept(ID(domain, event), object, site);
}

EXPORT void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
	const struct nptl_trace_param *param = event.param;

	if (event.source != NPTL_TRACE_SOURCE_NPTL || event.param_size != sizeof(*param))
		return put_uncommon(event);
	put_kept(ID((uint8_t)event.domain, (uint8_t)event.event), param->object, param->site);
}
