/* SPDX-License-Identifier: MIT */
/* pttmodel.h - from events to states of threads and objects: waits, holds, their causes and their wake-ups. */
/*
 * Model. Feed the events in the order of time, as the cursors of the reader deliver them. The model keeps the state of every
 * thread and object, and adds up waits and holds. Its tables grow with the number of threads, objects and call sites, not with
 * the number of events. With PTT_MODEL_ROWS it also keeps a row of every wait, hold and wake-up.
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
 * The number of a thread, an object or a site is its row in the table of threads, objects or sites. Row 0 of every table means
 * "none". Times are ns since the start of the traceset. docs/explanation/waits.md has the rules for classes, blame and wake-ups
 * of waits. Functions return 0 or negated errno values. They may allocate. A model belongs to one thread at a time.
 */
#ifndef PTTMODEL_H
#define PTTMODEL_H

#include "model_rows.h"

struct ptt_columns;
struct ptt_model;

#define PTT_MODEL_VERSION 26
#define PTT_MODEL_API __attribute__((visibility("default")))

/* Flags of ptt_model_create(). */
#define PTT_MODEL_ROWS 1u  /* rows of waits, holds and wake-ups */
#define PTT_MODEL_EDGES 2u /* lock orders */
#define PTT_MODEL_PATH 4u  /* steps for ptt_model_path() */
#define PTT_MODEL_PAIRS_OF 8u /* sums by thread and object */
#define PTT_MODEL_STATES_OF 16u /* rows of the states of threads */
#define PTT_MODEL_INSIDE_OF 32u /* rows of what holders did while others waited */

/* Uses of a call site. */
enum ptt_site_use {
	PTT_SITE_IN_WRAPPER = 1, /* in a wrapper: the site of the release says more about the holder of a lock */
	PTT_SITE_OF_SLEEP = 2,	 /* a thread waits at a condition there only for time to pass */
};

/* Purposes of an object of an interpreter, which its events do not name. */
enum ptt_purpose {
	PTT_FOR_ANYTHING,
	PTT_FOR_WORK,	/* a semaphore: threads wait for work there */
	PTT_FOR_END,	/* a semaphore that a thread posts when it ends; if it began with one unit, the thread that made it */
	PTT_FOR_HOLDER, /* a semaphore that a waiter's holder posts */
	PTT_FOR_GIL,	/* a part of the interpreter's lock */
	PTT_FOR_LOCK,	/* a semaphore with one unit: a lock, unless its events show something else */
	PTT_FOR_UNKNOWN, /* a semaphore of an interpreter whose version nobody knows here: its events do not tell the purpose */
};

#define PTT_MODEL_PLACES 64

/* Histogram of durations: 16 steps an octave, see ptt_model_bucket_ns(). */
#define PTT_BUCKETS 768

/*
 * The flags of an object from this bit on: the purpose of a low-level lock, enum nptl_trace_lll. For other kinds: the type of a
 * lock of another library, by its number in the recording, or 0.
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
	PTT_MODEL_WAITS, /* rows since ptt_model_drop_rows(), as for the next two, PTT_MODEL_THREAD_STATES and PTT_MODEL_INSIDE_ROWS */
	PTT_MODEL_HOLDS,
	PTT_MODEL_WAKEUPS,
	PTT_MODEL_OPEN,  /* after ptt_model_waiting(): waits that go on; after ptt_model_finish(): waits that never ended */
	PTT_MODEL_SEGMENTS, /* after ptt_model_path_next() */
	PTT_MODEL_STATE, /* after ptt_model_state() */
	PTT_MODEL_THREAD_STATES,
	PTT_MODEL_INSIDES,
	PTT_MODEL_INSIDE_ROWS,
	PTT_MODEL_TABLES,
};

struct ptt_model_table {
	const void *items;
	uint64_t count;
	uint64_t stride; /* bytes from an item to the next item */
};

PTT_MODEL_API int ptt_model_version(void);
/* ptt_model_create - creates a model without events; NULL: there is no memory. */
PTT_MODEL_API struct ptt_model *ptt_model_create(uint32_t flags);
PTT_MODEL_API void ptt_model_destroy(struct ptt_model *model);
/* ptt_model_space - declares the space of a process: a process id is valid in all processes of a space; 0: unknown space. */
PTT_MODEL_API int ptt_model_space(struct ptt_model *model, uint32_t process, uint32_t space);
/* ptt_model_site - declares the use of a call site of a process: PTT_SITE_IN_WRAPPER and PTT_SITE_OF_SLEEP, together or alone. */
PTT_MODEL_API int ptt_model_site(struct ptt_model *model, uint32_t process, uint64_t site, uint32_t use);
/*
 * ptt_model_gil - declares the address of a part of an interpreter's lock in a process; later calls hold for later events
 *
 * @hand_over: for the condition that a thread signals when it gives up the lock: distance in bytes to the condition that a
 *             thread signals when it takes the lock; 0 for other parts
 */
