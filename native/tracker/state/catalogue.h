/* SPDX-License-Identifier: MIT */
/* catalogue.h - the meaning of each type of event to the tracker, and access to the fields of events. */
#ifndef PTT_TRACKER_CATALOGUE_H
#define PTT_TRACKER_CATALOGUE_H

#include "../../reader/decode.h"
#include "../ptttrack.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define TK_IDS 1024u

enum tk_field {
	TK_RESULT, TK_WAIT_NS, TK_OWNER, TK_COUNT, TK_VALUE, TK_SERIAL, TK_PTHREAD, TK_MUTEX, TK_CREATOR, TK_SHARED, TK_WRITE,
	TK_CANCELLED, TK_ROUTINE, TK_START_ROUTINE, TK_DETACHED, TK_PURPOSE, TK_KIND, TK_PROTOCOL, TK_ROBUST,
	TK_PREFERENCE, TK_CLOCK, TK_POLICY, TK_PRIORITY, TK_TIMED, TK_CHILD, TK_DEADLINE, TK_LOCK, TK_SLICES, TK_RAN,
	TK_READY, TK_LOCK_TYPE, TK_CALL, TK_OP, TK_TIMEOUT, TK_PPID, TK_FIELDS,
};

enum tk_action {
	TK_IGNORE, TK_ACQUIRE, TK_ACQUIRE_SHARED, TK_RELEASE, TK_RELEASE_AWAITED, TK_WAIT, TK_WAIT_END, TK_CALL_IN, TK_CALL_OUT,
	TK_TRY_IN, TK_TRY_OUT, TK_INIT, TK_DESTROY, TK_COND_IN, TK_COND_OUT, TK_SIGNAL, TK_BROADCAST, TK_BARRIER_IN, TK_BARRIER_OUT,
	TK_BARRIER_ARRIVE, TK_SEM_TAKEN, TK_SEM_POST, TK_FUTEX_IN, TK_FUTEX_OUT, TK_FUTEX_WAKE, TK_JOIN_IN, TK_JOIN_OUT, TK_ONCE_BEGIN,
	TK_ONCE_END, TK_CREATE, TK_BEGIN, TK_END, TK_DETACH, TK_PRIORITY_SET, TK_CREATE_IN, TK_CREATE_OUT, TK_FAILED,
	TK_CONSISTENT, TK_TYPE, TK_FORK, TK_SPAWN, TK_REAPED, TK_PROCESS_START, TK_PROCESS_EXIT, TK_EXEC, TK_LEVEL,
	TK_LOST, TK_BUFFER_WAIT, TK_SCHED, TK_SCHED_UNKNOWN, TK_SLEEP_IN, TK_SLEEP_OUT,
	/* Events of the recorder about a thread: context switches in the kernel. They come last. */
	TK_SWITCHED_IN, TK_SWITCHED_OUT, TK_PREEMPTED, TK_SWITCHES_LOST, TK_ACTIONS,
};

/* How a lock was taken: at once by a plain call, at once by a try or a call with a time limit, or after a wait. */
enum tk_how { TK_PLAIN, TK_TRIED, TK_WAITED };

struct tk_field_at {
	uint8_t number; /* of the field + 1, 0 = none */
	uint8_t offset; /* in slots */
	uint8_t type;
};

/* An element by event id; constant after the first tk_learn_catalogue(). */
struct tk_meaning {
	const struct ptt_event_type *type;
	uint8_t action;
	uint8_t level;
	uint8_t how;
	struct tk_field_at field[TK_FIELDS];
};

extern struct tk_meaning tk_meanings[TK_IDS];

/* tk_learn_catalogue - fills tk_meanings. Call it before any other function of this file. Threads may call it at the same time. */
void tk_learn_catalogue(void);

/* tk_has - whether the events with an id have a field. */
static inline bool tk_has(uint32_t id, enum tk_field field)
{
	return tk_meanings[id].field[field].number;
}

/* tk_number - the number in a field of an event; @none if the event has no such field. */
static inline int64_t tk_number(const struct ptt_event *e, enum tk_field field, int64_t none)
{
	const struct tk_field_at *at = &tk_meanings[e->id].field[field];
	struct rd_value value;

	if (!at->number)
		return none;
	/* The usual case: a number of 32 or 64 bits in a slot. */
	if (likely(e->payload && !(e->payload & RD_PAYLOAD_RECORD))) {
		const uint8_t *p = (const uint8_t *)(uintptr_t)e->payload + at->offset;

		if (at->type == PTT_FIELD_S32)
			return (int32_t)rd_u32(p);
		if (at->type == PTT_FIELD_NS)
			return (int64_t)rd_u64(p);
		if (at->type == PTT_FIELD_TID)
			return rd_u32(p);
	}
	return rd_field(e->payload, tk_meanings[e->id].type, at->number - 1u, &value) ? value.number : none;
}

#endif
