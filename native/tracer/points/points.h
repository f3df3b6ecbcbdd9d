/* SPDX-License-Identifier: MIT */
/* points.h - the trace points inside a trace-enabled thread library: what the tracer makes of them. */
/*
 * Such a library, built by `ptt nptl build`, looks at __nptl_trace_detail_level and calls __nptl_trace_point() where it is
 * high enough. Both are weak to it: without a tracer in front of it, it goes on.
 */
#ifndef PTT_POINTS_H
#define PTT_POINTS_H

#include "nptl_trace_points.h"
#include "tracer.h"

/* Where a field of an event is, and what goes there. */
struct ptt_point_field {
	uint8_t offset; /* in the parameter struct */
	uint8_t size;
	uint8_t from; /* 0: the point's object, 1 and 2: its numbers */
};

struct ptt_point_event {
	uint8_t domain;
	uint8_t number;
	uint8_t level;
	uint8_t slots;	 /* that its fields take: none or one */
	uint8_t of_self; /* the event's object is the calling thread */
	uint8_t fields;
	struct ptt_point_field field[2];
};

struct ptt_point {
	uint8_t events;
	struct ptt_point_event event[2];
};

/* point_table.c; points without events are known to points.c. */
extern const struct ptt_point ptt_points[NPTL_POINT_COUNT] HIDDEN;

/*
 * __nptl_trace_point - the calling thread has come to a point inside the thread library
 *
 * @point: enum nptl_trace_point
 * @object: what it is about
 * @a, @b: what the catalogue says the point takes
 * @site: return address of the library's function
 *
 * Does not block but where the trace buffers are full and the user asked not to lose events, does not allocate, keeps
 * errno; safe in signal handlers and with any lock of the C library in hand.
 */
EXPORT void __nptl_trace_point(unsigned int point, const void *object, unsigned long a, unsigned long b, const void *site);

/* ptt_forget_purposes - in the child of a fork, whose trace is one of its own. */
void ptt_forget_purposes(void) HIDDEN;

/* ptt_mute_points - while the calling thread forks: what the library does then is of two processes. */
void ptt_mute_points(bool mute) HIDDEN;

#endif