PTT_MODEL_API int ptt_model_gil(struct ptt_model *model, uint32_t process, uint64_t address, uint32_t hand_over);
/* ptt_model_gate - declares the address of a lock where a process may park threads without work; as ptt_model_gil(). */
PTT_MODEL_API int ptt_model_gate(struct ptt_model *model, uint32_t process, uint64_t address);
/*
 * ptt_model_semaphore - declares the purpose of the semaphores that a process initializes with a stack
 *
 * @stack: number of the stack in the process
 * @units: 1: semaphores that begin with units; 0: semaphores without
 * @purpose: PTT_FOR_WORK, PTT_FOR_END, PTT_FOR_HOLDER, PTT_FOR_LOCK or PTT_FOR_UNKNOWN
 */
PTT_MODEL_API int ptt_model_semaphore(struct ptt_model *model, uint32_t process, uint32_t stack, uint32_t units,
				      uint32_t purpose);
/*
 * ptt_model_only_thread, _object, _site - count only the waits and holds of these threads, objects or sites
 *
 * The model still follows all events. The first call turns the choice on. ptt_model_only_thread(UINT32_MAX) chooses no thread.
 * ptt_model_no_object() forgets the chosen objects, and chooses no object. Objects that the model knows already do not change.
 *
 * @process: UINT32_MAX = any; for sites: any process, and any site with this address
 * @kind: of the object; UINT32_MAX = any
 * @begin_ns, @end_ns: choose objects that are first seen in [begin, end)
 */
PTT_MODEL_API int ptt_model_only_thread(struct ptt_model *model, uint32_t number);
PTT_MODEL_API int ptt_model_no_object(struct ptt_model *model);
PTT_MODEL_API int ptt_model_only_object(struct ptt_model *model, uint32_t process, uint64_t address, uint32_t kind,
					int64_t begin_ns, int64_t end_ns);
PTT_MODEL_API int ptt_model_only_site(struct ptt_model *model, uint32_t process, uint64_t site);
/*
 * ptt_model_window - counts only the time [begin, end); call it before the first event
 *
 * Events before the window only set the state at its beginning. If a wait or a hold reaches out of the window, sums and rows have
 * the part inside. The class and the waker belong to the whole wait. So feed the events after the window as well,
 * until ptt_model_undecided() is 0.
 */
PTT_MODEL_API void ptt_model_window(struct ptt_model *model, int64_t begin, int64_t end);
/* ptt_model_undecided - the number of waits, holds and (with PTT_MODEL_STATES_OF) states that reach over the end of the window. */
PTT_MODEL_API uint64_t ptt_model_undecided(const struct ptt_model *model);
/* ptt_model_feed - follows the next @n events. Only the column of processors is optional. 0 or -errno. */
PTT_MODEL_API int ptt_model_feed(struct ptt_model *model, const struct ptt_columns *columns, int64_t n);
/* ptt_model_feed_early - as ptt_model_feed(), for the events of ptt_model_state(), each event as often as `times` says. */
PTT_MODEL_API int ptt_model_feed_early(struct ptt_model *model, const struct ptt_columns *columns, int64_t n);
/*
 * ptt_model_waiting - adds the waits that go on, as rows of PTT_MODEL_OPEN. The waits do not end.
 *
 * @now: a time that is not before the last event
 * @ends: times when processes ended, @count times: their waits end there if that is before @now; NULL: none
 */
PTT_MODEL_API int ptt_model_waiting(struct ptt_model *model, int64_t now, const int64_t *ends, uint32_t count);
/* ptt_model_holding - adds the holds that go on, as rows of PTT_MODEL_HOLDS. The holds do not end. */
PTT_MODEL_API int ptt_model_holding(struct ptt_model *model, int64_t now);
/*
 * ptt_model_state - adds the events that lead to the present state, as rows of PTT_MODEL_STATE, in no order
 *
 * They tell which threads live, hold and wait. They do not tell how objects were initialized, nor earlier states.
 */
