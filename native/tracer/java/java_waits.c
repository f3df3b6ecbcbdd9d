/* SPDX-License-Identifier: MIT */
/* java_waits.c - Java waits, as the agent in the machine reports them: events of a mutex, a condition or a futex. */
/*
 * The machine itself blocks a thread by a condition or a futex. That inner wait is a part of the Java wait, and is
 * not reported.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>

#include "java_stack.h"
#include "layout/ptt_abi.h"
#include "lock_types.h"
#include "thread.h"

static const void *object_of(const struct ptt_java_wait *wait)
{
	return (const void *)(uintptr_t)(PTT_NUMBERED_PLACE + (wait->object << PTT_NUMBERED_SHIFT));
}

static void report_type(const struct ptt_java_wait *wait, const void *object)
{
	if (wait->kind == PTT_JAVA_MONITOR)
		REPORT_WITH(MUTEX, MUTEX_TYPE, mutex_type, object, wait->site, .type = PTT_LOCK_TYPE_JAVA_MONITOR);
	else if (wait->kind == PTT_JAVA_LOCK)
		REPORT_WITH(MUTEX, MUTEX_TYPE, mutex_type, object, wait->site, .type = PTT_LOCK_TYPE_JAVA_LOCK);
	else if (wait->kind == PTT_JAVA_NOTIFY)
		REPORT_WITH(COND, COND_TYPE, mutex_type, object, wait->site, .type = PTT_LOCK_TYPE_JAVA_WAIT);
}

/* The deadline by CLOCK_REALTIME, as for a condition. */
static uint64_t deadline_of(const struct ptt_java_wait *wait)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return ptt_ns(&now) + wait->timeout_ns;
}

static bool is_for_lock(const struct ptt_java_wait *wait)
{
	return wait->kind == PTT_JAVA_MONITOR || wait->kind == PTT_JAVA_LOCK;
}

/* A park is reported as a wait for a futex that is private to the process. */
static void report_park(const struct ptt_java_wait *wait, const void *object)
{
	REPORT_WITH(FUTEX, FUTEX_WAIT_IN, futex_wait_in, object, wait->site, .op = FUTEX_WAIT_PRIVATE,
		    .lock = wait->kind == PTT_JAVA_PARK ? PTT_FUTEX_KIND_JAVA_PARK : PTT_FUTEX_KIND_JAVA_SYNC,
		    .timeout_ns = wait->timeout_ns ? (int64_t)wait->timeout_ns : -1);
}

static void report_wait(const struct ptt_java_wait *wait, const void *object)
{
	if (is_for_lock(wait))
		REPORT_WITH(MUTEX, MUTEX_WAIT, mutex_wait, object, wait->site, .owner = wait->owner,
			    .timed = wait->timeout_ns != 0);
	else if (wait->kind != PTT_JAVA_NOTIFY)
		report_park(wait, object);
	else if (wait->timeout_ns)
		REPORT_WITH(COND, COND_TIMEDWAIT_IN, cond_timedwait_in, object, wait->site, .deadline_ns = deadline_of(wait));
	else
		REPORT_WITH(COND, COND_WAIT_IN, cond_wait_in, object, wait->site, .mutex = {0});
}

static void wait_begins(struct ptt_java_wait *wait)
{
	const void *object = object_of(wait);

	wait->site = CALL_SITE;
	if (wait->fresh)
		report_type(wait, object);
	ptt_java_now = wait;
	report_wait(wait, object);
	ptt_java_now = NULL;
	wait->began = ptt_now_ns();
	ptt_in_lock++;
}

static void report_waited(const struct ptt_java_wait *wait, const void *object, int result, uint64_t ns)
{
	if (wait->kind == PTT_JAVA_NOTIFY && wait->timeout_ns)
		REPORT_WITH(COND, COND_TIMEDWAIT_OUT, cond_timedwait_out, object, wait->site, .result = result, .wait_ns = ns);
	else if (wait->kind == PTT_JAVA_NOTIFY)
		REPORT_WITH(COND, COND_WAIT_OUT, cond_wait_out, object, wait->site, .result = result, .wait_ns = ns);
	else if (!is_for_lock(wait))
		REPORT_WITH(FUTEX, FUTEX_WAIT_OUT, futex_wait_out, object, wait->site, .result = result, .wait_ns = ns);
	else if (result || wait->kind == PTT_JAVA_LOCK)
		REPORT_WITH(MUTEX, MUTEX_WAIT_END, mutex_wait_end, object, wait->site, .result = result, .wait_ns = ns);
	else if (ptt_level(NPTL_DOMAIN_MUTEX) >= NPTL_LEVEL_MUTEX_TAKEN_WAITED) {
		EMIT_WITH(MUTEX, MUTEX_TAKEN_WAITED, mutex_taken_waited, object, wait->site, .wait_ns = ns);
		ptt_held--; /* nothing reports the release */
	}
}

static void wait_ends(const struct ptt_java_wait *wait, int result)
{
	ptt_in_lock--;
	report_waited(wait, object_of(wait), result, ptt_now_ns() - wait->began);
}

static void wakes(struct ptt_java_wait *wait)
{
	const void *object = object_of(wait);

	wait->site = CALL_SITE;
	ptt_java_now = wait;
	if (is_for_lock(wait) && must_trace(MUTEX, MUTEX_FREE)) {
		EMIT(MUTEX, MUTEX_FREE, object, wait->site);
		ptt_held++; /* nothing reported the acquisition */
	} else if (!is_for_lock(wait)) {
		REPORT_WITH(FUTEX, FUTEX_WAKE, futex_wake, object, wait->site, .op = FUTEX_WAKE_PRIVATE, .count = 1);
	}
	ptt_java_now = NULL;
}

static void is_named(const char *name)
{
	if (must_trace(THREAD, THREAD_NAME))
		ptt_report_name(pthread_self(), name, strnlen(name, PTT_NAME_MAX), CALL_SITE);
}

EXPORT const struct ptt_java_tracer __nptl_trace_java = {
	.wait = wait_begins, .waited = wait_ends, .wake = wakes, .name = is_named,
};
