/* SPDX-License-Identifier: MIT */
/* ring.c - the default handler: events go to per-thread buffers in shared memory, which a collector drains. */
/*
 * The path of an event:
 *
 *   function           event                                                          waits for room  system calls
 *   -----------------  -------------------------------------------------------------  --------------  ----------------------
 *   put_plain          without fields; the fast path: one slot                        no              no
 *   put_plain_shared   the same, for an object with several, or unknown, users        no              no
 *   put_plain_checked  changes the last taker of its object, may have a stack, or     yes             for the reading and the
 *                      bounds a wait                                                                  stack
 *   put_plain_slow     the thread has lost its processor, or the number of the call   yes             yes
 *                      site is not its hash
 *   put_with_fields    has fields                                                     yes             yes
 *   put_user           sent by the program                                            yes             yes
 *
 * The first two functions jump to a later one in the table, in tail position. If the buffer has no room, all functions jump
 * to ptt_ring_put_slow(). It takes the next buffer, or waits for room as the segment's policy says; both may make system
 * calls. No function of the table allocates, takes a lock, is a cancellation point or changes errno. Each may run in a
 * signal handler that interrupts another function of the table in the same thread. nptl_trace_init(), nptl_trace_fini() and
 * nptl_trace_handler_module() block and make system calls.
 */
#define NPTL_TRACE_IMPLEMENTATION
#include <stdbool.h>
#include <string.h>

#include "origin/call_site.h"
#include "origin/image_files.h"
#include "writer/readings.h"
#include "black_box.h"
#include "catalog.h"
#include "handler.h"
#include "mapping/private_segment.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "ring_stack.h"
#include "writer/writer.h"
#include "origin/site.h"
#include "writer/taker.h"

/* By event id; NULL if no event has the id. */
static const struct ptt_event_type *types[1024];

/* By event id: the effect of the event on its object, enum ptt_taking. */
static int8_t takings[1024];

/*
 * By event id: the path of an event without fields. PTT_TAKING_NONE: the fast path. PTT_TAKING_UNKNOWN: put_plain_shared().
 * PTT_TAKING_LOOK: put_plain_checked(). Others: the fast path if the thread is known to be the last taker of the object.
 */
static int8_t paths[1024];

/* By event id: does the event begin or end a wait, or a thread? The reading before such an event is whole, but see need_of(). */
enum bound { NO_BOUND, BEGINS_WAIT, TAKES, ENDS };
static uint8_t bounds[1024];

/* The calling thread's last event that bounds a wait began a wait. */
static __thread bool in_wait __attribute__((tls_model("initial-exec")));

/* The calling thread's last reading came after a wait for a lock, and may not have been whole. */
static __thread bool owes_after_wait __attribute__((tls_model("initial-exec")));

/* Number of the next readings after waits for locks that must be whole. */
static __thread uint8_t whole_readings_left __attribute__((tls_model("initial-exec")));

static bool attached;

static enum ptt_taking taking_of(const struct ptt_event_type *type)
{
	uint32_t domain = type->id >> 6;
	bool lock = domain == NPTL_DOMAIN_MUTEX || domain == NPTL_DOMAIN_RWLOCK;

	if (strncmp(type->role, "acquire", 7) == 0) {
		/* a post by a thread that never takes a unit leaves no mark, and a spin lock does not show whether processes share it */
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
	/* an acquisition with fields comes after a wait; no thread waits for a thread that has a unit of a semaphore */
	if (strncmp(type->role, "acquire", 7) == 0 && type->field_count)
		return type->id >> 6 == NPTL_DOMAIN_SEM ? ENDS : TAKES;
	if (is_one_of(type->role, ends) || type->id == ID(NPTL_DOMAIN_PROCESS, NPTL_EV_PROCESS_EXIT))
		return ENDS;
	return NO_BOUND;
}

static enum ptt_taking path_of(uint32_t id)
{
	if (bounds[id] || ptt_stack_needs_look(id))
		return PTT_TAKING_LOOK;
	return takings[id] == PTT_TAKING_UNKNOWN && ptt_stack_when[id] ? PTT_TAKING_LOOK : (enum ptt_taking)takings[id];
}

static void choose_paths(void)
{
	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		const struct ptt_event_type *type = &ptt_event_types[i];
		uint32_t id = type->id;

		types[id] = type;
		takings[id] = (int8_t)taking_of(type);
		bounds[id] = (uint8_t)bound_of(type);
		paths[id] = (int8_t)path_of(id);
	}
}

