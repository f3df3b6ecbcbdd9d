/* SPDX-License-Identifier: MIT */
/* handover.h - reports to ThreadSanitizer what it cannot see: chunks and entries pass from thread to thread by way of the recorder. */
/*
 * A thread that ends leaves its chunk and its entry to the recorder, which is another process; the thread that gets them next finds
 * them cleared. Between the two threads nothing passes within their process, so the sanitizer takes it for a race. To
 * suppress the report is no cure: the suppressed report, too, is made with the sanitizer's locks held, by functions that
 * are cancellation points. Nothing of this exists in other builds.
 *
 * A forked child has a point of its own: another thread may have been inside the sanitizer with the parent's just then, and
 * its lock on it is held in the child for good.
 */
#ifndef PTT_HANDOVER_H
#define PTT_HANDOVER_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

#include "session.h"

#define PTT_HANDOVER_POINTS 64u

extern uint64_t ptt_handover_point[PTT_HANDOVER_POINTS] __attribute__((visibility("hidden")));

/* ptt_leave_to_others - all that this thread has written is done; ptt_take_from_others - and may be taken over. */
static inline void ptt_leave_to_others(void)
{
	__tsan_release(&ptt_handover_point[ptt_session.pid % PTT_HANDOVER_POINTS]);
}

static inline void ptt_take_from_others(void)
{
	__tsan_acquire(&ptt_handover_point[ptt_session.pid % PTT_HANDOVER_POINTS]);
}
#else
static inline void ptt_leave_to_others(void)
{
}

static inline void ptt_take_from_others(void)
{
}
#endif

#endif
