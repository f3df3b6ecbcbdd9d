/* SPDX-License-Identifier: MIT */
/* own.h - the calling process as one that is traced: its control page, the streams it has mapped, its names; and guards. */
#ifndef PX_OWN_H
#define PX_OWN_H

#include <pthread.h>
#include <signal.h>

#include "buffer.h"
#include "names.h"

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
};
extern struct px_own px_own __attribute__((visibility("hidden")));

/* px_own_pid - of the calling process, even if it has come by a fork that nobody told us of. Safe in signal handlers. */
uint32_t px_own_pid(void);

/* px_own_tid - kernel's id of the calling thread. */
uint32_t px_own_tid(void);

/* px_own_begin - once, before anything else. px_own_forked - in the child of a fork. */
void px_own_begin(void);
void px_own_forked(void);

/* px_own_stream - the stream in @slot, mapped by now; NULL if it cannot be. Safe in signal handlers. */
struct px_stream *px_own_stream(uint32_t slot, uint64_t serial);

/* px_record - record an event, with the calling thread as its own, in each stream that wants it. Safe in signal handlers. */
void px_record(struct px_event *event);

/*
 * px_guard - what a function of ours runs under that shares more than a stream with others: no signal handler comes
 * between, it is no cancellation point, it is alone in the process, errno stays; no fork happens meanwhile.
 */
struct px_guard {
	sigset_t mask;
	int cancel;
	int err;
};
void px_guard_enter(struct px_guard *guard);
void px_guard_leave(const struct px_guard *guard);

/* px_own_alone - in a process that was cloned under the guard and has but one thread: it holds nothing. */
void px_own_alone(void);

/* px_own_follow_user - move to the directory of the effective user, if that is another one by now. Under the guard. */
void px_own_follow_user(void);

/* px_open_name - id of a name in the calling process, made if there is room. Under the guard. */
trace_event_id_t px_open_name(const char *name);

/* px_streams_end - shut all streams of the process down, as its end does. px_streams_forget - in the child of a fork. */
void px_streams_end(void);
void px_streams_forget(void);

#endif
