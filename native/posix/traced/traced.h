/* SPDX-License-Identifier: MIT */
/* traced.h - the calling process as a process that is traced: its identity, its control page, the streams it has mapped. */
#ifndef PX_TRACED_H
#define PX_TRACED_H

#include <pthread.h>

#include "names.h"
#include "platform/signals.h"
#include "records.h"

/* ------------------------------------------------------------ guard.c */

/*
 * px_guard - what a function of ours runs under that shares more than a stream with others: no signal handler comes
 * between, it is no cancellation point, it is alone in the process, errno stays; no fork happens meanwhile. Signals that are
 * pending already are left to the other threads: to enter and to leave may sleep.
 */
struct px_guard {
	ptt_signal_set mask;
	int cancel;
	int err;
};
void px_guard_enter(struct px_guard *guard);
void px_guard_leave(const struct px_guard *guard);

/* px_guard_fork - the calling thread forks: before it, and after it in parent and child. */
void px_guard_before_fork(void);
void px_guard_after_fork(void);

/* px_guard_reset - in a process that was cloned under the guard and has but one thread: nobody is under it. */
void px_guard_reset(void);

/* ------------------------------------------------------------ to_tracer.c: a tracer of the thread library in the same process, whose trace has user events too */

/* Set once, in the beginning. */
extern bool px_tracer_there __attribute__((visibility("hidden")));

static inline bool px_tracer_listens(void)
{
	return px_tracer_there;
}

/* px_tracer_begin - find out whether there is one. */
void px_tracer_begin(void);

/* px_tracer_event - report an event to the tracer, which is there. Safe in signal handlers. px_tracer_name - report the name of an event type. */
void px_tracer_event(const struct px_event *event);
void px_tracer_name(trace_event_id_t id, const char *name);

/* ------------------------------------------------------------ event.c */

/* The control page is mapped over this; before that, and where it cannot be, nobody traces this process. */
extern struct px_control px_control __attribute__((visibility("hidden")));

struct px_own {
	struct px_stream *stream[PX_SLOTS];  /* by slot; may be closed by now */
	struct px_stream *retired[PX_SLOTS]; /* by slot: the one before; threads may still be in it */
	struct px_names *names;
	uint64_t opened[PX_EVENT_WORDS]; /* names that this program has opened */
	uint32_t opened_count;
	uint32_t user;
	uint64_t start;
	struct px_path directory; /* empty: there is none */

	/* What the controllers of streams want to be called for; set under the guard, the latter by release. */
	void (*forked)(void); /* in the child, under no lock */
	void (*ending)(void);
};
extern struct px_own px_own __attribute__((visibility("hidden")));

/* px_own_pid - of the calling process, even if it has come by a fork that was not reported. Safe in signal handlers. */
uint32_t px_own_pid(void);

/* px_identity_begin - once, before anything else. px_identity_forked - in a child that begins with our memory. */
void px_identity_begin(void);
void px_identity_forked(void);

/* px_own_stream - the stream in @slot, mapped by now; NULL if it cannot be. Safe in signal handlers. */
struct px_stream *px_own_stream(uint32_t slot, uint64_t serial);

/* px_own_event - an event that a call from @address in the calling thread causes. */
struct px_event px_own_event(trace_event_id_t id, const void *address, const void *data, size_t size);

/* px_record - record an event, with the calling thread as its own, in each stream that wants it. Safe in signal handlers. */
void px_record(struct px_event *event);

/* ------------------------------------------------------------ cleanup.c */

/* px_clean_up - remove files of processes that are gone, and free the slots of dead controllers. Blocks on the registry. */
void px_clean_up(const struct px_path *directory);

/* px_clean_up_locked - the same, by a caller that has the registry locked. */
void px_clean_up_locked(const struct px_path *directory, struct px_registry *registry);

/* ------------------------------------------------------------ process.c */

/* px_own_follow_user - move to the directory of the effective user, if that is another one by now. Under the guard. */
void px_own_follow_user(void);

/* px_open_name - id of a name in the calling process, made if there is room. Under the guard. */
trace_event_id_t px_open_name(const char *name);

#endif