EXPORT void nptl_trace_init(char **args)
{
	int err;

	if (attached && ptt_ring_is_in(args[0])) {
		err = ptt_ring_fork_child(true);
	} else if (ptt_box_is_wanted(args)) {
		err = ptt_box_begin(args);
		ptt_stack_choose();
		choose_paths();
	} else if (attached) {
		err = ptt_ring_rejoin(args[0]);
	} else if (!args[0] || !args[0][0]) {
		ptt_refuse("ring", args, "no session directory given (start the program with ptt record)", 0);
		return;
	} else {
		err = ptt_ring_attach(args[0]);
		ptt_stack_choose();
		choose_paths();
	}
	attached = err == 0;
	if (ptt_box_is_wanted(args))
		ptt_box_began(args, err);
	else
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

/* ------------------------------------------------------------ call sites */

/* Set in the address of a site in a wrapper if the program's own call was not found, so the site is distinct from the plain site. */
#define IN_WRAPPER (UINT64_C(1) << 63)

/* The number of a call site that is not its hash. A site in a wrapper stands for a different site of the program each time. */
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

/* The second word of an event: its object and the number of its call site. */
static inline __attribute__((always_inline)) uint64_t object_and_site(uint64_t object, void *site)
{
	uint64_t address = (uint64_t)(uintptr_t)site, number = PTT_SITE_HASH(address);

	if (__builtin_expect(!ptt_ring_knows_site(address), 0))
		number = number_of_other_site(site);
	return object | number << PTT_SITE_SHIFT;
}

static inline uint64_t object_of(const void *object)
{
	return (uint64_t)(uintptr_t)object & PTT_OBJECT_MASK;
}

/* ------------------------------------------------------------ readings of the processor */

/*
 * A thread that has just taken a lock makes others wait while it reads. So there the rest of the reading may be owed until
 * the thread's next wait begins. If the thread keeps its processor until then, the late rest has the same value. If the
 * thread loses its processor, or has not released the lock, this is likely to happen again: its next readings are whole.
 */
#define WHOLE_READINGS 32u

/* Did the thread hold a lock just before the event? The count of locks includes the effect of the event. */
static bool holds_lock(uint32_t id)
{
	bool takes = takings[id] == PTT_TAKING_MUTEX || takings[id] == PTT_TAKING_READ || takings[id] == PTT_TAKING_WRITE ||
		     (takings[id] == PTT_TAKING_UNKNOWN && id >> 6 == NPTL_DOMAIN_SPIN);

	return takings[id] == PTT_TAKING_RELEASE || ptt_upcalls.held() > takes;
}

static enum ptt_reading_need need_of(uint32_t id)
{
	uint8_t left = whole_readings_left;

	if (bounds[id] == TAKES && !left)
		return PTT_READING_SPARING;
	if (bounds[id] == TAKES)
		whole_readings_left = left - 1;
	/* also within a wait: such an event may be about the mutex of a condition */
	if (bounds[id] || in_wait)
		return PTT_READING_WHOLE;
	return holds_lock(id) ? PTT_READING_HELD : PTT_READING_LIMITED;
}

/*
 * Before an event, record that its thread has lost the processor.
 * Return: true if the event is the first of its thread. The thread's life begins with it, so read_behind() makes the
 * reading.
 */
static bool read_before(uint32_t id)
{
	enum ptt_reading_need need;
	int tries = 0;

	if (ptt_ring_is_nowhere(ptt_ring_self))
		return true;
	/* a wait for a condition begins before its mutex is released */
	if (owes_after_wait && ptt_reading_is_owed && (!ptt_processor_kept() || id >> 6 == NPTL_DOMAIN_COND))
		whole_readings_left = WHOLE_READINGS;
	need = need_of(id);
	owes_after_wait = need == PTT_READING_SPARING;
	/*
	 * A loss of the processor between the reading and the time stamp of the event would count as time after the event.
	 * A signal handler in between may have made a reading that is not whole.
	 */
	do
		ptt_reading_put(need);
	while ((!ptt_processor_kept() || (need == PTT_READING_WHOLE && ptt_reading_is_owed)) && ++tries < PTT_READING_TRIES);
	return false;
}

/* After the first event of a thread: make a reading, and watch the thread's processor from now on. */
static void read_behind(bool first)
{
	if (first && !ptt_ring_is_nowhere(ptt_ring_self))
		ptt_reading_put(PTT_READING_WHOLE);
}

/* Before an event that bounds a wait or a thread: also make the reading that is owed to a thread that kept its processor. */
static void before_bound(uint32_t id)
{
	if (ptt_readings_are_partial ? bounds[id] == BEGINS_WAIT : ptt_reading_is_owed && bounds[id] != TAKES)
		read_before(id);
	in_wait = bounds[id] == BEGINS_WAIT;
	if (ptt_readings_are_partial && in_wait)
		ptt_processor_lose();
}

/* The same before the release of a lock that others wait for. */
static void before_awaited_release(void)
{
	if (ptt_readings_are_partial)
		ptt_reading_put(PTT_READING_HELD);
}

/* ------------------------------------------------------------ events without fields */

static __attribute__((noinline)) void put_plain_checked(uint64_t id, uint64_t w1, void *site)
{
	uint64_t object = w1 & PTT_OBJECT_MASK;
	struct ptt_slot stack;
	bool fence;

	if (__builtin_expect(bounds[id], 0))
		before_bound((uint32_t)id);
	fence = ptt_taker_mark(takings[id], object, ptt_ring_self);
	if (__builtin_expect(ptt_stack_slot((uint32_t)id, object, site, &stack), 0)) {
		if (takings[id] == PTT_TAKING_RELEASE)
			before_awaited_release();
		ptt_ring_put_slow(id, w1, &stack, 1, fence);
	} else {
		ptt_ring_put1(ptt_ring_self, id, w1, fence);
	}
}

static __attribute__((noinline)) void put_plain_shared(uint64_t id, uint64_t w1, void *site)
{
	uint64_t object = w1 & PTT_OBJECT_MASK;
	int path = paths[id];
	bool fence = true;

	if (path != PTT_TAKING_UNKNOWN && (path < 0 || !ptt_taker_knows((enum ptt_taking)path, object, &fence) ||
					  ptt_stack_may_follow((uint32_t)id, object)))
		return put_plain_checked(id, w1, site);
	ptt_ring_put1(ptt_ring_self, id, w1, fence);
}

/* An event of a known site, behind the reading of its thread. */
static inline __attribute__((always_inline)) void put_plain_known(uint64_t id, void *object, void *site)
{
	uint64_t at = object_of(object), w1 = at | (uint64_t)PTT_SITE_HASH((uint64_t)(uintptr_t)site) << PTT_SITE_SHIFT;
	struct ptt_thread *self = ptt_ring_self;
	int path = paths[id];

	if (path && __builtin_expect(path < 0 || !ptt_taker_is_known(at, self), 0))
		return put_plain_shared(id, w1, site);
	ptt_ring_put1(self, id, w1, false);
}

static __attribute__((noinline)) void put_plain_slow(uint64_t id, void *object, void *site)
{
	bool first = !ptt_processor_kept() && read_before((uint32_t)id);

	if (!first && ptt_ring_knows_site((uint64_t)(uintptr_t)site))
		return put_plain_known(id, object, site);
	put_plain_checked(id, object_and_site(object_of(object), site), site);
	read_behind(first);
}

static inline __attribute__((always_inline)) void put_plain(uint64_t id, void *object, void *site)
{
	if (__builtin_expect(!ptt_processor_kept(), 0) ||
	    __builtin_expect(!ptt_ring_knows_site((uint64_t)(uintptr_t)site), 0))
		return put_plain_slow(id, object, site);
	put_plain_known(id, object, site);
}

/* ------------------------------------------------------------ events with fields */

/* An event with fields: the fixed slots of its parameter struct, and variable data. */
struct fields {
	uint32_t id;
	uint32_t count;	   /* number of fixed slots of 16 bytes */
	const void *slots;
	const char *data;
	size_t size;	   /* bytes of data */
	const void *object;
	void *site;
};

static uint32_t piece_count(size_t size)
{
	return (uint32_t)((size + PTT_PIECE_SIZE - 1) / PTT_PIECE_SIZE);
}

/* Cut @size bytes into continuation slots of 14 bytes. Return: number of slots. */
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

/* Mark the continuation slots of an event, each with the number of slots that follow. */
static inline __attribute__((always_inline)) void mark_continuations(struct ptt_slot *slot, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint32_t left = count - 1 - i;

		slot[i].w0 = (slot[i].w0 & ~UINT64_C(0xffff)) | PTT_ID_MORE | (left < 63 ? left : 63) << PTT_ID_BITS;
	}
}

