/* SPDX-License-Identifier: MIT */
/* pttdetail.h - what to draw of a trace: waits and holds by row, as fine as the pixels; made to be called by ctypes. */
/*
 * Model. Waits and holds come from the model in the order of their ends. Each belongs to two rows: the row of its
 * thread and the row of its object. Objects of an address that were initialized at the same place share a row. Where
 * context switches are known, each processor has a row of the turns that threads had on it. A row has a track for each
 * lane and state. A track is a list of records with a tree above it: a node sums up 16, 256, … records. A question names
 * a stretch of time and the width of a bin. Spans shorter than a bin are drawn together with spans of the same kind, and
 * parts of the tree that are shorter are not looked into. So an answer costs as much as it shows, however long the trace.
 *
 * All of it lies in one file that is mapped while it is written and read later on as it stands.
 *
 *     detail = ptt_detail_create(fd);
 *     …for each batch of events: ptt_detail_events(detail, ts, n); ptt_detail_feed(detail, &waits, &holds, &states, &objects);
 *     ptt_detail_end(detail);
 *     ptt_detail_finish(detail, identity);
 *     n = ptt_detail_spans(detail, PTT_DETAIL_THREADS, rows, count, from, to, bin, spans, room);
 *
 * A file that is opened is not trusted: what makes no sense is left out. Functions return 0 or a count, and negated
 * errno values. Questions may be asked by several threads at once, but not while something is fed.
 */
#ifndef PTTDETAIL_H
#define PTTDETAIL_H

#include <stdint.h>

#include "../sums/pttmodel.h"

#define PTT_DETAIL_VERSION 10
#define PTT_DETAIL_API __attribute__((visibility("default")))

struct ptt_detail;

enum { PTT_DETAIL_THREADS, PTT_DETAIL_OBJECTS, PTT_DETAIL_PROCESSORS, PTT_DETAIL_KINDS };

/*
 * States of spans: 1 + class of a wait, or one of these. The last four are of threads that do not wait; of processors
 * they say how a turn ended: RUNNING, the thread gave it up; PREEMPTED, it could have gone on.
 */
enum {
	PTT_DETAIL_HELD = 1 + PTT_CLASSES,
	PTT_DETAIL_SHARED,
	PTT_DETAIL_RUNNING,
	PTT_DETAIL_READY,
	PTT_DETAIL_ASLEEP,
	PTT_DETAIL_PREEMPTED, /* while they held locks */
	PTT_DETAIL_STATES,
};

#define PTT_DETAIL_OPEN 1u   /* it had not ended when the trace did; of a turn: how it ended is not known */
#define PTT_DETAIL_MERGED 2u /* several were taken together */
#define PTT_DETAIL_WOKEN 4u  /* wake_ns is the end of it */

/*
 * Rows of threads are numbers of the model; rows of objects are numbered from 1 as they come. Joins have no object row.
 * That of a processor is its number + 1.
 */
struct ptt_detail_span {
	int64_t t_ns;
	int64_t dur_ns;
	int64_t busy_ns;
	int64_t wake_ns; /* of a contended wait that has ended: meanwhile what it was for was free */
	uint32_t row;
	uint32_t count;
	uint32_t other; /* object or thread of the longest span, by its number in the model; of a sleeper the number of the call */
	uint32_t depth; /* waiters, the most */
	uint32_t wait;  /* of the longest; 0 = none */
	uint16_t lane;  /* 0 = waits and what threads do else, or turns; then holds */
	uint8_t state;
	uint8_t flags;
};

struct ptt_detail_wait {
	int64_t t_ns;
	int64_t dur_ns;
	int64_t held_ns; /* of a contended one: while what it was for was held */
	int64_t waker_t_ns; /* INT64_MIN when unknown */
	int64_t ready_ns; /* meanwhile it could have run, and had no processor; -1 = not known */
	uint32_t parent;
	uint32_t thread; /* 0: there is no such wait */
	uint32_t object;
	uint32_t site;
	uint32_t owner;
	uint32_t owner_site;
	uint32_t waker;
	uint32_t waker_site;
	uint32_t stack; /* number in its process; 0 = not known */
	uint32_t holder_stack; /* as in struct ptt_model_wait */
	uint32_t holder_site;
	uint32_t reserved;
	uint16_t queue_depth;
	int16_t result;
	uint8_t wait_class;
	uint8_t kind;
	uint8_t mode;
	uint8_t open;
};

