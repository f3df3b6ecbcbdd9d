/* SPDX-License-Identifier: MIT */
/* ptttrack.h - events, threads and objects, which all consumers of the tracker report in the same form. */
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

/* Kinds of wake-ups, which end waits. */
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

/* Reasons why a cycle of lock orders cannot close. Add new reasons at the end: Python knows them by their numbers. */
enum ptt_prevented {
	PTT_PREVENTED_GATE,	  /* two of its threads held another lock in common */
	PTT_PREVENTED_ONE_THREAD, /* two of its orders belong to one thread */
	PTT_PREVENTED_SHARED,	  /* readers do not keep readers out */
	PTT_PREVENTED_APART,	  /* a creation, a join or a barrier put one order before another */
	PTT_PREVENTED_TRY,	  /* a request did not wait for ever */
	PTT_PREVENTED_KINDS,
};

/* An event from the reader. The payload is valid as long as the payload in the reader. */
struct ptt_event {
	int64_t ts; /* ns since the start of the traceset */
	uint64_t object;
	uint64_t site;
	uint64_t payload;
	uint32_t number; /* of the thread, in the reader */
	uint32_t id;
	uint32_t stack; /* number in the process, 0 = none */
	uint32_t reading; /* see struct ptt_columns; 0 = none */
};

#define PTT_THREAD_BEGUN 1u /* its beginning is in the trace */
#define PTT_THREAD_ENDED 2u /* its end is in the trace */
#define PTT_THREAD_JOINED 4u
#define PTT_THREAD_DETACHED 8u
#define PTT_THREAD_CANCELLED 16u
#define PTT_THREAD_PRIORITY 32u /* its policy is known */
#define PTT_THREAD_GONE 64u	/* another thread has its pthread_t, so it was joined or detached */
#define PTT_THREAD_REPLACED 128u /* another thread has its kernel thread id */
#define PTT_THREAD_OWN 256u	/* flags from here on belong to the consumer */

/* A thread without an event for this long, and outside of waits, is silent. */
#define PTT_SILENT_NS 10000000

#define PTT_TRACK_THREAD \
	uint64_t pthread; \
	int64_t first_ns; /* INT64_MAX without events */ \
	int64_t last_ns; /* of the event before the current event */ \
	int64_t end_ns; \
	uint32_t process; \
	uint32_t tid; /* 0 if it was created and has no event */ \
	uint32_t number; /* in the reader; UINT32_MAX without events */ \
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
#define PTT_OBJECT_ENDED 2u  /* destroyed, or its address has a new object */
#define PTT_OBJECT_MADE 4u   /* its initialization is in the trace */
#define PTT_OBJECT_OWN 256u /* flags from here on belong to the consumer */

#define PTT_TRACK_OBJECT \
	uint64_t address; \
	int64_t first_ns; \
	uint32_t process; \
	uint32_t kind; \
	uint32_t generation; /* 1 for the first object at this address */ \
	uint32_t before; /* the object at this address before, or 0 */ \
	uint32_t flags; \
	uint32_t waiters; /* now */ \
	uint32_t holders; /* now */ \
	uint32_t holder; /* one of the holders */ \
	uint32_t holds; /* list, the latest first */ \
	uint32_t waits; /* list, the latest first */ \
	uint32_t opens; /* of a named semaphore */ \
	uint32_t process_next; \
	int64_t release_ns; /* of the last release; of a barrier: the last arrival in this round by a thread that does not wait */ \
	uint64_t release_site; \
	uint32_t release_stack; \
	uint32_t releaser; /* the thread of this release or arrival, or 0 */ \
	uint32_t waking; /* its wake-ups, or 0 */ \
	uint32_t arrived; /* at a barrier, in this round */

struct ptt_track_object {
	PTT_TRACK_OBJECT
};

/*
 * A model, a check and a verifier are trackers. Call these functions before the events, and later for new threads and processes.
 * They may allocate. They return 0, -EINVAL or -ENOMEM.
 */
struct tracker;
#define PTT_TRACKER_API __attribute__((visibility("default")))

/* ptt_tracker_thread - declares the process and the kernel thread id of a thread number of the reader; again has no effect. */
PTT_TRACKER_API int ptt_tracker_thread(struct tracker *t, uint32_t number, uint32_t process, uint32_t tid);
/*
 * ptt_tracker_child - declares that a process forked another process, which inherited its memory, locks and levels
 *
 * A child is recorded at the levels of its parent. So its levels are known from its first event on. Declare threads of both
 * processes first, by ptt_tracker_thread().
 */
PTT_TRACKER_API int ptt_tracker_child(struct tracker *t, uint32_t process, uint32_t parent);
/*
 * ptt_tracker_level - declares the kinds of objects with all changes of state in the trace, from the beginning of a process on
 *
 * @kinds: a bit (1 << PTT_KIND_…) for each kind. A second call for the same process has no effect.
 */
PTT_TRACKER_API int ptt_tracker_level(struct tracker *t, uint32_t process, uint32_t kinds);
/*
 * ptt_tracker_share - declares that [start, end) of a process is memory that other processes have mapped too
 *
 * @memory: number of the memory, the same for all processes that map it
 * @offset: of the beginning of the mapping in the memory
 *
 * An object in such memory is a single object, with the process and the address of its first use.
 */
PTT_TRACKER_API int ptt_tracker_share(struct tracker *t, uint32_t process, uint64_t start, uint64_t end, uint32_t memory,
				  uint64_t offset);
/*
 * ptt_tracker_ends - computes the time when each process ended, after all events
 *
 * @killed: when each process was killed; INT64_MIN: it was not
 * @seen: when else the end of the process, or of its recording, was seen; counts only without an exit or exec() in the events
 * @count: number of processes
 * @ends: result, @count times; INT64_MIN for a process without events
 */
PTT_TRACKER_API void ptt_tracker_ends(const struct tracker *t, const int64_t *killed, const int64_t *seen, uint32_t count,
				  int64_t *ends);

_Static_assert(sizeof(struct ptt_event) == 48, "event");
_Static_assert(sizeof(struct ptt_track_thread) == 72, "thread");
_Static_assert(sizeof(struct ptt_track_object) == 96, "object");

#endif
