/* SPDX-License-Identifier: MIT */
/* ring_stack.c - the events that have their stack recorded: beginnings of waits, and events of threads that others wait for. */
#define NPTL_TRACE_IMPLEMENTATION
#include "ring_stack.h"

#include <string.h>

#include "catalog.h"
#include "handler.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "origin/call_site.h"
#include "writer/session.h"
#include "origin/site.h"

uint8_t ptt_stack_when[1024];

static bool has_role(const struct ptt_event_type *type, const char *role)
{
	return strcmp(type->role, role) == 0;
}

static enum ptt_stack_when when_of_lock(const struct ptt_event_type *type)
{
	if (has_role(type, "wait") || has_role(type, "wait-in"))
		return PTT_STACK_WAITS;
	if (has_role(type, "wait-out"))
		return PTT_STACK_WAITED;
	if (strncmp(type->role, "acquire", 7) == 0)
		return type->field_count ? PTT_STACK_WAITED : PTT_STACK_TAKES;
	if (has_role(type, "release") && type->id >> 6 == NPTL_DOMAIN_MUTEX)
		return PTT_STACK_WAKES;
	return has_role(type, "release") || has_role(type, "wake") ? PTT_STACK_RELEASES : PTT_STACK_NEVER;
}

/* Locks of Python are semaphores, and the interpreter's lock is a condition: a release posts or signals. */
static bool has_python(void)
{
	return *ptt_upcalls.python;
}

/*
 * The event may wake a thread of another process, and this process does not know the waits there. The system call takes
 * longer than finding the stack.
 */
static bool wakes_somebody(uint32_t id)
{
	return id == ID(NPTL_DOMAIN_SEM, NPTL_EV_SEM_POST_AWAITED) || id == ID(NPTL_DOMAIN_FUTEX, NPTL_EV_FUTEX_WAKE);
}

static enum ptt_stack_when when_of(const struct ptt_event_type *type, const struct ptt_segment *segment)
{
	uint32_t domain = type->id >> 6;
	enum ptt_stack_when lock = PTT_STACK_NEVER;

	/* no call of the program leads to these operations of the C library, the tracer or the kernel */
	if (domain == NPTL_DOMAIN_LLL || domain == NPTL_DOMAIN_HANDLER || domain == NPTL_DOMAIN_PROCESS || type->level > 3 ||
	    has_role(type, "begin") || has_role(type, "end"))
		return PTT_STACK_NEVER;
	if (segment->stack_all || wakes_somebody(type->id))
		return PTT_STACK_ALWAYS;
	if (domain == NPTL_DOMAIN_MUTEX || domain == NPTL_DOMAIN_RWLOCK ||
	    ((domain == NPTL_DOMAIN_SEM || domain == NPTL_DOMAIN_COND) && has_python()))
		lock = when_of_lock(type);
	if (lock != PTT_STACK_NEVER)
		return lock;
	/* a lock in Python is no variable, so its name is the place of its creation */
	if (domain == NPTL_DOMAIN_SEM && has_role(type, "init") && has_python())
		return PTT_STACK_ALWAYS;
	/* events of Python programs always: a Python function calls through ctypes */
	if (domain == NPTL_DOMAIN_USER && (segment->stack_user || has_python()))
		return PTT_STACK_ALWAYS;
	return has_role(type, "wait") || has_role(type, "wait-in") || has_role(type, "create") || has_role(type, "error") ?
		       PTT_STACK_ALWAYS : PTT_STACK_NEVER;
}

void ptt_stack_choose(void)
{
	const struct ptt_segment *segment = ptt_session.segment;

	for (unsigned int i = 0; segment && segment->stack_depth && i < ptt_event_type_count; i++)
		ptt_stack_when[ptt_event_types[i].id] = (uint8_t)when_of(&ptt_event_types[i], segment);
}

