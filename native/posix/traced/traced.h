/* SPDX-License-Identifier: MIT */
/* traced.h - the calling process as a traced process: its identity, its control page, its mapped streams. */
#ifndef PX_TRACED_H
#define PX_TRACED_H

#include <pthread.h>

#include "names.h"
#include "platform/signals.h"
#include "records.h"

/* ------------------------------------------------------------ guard.c */

/*
 * px_guard - protects functions that share more than a stream with other threads. Under the guard, one thread runs at a time;
 * it meets no signal handler, no cancellation and no fork, and keeps errno. Pending signals are left to the other threads:
 * px_guard_enter() and px_guard_leave() may sleep.
 */
struct px_guard {
	ptt_signal_set mask;
	int cancel;
	int err;
};
void px_guard_enter(struct px_guard *guard);
void px_guard_leave(const struct px_guard *guard);

/* px_guard_before_fork, _after_fork - the calling thread forks: call before the fork, and after it in parent and child. */
void px_guard_before_fork(void);
void px_guard_after_fork(void);

/* px_guard_reset - free the guard, in a single-threaded process that was cloned under the guard. */
void px_guard_reset(void);

/* ------------------------------------------------------------ to_tracer.c: a tracer of the thread library in the same process records user events too */

/* Is there a tracer? px_tracer_begin() sets it once, at the beginning. */
extern bool px_has_tracer __attribute__((visibility("hidden")));

void px_tracer_begin(void);

/*
 * px_tracer_event - report an event to the tracer; only if there is a tracer. Safe in signal handlers.
 * px_tracer_name - report the name of an event type, if there is a tracer.
 */
void px_tracer_event(const struct px_event *event);
void px_tracer_name(trace_event_id_t id, const char *name);

/* ------------------------------------------------------------ event.c */

/* The control page is mapped over this. Before that, and where it cannot be mapped, no stream traces this process. */
extern struct px_control px_control __attribute__((visibility("hidden")));

struct px_own {
	struct px_stream *stream[PX_SLOTS];  /* by slot; a stream may be closed by now */
	struct px_stream *retired[PX_SLOTS]; /* by slot: the stream before; threads may still use it */
	struct px_names *names;
	uint64_t opened[PX_EVENT_WORDS]; /* event types with a name that this program has opened */
	uint32_t opened_count;
	uint32_t user;
	uint64_t start;
	struct px_path directory; /* empty: there is no directory */

	/* Functions of the controllers of streams, set under the guard; ending is set by release. */
	void (*forked)(void); /* called in the child, under no lock */
	void (*ending)(void); /* called when the process ends */
};
extern struct px_own px_own __attribute__((visibility("hidden")));

/* px_own_pid - the id of the calling process, even after a fork that no handler reported. Safe in signal handlers. */
uint32_t px_own_pid(void);

/* px_identity_begin - call once, before anything else. px_identity_forked - call in a child that has a copy of our memory. */
void px_identity_begin(void);
void px_identity_forked(void);

/* px_own_stream - the stream in @slot, which is mapped if necessary; NULL if it cannot be mapped. Safe in signal handlers. */
struct px_stream *px_own_stream(uint32_t slot, uint64_t serial);

/* px_own_event - an event of the calling thread, for a call from @address. */
struct px_event px_own_event(trace_event_id_t id, const void *address, const void *data, size_t size);

/* px_record - record an event of the calling thread in each stream that records its type. Safe in signal handlers. */
void px_record(struct px_event *event);

/* ------------------------------------------------------------ cleanup.c */

/* px_clean_up - remove the files of dead processes, and free the slots of dead controllers. Blocks on the registry. */
void px_clean_up(const struct px_path *directory);

/* px_clean_up_locked - the same; the caller has locked the registry. */
void px_clean_up_locked(const struct px_path *directory, struct px_registry *registry);

/* ------------------------------------------------------------ process.c */

/* px_own_follow_user - move to the directory of the effective user, if the effective user has changed. Under the guard. */
void px_own_follow_user(void);

/* px_open_name - the id of the user event type @name in the calling process, made if there is room. Under the guard. */
trace_event_id_t px_open_name(const char *name);

#endif