/* Every acquisition must leave its mark in the table of takers, even with a fenced time stamp. */
static inline __attribute__((always_inline)) void put_slots(struct fields f, struct ptt_slot *slot)
{
	uint64_t object = object_of(f.object);
	uint32_t count = f.count;

	memcpy(slot, f.slots, count * sizeof(*slot));
	if (f.size)
		count += cut_pieces(slot + count, f.data, f.size);
	mark_continuations(slot, count);
	if (takings[f.id])
		ptt_taker_mark(takings[f.id], object, ptt_ring_self);
	count += ptt_stack_slot(f.id, object, f.site, slot + count);
	ptt_ring_put_slow(f.id, object_and_site(object, f.site), slot, count, true);
}

/*
 * Nearly all events have few slots. A frame for the longest event would be too large for the stacks of some signal
 * handlers, so only this function has such a frame.
 */
#define FEW_SLOTS 24u

static __attribute__((noinline)) void put_many_slots(struct fields f)
{
	struct ptt_slot slot[PTT_EVENT_SLOTS_MAX];

	put_slots(f, slot);
}

static inline __attribute__((always_inline)) void put_fields(struct fields f)
{
	struct ptt_slot slot[FEW_SLOTS];

	/* one more slot, for the stack */
	if (__builtin_expect(f.count + piece_count(f.size) + 1 > FEW_SLOTS, 0))
		put_many_slots(f);
	else
		put_slots(f, slot);
}