PTT_MODEL_API int ptt_model_state(struct ptt_model *model);
/*
 * ptt_model_save - writes the present state to a file, at its position. Return: the number of bytes, or -errno. May block.
 *
 * The model must count everything, and its window must not have begun.
 */
PTT_MODEL_API int64_t ptt_model_save(const struct ptt_model *model, int fd);
/*
 * ptt_model_load - loads the data of ptt_model_save(), in place of all events up to there
 *
 * @model: has no events, a window that begins later, and its shared memory
 *
 * -EBADMSG: the data is damaged, or from another build. Then destroy the model. The contents are trusted: see snapshot.c.
 */
PTT_MODEL_API int ptt_model_load(struct ptt_model *model, const void *data, uint64_t size);
/*
 * ptt_model_resume - as ptt_model_load(), and continues from there: later rows are as in the saved model
 *
 * @model: has no events and no window, the flags of the saved model, and its shared memory
 *
 * Do not use its tables of sums: some sums begin at 0.
 */
PTT_MODEL_API int ptt_model_resume(struct ptt_model *model, const void *data, uint64_t size);
/* ptt_model_full - the kinds of objects, a bit for each, with recorded changes of state in a process; see ptt_tracker_level(). */
PTT_MODEL_API uint32_t ptt_model_full(const struct ptt_model *model, uint32_t process);
PTT_MODEL_API int ptt_model_set_full(struct ptt_model *model, uint32_t process, uint32_t kinds);
/*
 * ptt_model_finish - ends the waits and holds that are still open
 *
 * @killed, @seen, @count: as in ptt_tracker_ends()
 *
 * A thread that has not ended lives until its process ends.
 */
PTT_MODEL_API int ptt_model_finish(struct ptt_model *model, const int64_t *killed, const int64_t *seen,
				   uint32_t count);
/*
 * ptt_model_path_file - sets the file for the waits that the critical path may lead through, 48 bytes each
 *
 * @file: an empty file, open to read and write; the caller closes it
 *
 * The latest 65,536 waits stay in memory. Without a file, or when the file is full (64 Mi waits), the shortest of the later waits
 * are left out of the path.
 */
PTT_MODEL_API void ptt_model_path_file(struct ptt_model *model, int file);
/* ptt_model_path - starts a walk from the end of the critical path of a thread; 0: the thread with the last event. */
PTT_MODEL_API int ptt_model_path(struct ptt_model *model, uint32_t thread);
/* ptt_model_path_next - puts the next pieces into PTT_MODEL_SEGMENTS, the latest first. The path is complete when it is empty. */
PTT_MODEL_API int ptt_model_path_next(struct ptt_model *model);
/* ptt_model_path_resolution - waits shorter than this, in ns, were left out of the path; 0 = none. */
PTT_MODEL_API int64_t ptt_model_path_resolution(const struct ptt_model *model);
/* ptt_model_table - a table, valid until the next call that adds rows. @which: enum ptt_model_table_id. 0 or -EINVAL. */
PTT_MODEL_API int ptt_model_table(const struct ptt_model *model, uint32_t which, struct ptt_model_table *out);
/* ptt_model_drop_rows - empties PTT_MODEL_WAITS, _HOLDS, _WAKEUPS, _THREAD_STATES and _INSIDE_ROWS. */
PTT_MODEL_API void ptt_model_drop_rows(struct ptt_model *model);
/* ptt_model_bucket_ns - middle of a bucket of a histogram, in ns. */
PTT_MODEL_API double ptt_model_bucket_ns(uint32_t bucket);
/* ptt_model_lost - number of events that the trace reports as lost. */
PTT_MODEL_API uint64_t ptt_model_lost(const struct ptt_model *model);

/*
 * Lanes: rows to draw intervals in, so that no two intervals of a row overlap. Intervals of a group (a thread, an object) share
 * rows. Few rows are needed if the intervals come in the order of their ends.
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
/* ptt_model_lanes_place - finds the row of each of @n intervals, with end >= begin. Result: @lane. 0 or -ENOMEM. */
PTT_MODEL_API int ptt_model_lanes_place(struct ptt_model_lanes *lanes, const uint64_t *group, const int64_t *begin,
					const int64_t *end, uint32_t *lane, int64_t n);
/* ptt_model_lanes_table - the rows so far, as struct ptt_model_lane; valid until the next intervals are placed. */
PTT_MODEL_API int ptt_model_lanes_table(const struct ptt_model_lanes *lanes, struct ptt_model_table *out);

#endif