bool ptt_stack_needs_look(uint32_t id)
{
	uint32_t domain = id >> 6;

	/* posts and signals leave no mark in the table of takers, as other releases do */
	return ptt_stack_when[id] == PTT_STACK_ALWAYS ||
	       (ptt_stack_when[id] == PTT_STACK_RELEASES && (domain == NPTL_DOMAIN_SEM || domain == NPTL_DOMAIN_COND));
}

/* A lock that the calling thread is about to try, and the number of its stack, found before it has the lock; or PTT_STACK_NONE. */
static __thread struct {
	uint64_t object; /* 0: none */
	void *site;
	uint32_t stack;
} tried __attribute__((tls_model("initial-exec")));

static void before_lock(const void *object, void *site)
{
	uint64_t at = (uint64_t)(uintptr_t)object & PTT_OBJECT_MASK;
	bool quiet;

	/* A signal handler that takes a lock between here and the end clears the object. */
	tried.object = 0;
	/* for most locks the answer comes from a cache line that all threads share, rather than from the thread's own */
	if (!ptt_contended_was(at))
		return;
	quiet = ptt_contended_is_quiet(at, (uint64_t)(uintptr_t)site);
	if (!quiet && !ptt_contended_knows(at))
		return;
	tried.object = at;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	tried.stack = !quiet && ptt_contended_is_due(at, (uint64_t)(uintptr_t)site) ? ptt_ring_stack(site) : PTT_STACK_NONE;
	tried.site = site;
}

/*
 * After the first wait for a lock, stacks of threads that take locks may be wanted. A join does not count, because every
 * program has one.
 */
static void begin_wait(uint32_t id, uint64_t object)
{
	uint32_t domain = id >> 6;

	ptt_contended_wait(object);
	/* relaxed: a thread that does not see it yet finds the stack later */
	if ((domain == NPTL_DOMAIN_MUTEX || domain == NPTL_DOMAIN_RWLOCK) &&
	    !__atomic_load_n(ptt_upcalls.before_lock, __ATOMIC_RELAXED))
		__atomic_store_n(ptt_upcalls.before_lock, before_lock, __ATOMIC_RELAXED);
}

/* The stack of an acquisition. If nobody looked for a stack before it, look for it now, with the lock held. */
static uint32_t stack_of_take(uint64_t object, void *site)
{
	uint64_t place = (uint64_t)(uintptr_t)site;
	uint32_t stack = PTT_STACK_NONE;

	if (tried.object == object && tried.site == site)
		stack = tried.stack;
	else if (ptt_contended_is_due(object, place))
		stack = ptt_ring_stack(site);
	tried.object = 0;
	ptt_contended_taken(object, place, stack != PTT_STACK_NONE);
	return stack;
}

/* The stack of an event, if it is wanted. Also counts the waiters of objects. */
static uint32_t stack_of(uint32_t id, uint64_t object, void *site)
{
	switch ((enum ptt_stack_when)ptt_stack_when[id]) {
	case PTT_STACK_NEVER:
		break;
	case PTT_STACK_ALWAYS:
		return ptt_ring_stack(site);
	case PTT_STACK_WAITS:
		begin_wait(id, object);
		return ptt_ring_stack(site);
	case PTT_STACK_WAITED:
		ptt_contended_waited(object);
		break;
	case PTT_STACK_TAKES:
		return stack_of_take(object, site);
	case PTT_STACK_RELEASES:
		return ptt_contended_release(object) ? ptt_ring_stack(site) : PTT_STACK_NONE;
	case PTT_STACK_WAKES:
		return ptt_contended_wakes(object) ? ptt_ring_stack(site) : PTT_STACK_NONE;
	}
	return PTT_STACK_NONE;
}

uint32_t ptt_stack_find(uint32_t id, uint64_t object, void *site, struct ptt_slot *slot)
{
	uint32_t stack = stack_of(id, object, site);

	if (stack == PTT_STACK_NONE)
		return 0;
	*slot = (struct ptt_slot){.w0 = PTT_ID_STACK, .w1 = stack};
	return 1;
}
