/* SPDX-License-Identifier: MIT */
/* points.h - the trace points inside a trace-enabled thread library, and their events. */
/*
 * `ptt nptl build` builds such a library. The library reads __nptl_trace_detail_level and calls __nptl_trace_point()
 * if the level is high enough. Both are weak symbols: without a tracer, the library works as usual.
 */
#ifndef PTT_POINTS_H
#define PTT_POINTS_H

#include "nptl_trace_points.h"
#include "tracer.h"

/* Place and source of a field of an event. */
struct ptt_point_field {
	uint8_t offset; /* in the parameter struct */
	uint8_t size;
	uint8_t from; /* 0: the point's object, 1 and 2: its numbers */
};

struct ptt_point_event {
	uint8_t domain;
	uint8_t number;
	uint8_t level;
	uint8_t slots;	 /* slots that the fields take: 0 or 1 */
	uint8_t of_self; /* the event's object is the calling thread */
	uint8_t fields;
	struct ptt_point_field field[2];
};

struct ptt_point {
	uint8_t events;
	struct ptt_point_event event[2];
};

/* point_table.c. points.c itself handles the points that have no events here. */
extern const struct ptt_point ptt_points[NPTL_POINT_COUNT] HIDDEN;

/*
 * __nptl_trace_point - the calling thread has come to a point inside the thread library
 *
 * @point: enum nptl_trace_point
 * @object: the object of the point
 * @a, @b: numbers, as the catalogue declares them for the point
 * @site: return address of the library's function
 *
 * Blocks only if the trace buffers are full and the user wants to lose no events. Allocates nothing, keeps errno.
 * Safe in signal handlers, and with any lock of the C library held.
 */
EXPORT void __nptl_trace_point(unsigned int point, const void *object, unsigned long a, unsigned long b, const void *site);

/* ptt_forget_purposes - in the child of a fork, which has its own trace. */
void ptt_forget_purposes(void) HIDDEN;

/* ptt_mute_points - report no points while the calling thread forks: the library then works for two processes. */
void ptt_mute_points(bool mute) HIDDEN;

#endif
