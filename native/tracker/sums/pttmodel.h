/* SPDX-License-Identifier: MIT */
/* pttmodel.h - from events to states of threads and objects: waits, holds, what caused and what ended them. */
/*
 * Model. Events are fed in the order of time, as the reader's cursors deliver them. The model keeps what every thread
 * and object is doing, and adds up waits and holds in tables that grow with the number of threads, objects and call
 * sites, not of events. With PTT_MODEL_ROWS it also keeps a row of every wait, hold and wake-up.
 *
 *     model = ptt_model_create(PTT_MODEL_ROWS);
 *     ptt_tracker_thread((struct tracker *)model, …);           (every thread of the reader)
 *     while ((n = ptt_cursor_read(cursor, &columns, max)) > 0) {
 *             ptt_model_feed(model, &columns, n);
 *             ptt_model_table(model, PTT_MODEL_WAITS, &table); … ptt_model_drop_rows(model);
 *     }
 *     ptt_model_finish(model, ends, count);
 *     ptt_model_table(model, PTT_MODEL_OBJECTS, &table); …
 *
 * A number of a thread, an object or a site is its row in the table of threads, objects or sites; row 0 of every table stands for
 * "none". Times are ns since the traceset's start. The rules by which waits are classed, blamed and matched with what
 * ended them stand in docs/explanation/waits.md. Functions return 0 or negated errno values; a model belongs to one
 * thread at a time.
 */
#ifndef PTTMODEL_H
#define PTTMODEL_H

#include "model_rows.h"

struct ptt_columns;
struct ptt_model;

#define PTT_MODEL_VERSION 25
#define PTT_MODEL_API __attribute__((visibility("default")))

/* What ptt_model_create() takes. */
#define PTT_MODEL_ROWS 1u  /* waits, holds and wake-ups one by one */
#define PTT_MODEL_EDGES 2u /* which locks are asked for while others are held */
#define PTT_MODEL_PATH 4u  /* keeps what ptt_model_path() needs */
#define PTT_MODEL_PAIRS_OF 8u /* sums by thread and object */
#define PTT_MODEL_STATES_OF 16u /* what each thread does, one state after another */

/* What a call site is. */
enum ptt_site_use {
	PTT_SITE_IN_WRAPPER = 1, /* in a wrapper: a release says more of who held a lock */
	PTT_SITE_OF_SLEEP = 2,	 /* a thread waits at a condition there for time to pass, and for nothing else */
};

/* What an object of an interpreter is for, which its events do not say. */
enum ptt_purpose {
	PTT_FOR_ANYTHING,
	PTT_FOR_WORK,	/* a semaphore: threads wait for work there */
	PTT_FOR_END,	/* a semaphore that a thread posts when it ends; where it began with one unit, that which made it */
	PTT_FOR_HOLDER, /* a semaphore that is posted to a waiter by the thread that it waits for */
	PTT_FOR_GIL,	/* a part of the interpreter's lock */
	PTT_FOR_LOCK,	/* a semaphore with one unit: a lock, unless its events show that it is none */
};

#define PTT_MODEL_PLACES 64

/* Histogram of durations: 16 steps an octave, see ptt_model_bucket_ns(). */
#define PTT_BUCKETS 768

/*
 * Bits from here on: the purpose of a low-level lock, enum nptl_trace_lll; of others the type of lock of another library, as
 * the recording numbered them, or 0.
 */
#define PTT_OBJECT_TYPE_SHIFT 8

/* Kinds of pieces of the critical path. */
enum { PTT_PATH_RUN, PTT_PATH_WAKE, PTT_PATH_WAIT, PTT_PATH_CREATE };

enum ptt_model_table_id {
	PTT_MODEL_OBJECTS,
	PTT_MODEL_SITES,
	PTT_MODEL_THREADS,
	PTT_MODEL_PAIRS,
	PTT_MODEL_BLAMES,
	PTT_MODEL_CAUSES,
	PTT_MODEL_WAKERS,
	PTT_MODEL_EDGES_TABLE,
	PTT_MODEL_HISTOGRAMS,
	PTT_MODEL_WAITS, /* rows since ptt_model_drop_rows() */
	PTT_MODEL_HOLDS,
	PTT_MODEL_WAKEUPS,
	PTT_MODEL_OPEN,  /* waits that go on, after ptt_model_waiting(); that never ended, after ptt_model_finish() */
	PTT_MODEL_SEGMENTS,
	PTT_MODEL_STATE, /* after ptt_model_state() */
	PTT_MODEL_THREAD_STATES, /* rows, as PTT_MODEL_WAITS */
	PTT_MODEL_TABLES,
};

struct ptt_model_table {
	const void *items;
	uint64_t count;
	uint64_t stride; /* bytes from one to the next */
};

