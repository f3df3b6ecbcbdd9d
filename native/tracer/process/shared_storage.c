/* SPDX-License-Identifier: MIT */
/* shared_storage.c - a thread that shares its thread-local storage with a child of clone(): neither is recorded. */
/*
 * A child of clone() with CLONE_VM and without CLONE_SETTLS uses the thread-local storage of its parent thread.
 * Handlers keep the state of a thread there, so both would write to the same buffer at the same time. Nothing tells
 * when the child ends, so the thread is not recorded any more. Lost events are counted. The end of the thread, and
 * the end or exec of the process are still recorded, because only the thread itself reports them.
 */
#include <linux/sched.h>

#include "process.h"

static __thread bool shares INITIAL_EXEC;
static uint64_t lost;
static ptt_getevent_t *behind;

static bool is_always_recorded(const struct nptl_trace_event *event)
{
	if (event->source != NPTL_TRACE_SOURCE_NPTL)
		return false;
	switch (event->domain) {
	case NPTL_DOMAIN_HANDLER:
		return true;
	case NPTL_DOMAIN_THREAD:
		return event->event == NPTL_EV_THREAD_END;
	case NPTL_DOMAIN_PROCESS:
		return event->event != NPTL_EV_PROCESS_FORK && event->event != NPTL_EV_PROCESS_SPAWN;
	}
	return false;
}

static void recorded_getevent(struct nptl_trace_event event)
{
	if (!shares || is_always_recorded(&event))
		behind(event);
	else
		__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED); /* relaxed: a count */
}

bool ptt_share_storage(uint64_t flags)
{
	if (!__nptl_trace_enabled || shares || (flags & (CLONE_VM | CLONE_VFORK | CLONE_SETTLS)) != CLONE_VM)
		return false;
	/* two threads that are here at the same time store the same values */
	if (ptt_receiver.getevent != recorded_getevent) {
		behind = ptt_receiver.getevent;
		ptt_receive(recorded_getevent, NULL);
	}
	shares = true;
	return true;
}

void ptt_own_storage(void)
{
	shares = false;
}

void ptt_forget_storage(void)
{
	shares = false;
	lost = 0;
}

void ptt_report_lost(void)
{
	uint64_t count = __atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED); /* relaxed: a count */

	if (count)
		REPORT_WITH(HANDLER, EVENTS_LOST, events_lost, NULL, NULL, .cause = PTT_LOST_SHARED_STORAGE, .count = count);
}