#define PTT_DETAIL_BINS 8192

/* Bins of equal width from `begin_ns` on; ns are thread time. */
struct ptt_detail_bin {
	uint64_t events;
	uint64_t wait_ns[3]; /* contended, idle, other */
};

_Static_assert(sizeof(struct ptt_detail_span) == 56, "span");
_Static_assert(sizeof(struct ptt_detail_wait) == 96, "wait");
_Static_assert(sizeof(struct ptt_detail_bin) == 32, "bin");

PTT_DETAIL_API int ptt_detail_version(void);
/* ptt_detail_create - begins anew in an empty file, which stays the caller's. NULL with errno set. */
PTT_DETAIL_API struct ptt_detail *ptt_detail_create(int fd);
/* ptt_detail_open - a finished file of this identity (32 bytes). NULL with errno set; ESTALE: it is none. */
PTT_DETAIL_API struct ptt_detail *ptt_detail_open(int fd, const uint8_t *identity);
PTT_DETAIL_API void ptt_detail_destroy(struct ptt_detail *detail);
/* ptt_detail_events - counts events for the overview. */
PTT_DETAIL_API int ptt_detail_events(struct ptt_detail *detail, const int64_t *ts, int64_t n);
/* ptt_detail_feed - takes in the rows that the model has added since the last time, and all of its objects. */
PTT_DETAIL_API int ptt_detail_feed(struct ptt_detail *detail, const struct ptt_model_table *waits,
				   const struct ptt_model_table *holds, const struct ptt_model_table *states,
				   const struct ptt_model_table *objects);
/* ptt_detail_end - there is no more to feed: turns that have not ended are drawn up to where they are known. */
PTT_DETAIL_API int ptt_detail_end(struct ptt_detail *detail);
/* ptt_detail_finish - makes the file whole; nothing may be fed any more. */
PTT_DETAIL_API int ptt_detail_finish(struct ptt_detail *detail, const uint8_t *identity);

/* ptt_detail_rows - how many rows there are, row 0 included. */
PTT_DETAIL_API uint32_t ptt_detail_rows(const struct ptt_detail *detail, uint32_t by);
/* ptt_detail_lanes - how many lanes each of the first n rows has. */
PTT_DETAIL_API int ptt_detail_lanes(const struct ptt_detail *detail, uint32_t by, uint16_t *lanes, uint32_t n);
/* ptt_detail_row_of - the rows of the first n objects of the model. Returns how many are known. */
PTT_DETAIL_API int64_t ptt_detail_row_of(const struct ptt_detail *detail, uint32_t *rows, uint32_t n);
/*
 * ptt_detail_spans - what to draw of some rows in [from, to), those of a row together
 *
 * @bin: width of a bin in ns; bins begin at multiples of it. At most 65536 of them. 0: each span by itself.
 *
 * Returns how many spans there are; only `room` of them are written. Allocates.
 */
PTT_DETAIL_API int64_t ptt_detail_spans(const struct ptt_detail *detail, uint32_t by, const uint32_t *rows,
					uint32_t count, int64_t from, int64_t to, int64_t bin,
					struct ptt_detail_span *out, int64_t room);
/* ptt_detail_find - the wait or hold of a lane at a time, as a span. 0, or -ENOENT. */
PTT_DETAIL_API int ptt_detail_find(const struct ptt_detail *detail, uint32_t by, uint32_t row, uint32_t lane,
				   int64_t ts, struct ptt_detail_span *out);
PTT_DETAIL_API int ptt_detail_wait(const struct ptt_detail *detail, uint32_t id, struct ptt_detail_wait *out);
/* ptt_detail_waits - the waits from a number on, n of them at most; gaps have no thread. Returns how many. */
PTT_DETAIL_API int64_t ptt_detail_waits(const struct ptt_detail *detail, uint32_t first, struct ptt_detail_wait *out,
					uint32_t n);
/* ptt_detail_overview - the bins, and where they begin and how wide they are. Returns how many are in use. */
PTT_DETAIL_API int64_t ptt_detail_overview(const struct ptt_detail *detail, struct ptt_detail_bin *out,
					   int64_t *begin_ns, int64_t *width_ns);

#endif
