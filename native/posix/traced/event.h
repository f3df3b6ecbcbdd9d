/* SPDX-License-Identifier: MIT */
/* event.h - the calling process as its trace points see it: its identity, its control page, the streams it has mapped. */
#ifndef PX_EVENT_H
#define PX_EVENT_H

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

#endif