PTT_MODEL_API int ptt_model_version(void);
PTT_MODEL_API struct ptt_model *ptt_model_create(uint32_t flags);
PTT_MODEL_API void ptt_model_destroy(struct ptt_model *model);
/* ptt_model_space - says among which processes a process id means this one: those of the same space, unless that is 0. */
PTT_MODEL_API int ptt_model_space(struct ptt_model *model, uint32_t process, uint32_t space);
/* ptt_model_site - declares the use of a call site of a process: PTT_SITE_IN_WRAPPER and PTT_SITE_OF_SLEEP, together or alone. */
PTT_MODEL_API int ptt_model_site(struct ptt_model *model, uint32_t process, uint64_t site, uint32_t use);
/*
 * ptt_model_gil - where a process has a part of an interpreter's lock; may be said late, of what goes on from then on
 *
 * @hand_over: of the condition that is signalled by whoever gives up the lock: so many bytes behind it is the one that is
 *             signalled by whoever takes the lock; 0 for other parts
 */
PTT_MODEL_API int ptt_model_gil(struct ptt_model *model, uint32_t process, uint64_t address, uint32_t hand_over);
/* ptt_model_gate - where a process may have a lock at which it parks threads that have nothing to do; likewise. */
PTT_MODEL_API int ptt_model_gate(struct ptt_model *model, uint32_t process, uint64_t address);
/*
 * ptt_model_semaphore - what semaphores are for (PTT_FOR_WORK, _END, _HOLDER, _LOCK) that a process initializes with a stack
 *
 * @stack: its number in the process
 * @units: whether it is meant for those with units, or those without
 */
PTT_MODEL_API int ptt_model_semaphore(struct ptt_model *model, uint32_t process, uint32_t stack, uint32_t units,
				      uint32_t purpose);
/*
 * ptt_model_only_threads, _objects, _sites - count only some waits and holds; the model follows all events
 *
 * The first call turns the test on; process UINT32_MAX = any, and of sites all that have the address.
 * ptt_model_no_object() forgets the objects that were named. Objects that the model knows already stay as they are.
 *
 * @kind: of the object; UINT32_MAX = any
 * @begin_ns, @end_ns: objects count that are first seen in [begin, end)
 */
PTT_MODEL_API int ptt_model_only_thread(struct ptt_model *model, uint32_t number);
PTT_MODEL_API int ptt_model_no_object(struct ptt_model *model);
PTT_MODEL_API int ptt_model_only_object(struct ptt_model *model, uint32_t process, uint64_t address, uint32_t kind,
					int64_t begin_ns, int64_t end_ns);
PTT_MODEL_API int ptt_model_only_site(struct ptt_model *model, uint32_t process, uint64_t site);
/*
 * ptt_model_window - counts only what lies in [begin, end); before the first event
 *
 * Events before it only say what goes on at its beginning. Of a wait or a hold that reaches out of it, sums and rows have
 * the part inside. Class and waker of a wait are those of the whole wait. So events behind the window are to be
 * fed as well, until ptt_model_undecided() is 0.
 */
PTT_MODEL_API void ptt_model_window(struct ptt_model *model, int64_t begin, int64_t end);
/* ptt_model_undecided - how many waits, holds and, where they are kept, states that began before the window's end go on. */
PTT_MODEL_API uint64_t ptt_model_undecided(const struct ptt_model *model);
/* ptt_model_feed - follows the next n events; all columns must be there but the processors. 0 or a negative error number. */
PTT_MODEL_API int ptt_model_feed(struct ptt_model *model, const struct ptt_columns *columns, int64_t n);
/* ptt_model_feed_early - as ptt_model_feed(), of the events that ptt_model_state() has named, each as often as it says. */
PTT_MODEL_API int ptt_model_feed_early(struct ptt_model *model, const struct ptt_columns *columns, int64_t n);
/*
 * ptt_model_waiting - adds the waits that are going on, as rows of PTT_MODEL_OPEN; none of them ends by that
 *
 * @now: the time, which no event that was fed is behind
 * @ends: of so many processes, the time at which their waits end that is before @now; NULL for none
 */
PTT_MODEL_API int ptt_model_waiting(struct ptt_model *model, int64_t now, const int64_t *ends, uint32_t count);
/* ptt_model_holding - adds the holds that are going on, as rows of PTT_MODEL_HOLDS; none of them ends by that. */
PTT_MODEL_API int ptt_model_holding(struct ptt_model *model, int64_t now);
/*
 * ptt_model_state - adds the events that have led to what goes on, as rows of PTT_MODEL_STATE, in no order
 *
 * They say which threads live, hold and wait; not how objects were initialized, nor what was before.
 */
