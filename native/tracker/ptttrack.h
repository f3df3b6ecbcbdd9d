/* SPDX-License-Identifier: MIT */
/* ptttrack.h - what every consumer of the tracker reports alike: events, threads and objects. */
#ifndef PTTTRACK_H
#define PTTTRACK_H

#include <stdint.h>

/* Kinds of objects are domains of the catalogue. */
enum {
	PTT_KIND_THREAD = 1,
	PTT_KIND_MUTEX = 2,
	PTT_KIND_RWLOCK = 3,
	PTT_KIND_SPIN = 4,
	PTT_KIND_COND = 5,
	PTT_KIND_BARRIER = 6,
	PTT_KIND_SEM = 7,
	PTT_KIND_ONCE = 8,
	PTT_KIND_FUTEX = 10,
	PTT_KIND_LLL = 14,
	PTT_KINDS = 16,
};

enum { PTT_MODE_EXCLUSIVE, PTT_MODE_SHARED };

/* What ends waits. */
enum {
	PTT_WAKE_RELEASE = 1,
	PTT_WAKE_SIGNAL,
	PTT_WAKE_BROADCAST,
	PTT_WAKE_POST,
	PTT_WAKE_BARRIER,
	PTT_WAKE_END,
	PTT_WAKE_ONCE,
	PTT_WAKE_FUTEX,
};

/* Why a cycle of lock orders cannot close. New ones come last: Python knows them by their numbers. */
enum ptt_prevented {
	PTT_PREVENTED_GATE,	  /* two of its threads held another lock in common */
	PTT_PREVENTED_ONE_THREAD, /* two of its orders are of one thread */
	PTT_PREVENTED_SHARED,	  /* readers do not keep readers out */
	PTT_PREVENTED_APART,	  /* a creation, a join or a barrier put one order before another */
	PTT_PREVENTED_TRY,	  /* a request that did not wait for ever */
	PTT_PREVENTED_KINDS,
};

/* An event as the reader delivered it; the payload is valid as long as the reader's is. */
struct ptt_event {
	int64_t ts;
	uint64_t object;
	uint64_t site;
	uint64_t payload;
	uint32_t number; /* of the thread, in the reader */
	uint32_t id;
	uint32_t stack; /* number in the process, 0 = none */
	uint32_t reading; /* see struct ptt_columns; 0 = none */
};

#define PTT_THREAD_BEGUN 1u /* its begin is in the trace */
#define PTT_THREAD_ENDED 2u /* its end is in the trace */
#define PTT_THREAD_JOINED 4u
#define PTT_THREAD_DETACHED 8u
#define PTT_THREAD_CANCELLED 16u
#define PTT_THREAD_PRIORITY 32u /* its policy is known */
#define PTT_THREAD_GONE 64u	/* another thread has its pthread_t: it was joined or detached */
#define PTT_THREAD_REPLACED 128u /* another thread has its kernel thread id */
#define PTT_THREAD_OWN 256u	/* from here on, flags of a consumer's own */

/* A thread that has no event for so long, and is in no wait, is silent. */
#define PTT_SILENT_NS 10000000

#define PTT_TRACK_THREAD \
	uint64_t pthread; \
	int64_t first_ns; /* INT64_MAX without events */ \
	int64_t last_ns; /* of the event before the current one */ \
	int64_t end_ns; \
	uint32_t process; \
	uint32_t tid; /* 0 when it was created and never ran */ \
	uint32_t number; /* in the reader; UINT32_MAX for one without events */ \
	uint32_t generation; \
	uint32_t creator; \
	uint32_t flags; \
	uint32_t held; /* locks held now */ \
	uint32_t holds; /* list, the latest first */ \
	uint32_t waits; /* list, the innermost first */ \
	uint32_t process_next;

struct ptt_track_thread {
	PTT_TRACK_THREAD
};

#define PTT_OBJECT_SHARED 1u /* between processes */
#define PTT_OBJECT_ENDED 2u  /* destroyed, or its address used anew */
#define PTT_OBJECT_MADE 4u   /* its initialization is in the trace */
#define PTT_OBJECT_OWN 256u /* from here on, flags of a consumer's own */

#define PTT_TRACK_OBJECT \
	uint64_t address; \
	int64_t first_ns; \
	uint32_t process; \
	uint32_t kind; \
	uint32_t generation; /* 1 for the first object at this address */ \
	uint32_t before; /* object that had this address, or 0 */ \
	uint32_t flags; \
	uint32_t waiters; /* now */ \
	uint32_t holders; /* now */ \
	uint32_t holder; /* one of them */ \
	uint32_t holds; /* list, the latest first */ \
	uint32_t waits; /* list, the latest first */ \
	uint32_t opens; /* of a named semaphore */ \
	uint32_t process_next; \
	int64_t release_ns; /* the last release that was seen, or at a barrier the last thread of this round that does not wait: when, */ \
	uint64_t release_site; \
	uint32_t release_stack; \
	uint32_t releaser; /* and the thread, or 0 */ \
	uint32_t waking; /* what was done to wake its waiters, or 0 */ \
	uint32_t arrived; /* at a barrier, in this round */

struct ptt_track_object {
	PTT_TRACK_OBJECT
};

/*
 * A model, a check and a verifier are trackers. Before the events, and later for new threads and processes, they are told of
 * the traced processes. These functions return 0, -EINVAL or -ENOMEM.
 */
struct tracker;
#define PTT_TRACKER_API __attribute__((visibility("default")))

/* ptt_tracker_thread - which thread stands behind a number of the reader; known ones may be declared again. */
PTT_TRACKER_API int ptt_tracker_thread(struct tracker *t, uint32_t number, uint32_t process, uint32_t tid);
/*
 * ptt_tracker_child - a process was forked by another, and took over its memory, its locks and its levels
 *
 * A child is recorded at its parent's levels: from its first event on it is known what its events say. Both processes
 * must have been named by ptt_tracker_thread().
 */
PTT_TRACKER_API int ptt_tracker_child(struct tracker *t, uint32_t process, uint32_t parent);
/*
 * ptt_tracker_level - of which kinds of objects a process has all changes of state from the beginning on
 *
 * @kinds: a bit (1 << PTT_KIND_…) each; a second call for the same process changes nothing
 */
PTT_TRACKER_API int ptt_tracker_level(struct tracker *t, uint32_t process, uint32_t kinds);
/*
 * ptt_tracker_share - says that [start, end) of a process is memory that others have mapped too
 *
 * @memory: the same for all that map it
 * @offset: where in it the mapping begins
 *
 * An object in such memory is one object; its process and address are those of its first use.
 */
PTT_TRACKER_API int ptt_tracker_share(struct tracker *t, uint32_t process, uint64_t start, uint64_t end, uint32_t memory,
				  uint64_t offset);
/*
 * ptt_tracker_ends - when each process ended, after all events; INT64_MIN for a process without events
 *
 * @killed: when it was killed, INT64_MIN if it was not
 * @seen: when else it, or its recording, was seen to have ended; its own events count more
 * @ends: has room for @count of them
 */
PTT_TRACKER_API void ptt_tracker_ends(const struct tracker *t, const int64_t *killed, const int64_t *seen, uint32_t count,
				  int64_t *ends);

_Static_assert(sizeof(struct ptt_event) == 48, "event");
_Static_assert(sizeof(struct ptt_track_thread) == 72, "thread");
_Static_assert(sizeof(struct ptt_track_object) == 96, "object");

#endif
