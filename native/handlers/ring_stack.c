/* SPDX-License-Identifier: MIT */
/* ring_stack.c - which events get their stack recorded: those that begin a wait, and those of threads that are waited for. */
#define NPTL_TRACE_IMPLEMENTATION
#include "ring_stack.h"

#include <string.h>

#include "catalog.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "origin/call_site.h"
#include "writer/session.h"
#include "origin/stack.h"

uint8_t ptt_stack_when[1024];

static bool is(const struct ptt_event_type *type, const char *role)
{
	return strcmp(type->role, role) == 0;
}

static enum ptt_stack_when when_of_lock(const struct ptt_event_type *type)
{
	if (is(type, "wait") || is(type, "wait-in"))
		return PTT_STACK_WAITS;
	if (is(type, "wait-out"))
		return PTT_STACK_WAITED;
	if (strncmp(type->role, "acquire", 7) == 0)
		return type->field_count ? PTT_STACK_WAITED : PTT_STACK_TAKES;
	if (is(type, "release") && type->id >> 6 == NPTL_DOMAIN_MUTEX)
		return PTT_STACK_WAKES;
	return is(type, "release") || is(type, "wake") ? PTT_STACK_RELEASES : PTT_STACK_NEVER;
}

/* Locks of Python are semaphores, and that of the interpreter is a condition: a release posts or signals. */
static bool has_python(void)
{
	return &__nptl_trace_python && __nptl_trace_python;
}

/* Also a thread of another process, whose waits this one does not know of; the kernel's part in it takes longer than a stack. */
static bool wakes_somebody(uint32_t id)
{
	return id == (NPTL_DOMAIN_SEM << 6 | NPTL_EV_SEM_POST_AWAITED) || id == (NPTL_DOMAIN_FUTEX << 6 | NPTL_EV_FUTEX_WAKE);
}

static enum ptt_stack_when when_of(const struct ptt_event_type *type, bool all)
{
	uint32_t domain = type->id >> 6;
	enum ptt_stack_when lock = PTT_STACK_NEVER;

	/* what the C library, the tracer or the kernel does is called by no call of the program */
	if (domain == NPTL_DOMAIN_LLL || domain == NPTL_DOMAIN_HANDLER || domain == NPTL_DOMAIN_PROCESS || type->level > 3 ||
	    is(type, "begin") || is(type, "end"))
		return PTT_STACK_NEVER;
	if (all || wakes_somebody(type->id))
		return PTT_STACK_ALWAYS;
	if (domain == NPTL_DOMAIN_MUTEX || domain == NPTL_DOMAIN_RWLOCK ||
	    ((domain == NPTL_DOMAIN_SEM || domain == NPTL_DOMAIN_COND) && has_python()))
		lock = when_of_lock(type);
	if (lock != PTT_STACK_NEVER)
		return lock;
	/* no variable of a program in Python is a lock: it is known by where it was created */
	if (domain == NPTL_DOMAIN_SEM && is(type, "init") && has_python())
		return PTT_STACK_ALWAYS;
	/* a function of Python calls for it through ctypes */
	if (domain == NPTL_DOMAIN_USER && has_python())
		return PTT_STACK_ALWAYS;
	return is(type, "wait") || is(type, "wait-in") || is(type, "create") || is(type, "error") ? PTT_STACK_ALWAYS : PTT_STACK_NEVER;
}

void ptt_stack_choose(void)
{
	const struct ptt_segment *segment = ptt_session.segment;

	for (unsigned int i = 0; segment && segment->stack_depth && i < ptt_event_type_count; i++)
		ptt_stack_when[ptt_event_types[i].id] = (uint8_t)when_of(&ptt_event_types[i], segment->stack_all);
}

bool ptt_stack_needs_look(uint32_t id)
{
	uint32_t domain = id >> 6;

	/* posts and signals leave no mark as other releases do */
	return ptt_stack_when[id] == PTT_STACK_ALWAYS ||
	       (ptt_stack_when[id] == PTT_STACK_RELEASES && (domain == NPTL_DOMAIN_SEM || domain == NPTL_DOMAIN_COND));
}

/* Is the event's stack wanted? Keeps account of the objects that threads wait for. */
static bool is_wanted(enum ptt_stack_when which, uint64_t object, void *site)
{
	switch (which) {
	case PTT_STACK_NEVER:
		break;
	case PTT_STACK_ALWAYS:
		return true;
	case PTT_STACK_WAITS:
		ptt_contended_wait(object);
		return true;
	case PTT_STACK_WAITED:
		ptt_contended_waited(object);
		break;
	case PTT_STACK_TAKES:
		return ptt_contended_take(object, (uint64_t)(uintptr_t)site);
	case PTT_STACK_RELEASES:
		return ptt_contended_release(object);
	case PTT_STACK_WAKES:
		return ptt_contended_wakes(object);
	}
	return false;
}

uint32_t ptt_stack_find(uint32_t id, uint64_t object, void *site, struct ptt_slot *slot)
{
	uint32_t stack = PTT_STACK_NONE;

	if (is_wanted((enum ptt_stack_when)ptt_stack_when[id], object, site))
		stack = ptt_ring_stack(site);
	if (stack == PTT_STACK_NONE)
		return 0;
	*slot = (struct ptt_slot){.w0 = PTT_ID_STACK, .w1 = stack};
	return 1;
}