PTT_MODEL_API int ptt_model_state(struct ptt_model *model);
/*
 * ptt_model_save - writes what goes on to a file, from where it stands. Returns how many bytes that are.
 *
 * Only of a model that counts everything, before its window begins.
 */
PTT_MODEL_API int64_t ptt_model_save(const struct ptt_model *model, int fd);
/*
 * ptt_model_load - takes over what ptt_model_save() wrote, in place of all events up to there
 *
 * @model: has a window that begins later, its shared memory, and has seen no event
 *
 * -EBADMSG: it is damaged, or another build's; the model can be used no more, if it was not refused at once. What it says
 * is relied on.
 */
PTT_MODEL_API int ptt_model_load(struct ptt_model *model, const void *data, uint64_t size);
/*
 * ptt_model_resume - as ptt_model_load(), and goes on from there: the rows of what ends later are as the saved model's
 *
 * @model: has the flags of the saved model, no window, its shared memory, and has seen no event
 *
 * Its tables of sums are of no use: some have begun anew.
 */
PTT_MODEL_API int ptt_model_resume(struct ptt_model *model, const void *data, uint64_t size);
/* ptt_model_full - the kinds of objects, a bit each, whose changes of state are recorded in a process; other events do not say. */
PTT_MODEL_API uint32_t ptt_model_full(const struct ptt_model *model, uint32_t process);
PTT_MODEL_API int ptt_model_set_full(struct ptt_model *model, uint32_t process, uint32_t kinds);
/*
 * ptt_model_finish - ends the waits and holds that are still open
 *
 * @killed: when each process was killed, INT64_MIN where it was not
 * @seen: when else it, or its recording, was seen to have ended; its own events count more
 * @count: of how many processes
 *
 * A thread that has not ended lives until its process ends.
 */
PTT_MODEL_API int ptt_model_finish(struct ptt_model *model, const int64_t *killed, const int64_t *seen,
				   uint32_t count);
/*
 * ptt_model_path_file - where to put waits that the critical path may lead through, 48 bytes each
 *
 * @file: open, empty, to be written and read; it stays the caller's
 *
 * The latest 65,536 are kept in memory. Without a file, or when no more fits into it (64 Mi of them), the shortest of
 * those that follow are left out of the path.
 */
PTT_MODEL_API void ptt_model_path_file(struct ptt_model *model, int file);
/* ptt_model_path - begins at the end of the critical path up to the end of this thread (0: the one with the last event). */
PTT_MODEL_API int ptt_model_path(struct ptt_model *model, uint32_t thread);
/* ptt_model_path_next - puts the next pieces of it into PTT_MODEL_SEGMENTS, latest first; none are left when that is empty. */
PTT_MODEL_API int ptt_model_path_next(struct ptt_model *model);
/* ptt_model_path_resolution - waits shorter than this were left out of the path, for they were too many; 0 = none was. */
PTT_MODEL_API int64_t ptt_model_path_resolution(const struct ptt_model *model);
PTT_MODEL_API int ptt_model_table(const struct ptt_model *model, uint32_t which, struct ptt_model_table *out);
PTT_MODEL_API void ptt_model_drop_rows(struct ptt_model *model);
/* ptt_model_bucket_ns - middle of a bucket of a histogram. */
PTT_MODEL_API double ptt_model_bucket_ns(uint32_t bucket);
/* ptt_model_lost - events that the trace itself says were lost. */
PTT_MODEL_API uint64_t ptt_model_lost(const struct ptt_model *model);

/*
 * Lanes: rows to draw intervals in, so that within a row none overlaps another. Intervals of a group (a thread, an
 * object) share rows; few are needed when they come in the order of their ends.
 */
struct ptt_model_lanes;

struct ptt_model_lane {
	uint64_t group;
	uint32_t place; /* among the rows of the group, from 0 */
	uint32_t reserved;
};

_Static_assert(sizeof(struct ptt_model_lane) == 16, "lane");

PTT_MODEL_API struct ptt_model_lanes *ptt_model_lanes_create(void);
PTT_MODEL_API void ptt_model_lanes_destroy(struct ptt_model_lanes *lanes);
/* ptt_model_lanes_place - finds the row of each of n intervals, end behind begin or equal to it. */
PTT_MODEL_API int ptt_model_lanes_place(struct ptt_model_lanes *lanes, const uint64_t *group, const int64_t *begin,
					const int64_t *end, uint32_t *lane, int64_t n);
/* ptt_model_lanes_table - the rows there are, as struct ptt_model_lane; valid until intervals are placed. */
PTT_MODEL_API int ptt_model_lanes_table(const struct ptt_model_lanes *lanes, struct ptt_model_table *out);

#endif
