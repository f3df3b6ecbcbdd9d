/* SPDX-License-Identifier: MIT */
/* pttdetail.h - waits and holds to draw, by row, as fine as the pixels. Python calls it through ctypes. */
/*
 * Model. Waits and holds come from the model in the order of their ends. Each belongs to two rows: the row of its thread and the
 * row of its object. Objects at an address that were initialized at the same place share a row. If context switches are recorded,
 * each processor has a row with the turns of threads on it. A row has a track for each lane and state. A track is a list of
 * records with a tree above it: a node sums up 16, 256, … records. A query names a stretch of time and the width of a bin. Spans
 * shorter than a bin are drawn together with spans of the same kind, and the search skips the inside of shorter parts of the
 * tree. So the cost of an answer depends on its size, not on the length of the trace.
 *
 * All data lies in a file that is mapped while it is written, and read later in the same form.
 *
 *     detail = ptt_detail_create(fd);
 *     …for each batch of events: ptt_detail_events(detail, ts, n); ptt_detail_feed(detail, &waits, &holds, &states, &objects);
 *     ptt_detail_end(detail);
 *     ptt_detail_finish(detail, identity);
 *     n = ptt_detail_spans(detail, PTT_DETAIL_THREADS, rows, count, from, to, bin, spans, room);
 *
 * An opened file is not trusted: answers leave out senseless data. Functions return 0 or a count, or negated errno values. Threads
 * may query at the same time, but not while a thread feeds.
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
 * States of spans: 1 + class of a wait, or one of these. The last four are for threads that do not wait. In rows of processors
 * they say how a turn ended: RUNNING, the thread gave up the processor; PREEMPTED, the thread could have continued.
 */
enum {
	PTT_DETAIL_HELD = 1 + PTT_CLASSES,
	PTT_DETAIL_SHARED,
	PTT_DETAIL_RUNNING,
	PTT_DETAIL_READY,
	PTT_DETAIL_ASLEEP,
	PTT_DETAIL_PREEMPTED, /* with locks held */
	PTT_DETAIL_STATES,
};

#define PTT_DETAIL_OPEN 1u   /* it had not ended at the end of the trace; of a turn: its end is unknown */
#define PTT_DETAIL_MERGED 2u /* several spans were merged */
#define PTT_DETAIL_WOKEN 4u  /* wake_ns lies at the end of the span */

/*
 * The row of a thread is its number in the model. Rows of objects are numbered from 1 in the order of their appearance. Joins have
 * no row of an object. The row of a processor is its number + 1.
 */
struct ptt_detail_span {
	int64_t t_ns;
	int64_t dur_ns;
	int64_t busy_ns; /* sum of the durations, at most dur_ns */
	int64_t wake_ns; /* of a finished contended wait: how long the object was free during the wait */
	uint32_t row;
	uint32_t count; /* number of merged spans */
	uint32_t other; /* object or thread of the longest span, by its number in the model; of a sleeper the number of the call */
	uint32_t depth; /* maximum of waiters */
	uint32_t wait;  /* number of the longest wait; 0 = none */
	uint16_t lane;  /* 0 = waits and other states of threads, or turns; then holds */
	uint8_t state;
	uint8_t flags;
};

