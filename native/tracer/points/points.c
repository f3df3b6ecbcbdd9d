/* SPDX-License-Identifier: MIT */
/* points.c - turns the trace points inside a trace-enabled thread library into events. */
/*
 * No event of a thread may come before its begin or after its end: thread ids are reused, and only these two events
 * tell threads apart. A thread made by pthread_create() begins in the trampoline of thread.c, and ends here, in its
 * last instructions. A thread that was made past the hooks also begins here.
 */
#include <string.h>

#include "points.h"
#include "thread.h"

static __thread struct {
	const void *lock; /* the low-level lock that this thread waits for */
	uint64_t began;
	uint32_t locks; /* low-level locks that this thread holds, for handlers that use the C library */
	bool muted;
} inside INITIAL_EXEC;

void ptt_mute_points(bool mute)
{
	inside.muted = mute;
}

/*
 * Does the point lie inside a low-level lock of the library? A handler that uses the C library must not be called
 * there: it might take the same lock again, and wait for itself. So such handlers get no events of these points.
 */
static bool locks_the_library(unsigned int point)
{
	switch (point) {
	case NPTL_POINT_lll_taken:
	case NPTL_POINT_lll_tried:
	case NPTL_POINT_lll_waited:
		inside.locks++;
		return true;
	case NPTL_POINT_lll_free:
		/* the lock may have been taken before the recording */
		inside.locks -= inside.locks > 0;
		return true;
	case NPTL_POINT_lll_wait:
		return true;
	}
	return inside.locks > 0;
}

/* ------------------------------------------------------------ low-level locks */

/*
 * Locks with a reported purpose, by a hash of their addresses. If another lock takes the place, the purpose is
 * reported again.
 */
#define REPORTED_BITS 12
static uintptr_t reported[1u << REPORTED_BITS];

void ptt_forget_purposes(void)
{
	memset(reported, 0, sizeof(reported));
}

/* Report the purpose once for each lock, so that the events of its use need no field for it. */
static void report_purpose(const void *lock, unsigned long purpose, void *site)
{
	uint64_t hash = (uint64_t)(uintptr_t)lock * UINT64_C(0x9e3779b97f4a7c15);
	uintptr_t *place = &reported[hash >> (64 - REPORTED_BITS)];

	/* relaxed: if two threads both report it, that does no harm */
	if (likely(__atomic_load_n(place, __ATOMIC_RELAXED) == (uintptr_t)lock) || purpose == NPTL_TRACE_LLL_OTHER)
		return;
	__atomic_store_n(place, (uintptr_t)lock, __ATOMIC_RELAXED);
	EMIT_WITH(LLL, LLL_PURPOSE, lll_purpose, lock, site, .purpose = (uint16_t)purpose);
}

static void lll_wait(const void *lock, unsigned long purpose, void *site)
{
	EMIT_WITH(LLL, LLL_WAIT, lll_wait, lock, site, .purpose = (uint16_t)purpose);
	inside.lock = lock;
	inside.began = ptt_now_ns();
}

static void lll_waited(const void *lock, void *site)
{
	/* the begin is missing if the level was changed, or if a signal handler waited meanwhile */
	uint64_t wait_ns = inside.lock == lock ? ptt_now_ns() - inside.began : 0;

	inside.lock = NULL;
	EMIT_WITH(LLL, LLL_TAKEN_WAITED, lll_taken_waited, lock, site, .result = 0, .wait_ns = wait_ns);
}

static void report_lll(unsigned int point, const void *lock, unsigned long purpose, void *site)
{
	if (!must_trace(LLL, LLL_TAKEN))
		return;
	report_purpose(lock, purpose, site);
	switch (point) {
	case NPTL_POINT_lll_taken:
		EMIT(LLL, LLL_TAKEN, lock, site);
		break;
	case NPTL_POINT_lll_tried:
		EMIT(LLL, LLL_TAKEN_TRIED, lock, site);
		break;
	case NPTL_POINT_lll_free:
		EMIT(LLL, LLL_FREE, lock, site);
		break;
	case NPTL_POINT_lll_wait:
		lll_wait(lock, purpose, site);
		break;
	default:
		lll_waited(lock, site);
	}
}

/* ------------------------------------------------------------ points of the table */

static void emit(const struct ptt_point_event *event, const void *object, unsigned long a, unsigned long b, void *site)
{
	struct {
		struct nptl_trace_param head;
		char slot[PTT_SLOT_SIZE];
	} param;
	const uint64_t value[] = {(uintptr_t)object, a, b};
	uint8_t i;

	param.head.object = event->of_self ? (void *)pthread_self() : (void *)(uintptr_t)object;
	param.head.site = site;
	memset(param.slot, 0, sizeof(param.slot));
	/* the low bytes come first: all processors that PTT runs on are little endian */
	for (i = 0; i < event->fields; i++)
		memcpy((char *)&param + event->field[i].offset, &value[event->field[i].from], event->field[i].size);
	ptt_send((char)event->domain, (char)event->number, &param, sizeof(param.head) + event->slots * (size_t)PTT_SLOT_SIZE);
}

static void report_by_table(const struct ptt_point *point, const void *object, unsigned long a, unsigned long b, void *site)
{
	uint8_t i;

	for (i = 0; i < point->events; i++)
		if (ptt_level(point->event[i].domain) >= point->event[i].level)
			emit(&point->event[i], object, a, b, site);
}

EXPORT void __nptl_trace_point(unsigned int point, const void *object, unsigned long a, unsigned long b, const void *site)
{
	void *from = (void *)(uintptr_t)site;

	if (inside.muted)
		return;
	if (unlikely(point == NPTL_POINT_pthread_start)) {
		ptt_thread_starts((void *)a);
		return;
	}
	if (!ptt_thread_is_known())
		return;
	if (unlikely(point == NPTL_POINT_thread_dead)) {
		ptt_thread_dies();
		return;
	}
	if (!ptt_handler_reentrant && locks_the_library(point))
		return;
	switch (point) {
	case NPTL_POINT_lll_taken:
	case NPTL_POINT_lll_tried:
	case NPTL_POINT_lll_free:
	case NPTL_POINT_lll_wait:
	case NPTL_POINT_lll_waited:
		report_lll(point, object, a, from);
		break;
	default:
		if (point < NPTL_POINT_COUNT)
			report_by_table(&ptt_points[point], object, a, b, from);
	}
}