/* Record an event that the program sends. PTT treats its parameters as data. */
static __attribute__((noinline)) void put_user(const struct nptl_trace_event *event)
{
	size_t size = event->param ? event->param_size : 0, kept = size < PTT_BYTES_MAX ? size : PTT_BYTES_MAX;
	struct nptl_trace_user head = {
		.user_domain = (uint8_t)event->domain,
		.user_event = (uint8_t)event->event,
		.size = (uint32_t)size,
		.data_pieces = piece_count(kept),
	};

	put_fields((struct fields){
		.id = ID(NPTL_DOMAIN_USER, NPTL_EV_USER),
		.count = 1,
		.slots = (const char *)&head + sizeof(struct nptl_trace_param),
		.data = event->param,
		.size = kept,
		.site = ptt_upcalls.user_site(),
	});
}

/* Record an event as its type says. An event that is shorter than its type, or has an unknown type, is left out. */
static __attribute__((noinline)) void put_known(uint32_t id, const struct nptl_trace_event *event)
{
	const struct nptl_trace_param *param = event->param;
	const struct ptt_event_type *type = types[id];
	size_t left = event->param_size - sizeof(*param), fixed = type ? type->slots * sizeof(struct ptt_slot) : 0;

	if (!type || left < fixed)
		return;
	put_fields((struct fields){
		.id = id,
		.count = type->slots,
		.slots = param + 1,
		.data = (const char *)(param + 1) + fixed,
		.size = !type->has_bytes ? 0 : left - fixed < PTT_BYTES_MAX ? left - fixed : PTT_BYTES_MAX,
		.object = param->object,
		.site = param->site,
	});
}

/* Does the thread need a reading that has its whole time on the processor? */
static bool is_last(uint32_t id)
{
	return id == ID(NPTL_DOMAIN_THREAD, NPTL_EV_THREAD_END) ||
	       (ptt_readings_are_partial && id == ID(NPTL_DOMAIN_PROCESS, NPTL_EV_PROCESS_EXIT));
}

static __attribute__((cold, noinline)) void put_with_fields(struct nptl_trace_event event)
{
	uint32_t id = ID((uint8_t)event.domain, (uint8_t)event.event) & PTT_ID_MASK;
	bool first = false;

	if (event.source == NPTL_TRACE_SOURCE_PROGRAM) {
		put_user(&event);
		return;
	}
	if (!ptt_processor_kept() || is_last(id))
		first = read_before(id);
	if (bounds[id])
		before_bound(id);
	put_known(id, &event);
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

/* ------------------------------------------------------------ what the tracer calls */

/* The common case, in as few instructions as possible: see ptt_ring_put1() about calls in tail position. */
EXPORT void nptl_trace_handler_getplain(void *object, void *site, unsigned int domain, unsigned int event)
{
	put_plain(ID(domain, event), object, site);
}

EXPORT void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
	const struct nptl_trace_param *param = event.param;

	if (event.source != NPTL_TRACE_SOURCE_NPTL || event.param_size != sizeof(*param))
		return put_with_fields(event);
	put_plain(ID((uint8_t)event.domain, (uint8_t)event.event), param->object, param->site);
}