struct ptt_detail_wait {
	int64_t t_ns;
	int64_t dur_ns;
	int64_t held_ns; /* of a contended wait: how long a thread held the object */
	int64_t waker_t_ns; /* INT64_MIN = unknown */
	int64_t ready_ns; /* how long the thread could have run but had no processor; -1 = unknown */
	uint32_t parent;
	uint32_t thread; /* 0: there is no such wait */
	uint32_t object;
	uint32_t site;
	uint32_t owner;
	uint32_t owner_site;
	uint32_t waker;
	uint32_t waker_site;
	uint32_t stack; /* number in its process; 0 = unknown */
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

/* A bin of the overview. Bins have equal widths, from `begin_ns` on. Times are sums over threads. */
struct ptt_detail_bin {
	uint64_t events;
	uint64_t wait_ns[3]; /* contended, idle, other */
};

_Static_assert(sizeof(struct ptt_detail_span) == 56, "span");
_Static_assert(sizeof(struct ptt_detail_wait) == 96, "wait");
_Static_assert(sizeof(struct ptt_detail_bin) == 32, "bin");

PTT_DETAIL_API int ptt_detail_version(void);
/* ptt_detail_create - begins in an empty file. The caller closes the file. On error: NULL, and errno is set. */
PTT_DETAIL_API struct ptt_detail *ptt_detail_create(int fd);
/* ptt_detail_open - opens a finished file with this identity (32 bytes). On error: NULL, and errno is set; ESTALE: no such file. */
PTT_DETAIL_API struct ptt_detail *ptt_detail_open(int fd, const uint8_t *identity);
PTT_DETAIL_API void ptt_detail_destroy(struct ptt_detail *detail);
/* ptt_detail_events - counts events for the overview. */
PTT_DETAIL_API int ptt_detail_events(struct ptt_detail *detail, const int64_t *ts, int64_t n);
/* ptt_detail_feed - adds the new rows of the model since the last call. @objects: all objects of the model */
PTT_DETAIL_API int ptt_detail_feed(struct ptt_detail *detail, const struct ptt_model_table *waits,
				   const struct ptt_model_table *holds, const struct ptt_model_table *states,
				   const struct ptt_model_table *objects);
/* ptt_detail_end - no more rows follow: draws the turns that have not ended up to their last known time. */
PTT_DETAIL_API int ptt_detail_end(struct ptt_detail *detail);
/* ptt_detail_finish - completes the file. Do not feed any more. @identity: 32 bytes */
PTT_DETAIL_API int ptt_detail_finish(struct ptt_detail *detail, const uint8_t *identity);

/* ptt_detail_rows - the number of rows, including row 0. @by: PTT_DETAIL_THREADS, _OBJECTS or _PROCESSORS, here and below */
PTT_DETAIL_API uint32_t ptt_detail_rows(const struct ptt_detail *detail, uint32_t by);
/* ptt_detail_lanes - the number of lanes of each of the first @n rows. */
PTT_DETAIL_API int ptt_detail_lanes(const struct ptt_detail *detail, uint32_t by, uint16_t *lanes, uint32_t n);
/* ptt_detail_row_of - the rows of the first @n objects of the model. Return: the number of known objects. */
PTT_DETAIL_API int64_t ptt_detail_row_of(const struct ptt_detail *detail, uint32_t *rows, uint32_t n);
/*
 * ptt_detail_spans - the spans to draw of some rows in [from, to), row by row
 *
 * @bin: width of a bin in ns. Bins begin at multiples of it. At most 65,536 bins. 0: do not merge spans.
 *
 * Return: the number of spans; only the first @room spans are written. Allocates.
 */
PTT_DETAIL_API int64_t ptt_detail_spans(const struct ptt_detail *detail, uint32_t by, const uint32_t *rows,
					uint32_t count, int64_t from, int64_t to, int64_t bin,
					struct ptt_detail_span *out, int64_t room);
/* ptt_detail_find - the wait or hold of a lane at a time, as a span. 0, or -ENOENT. */
PTT_DETAIL_API int ptt_detail_find(const struct ptt_detail *detail, uint32_t by, uint32_t row, uint32_t lane,
				   int64_t ts, struct ptt_detail_span *out);
/* ptt_detail_wait - the wait with a number. 0, or -ENOENT. */
PTT_DETAIL_API int ptt_detail_wait(const struct ptt_detail *detail, uint32_t id, struct ptt_detail_wait *out);
/* ptt_detail_waits - up to @n waits from a number on. Missing waits have thread 0. Return: the number of waits. */
PTT_DETAIL_API int64_t ptt_detail_waits(const struct ptt_detail *detail, uint32_t first, struct ptt_detail_wait *out,
					uint32_t n);
/* ptt_detail_overview - the PTT_DETAIL_BINS bins, the beginning of the first bin, and the width of a bin. Return: bins in use. */
PTT_DETAIL_API int64_t ptt_detail_overview(const struct ptt_detail *detail, struct ptt_detail_bin *out,
					   int64_t *begin_ns, int64_t *width_ns);

#endif
