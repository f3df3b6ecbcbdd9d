/* SPDX-License-Identifier: MIT */
/* state.h - processes, threads, objects, holds and waits as events change them, for all consumers of the tracker. */
/*
 * A consumer has a struct tracker at the beginning of its own state. The elements of its tables begin with the elements of the
 * tracker, and continue with members of the consumer. The consumer gives their sizes when it opens the tracker. Elements are
 * known by their numbers; 0 is no element. Functions return the number of an element. If there is no memory, they return 0 and
 * set `error` to -ENOMEM.
 */
#ifndef PTT_TRACKER_STATE_H
#define PTT_TRACKER_STATE_H

#include "../../reader/tables.h"
#include "catalogue.h"

#define TK_NEVER INT64_MIN

/* An event, with its thread and process. e->ts and e->e.ts are the same member. */
struct tk_event {
	union {
		struct ptt_event;
		struct ptt_event e;
	};
	uint32_t thread;
	uint32_t process;
};

struct tk_process {
	int64_t last; /* time of its last event */
	uint32_t parent; /* number + 1, or 0 */
	uint32_t objects; /* list, the latest first */
	uint32_t threads; /* list, the earliest first */
	uint32_t threads_last;
	uint32_t thread_count; /* threads with events */
	struct tk_range *ranges; /* its addresses in shared memory, sorted, without overlap */
	uint32_t range_count;
	uint32_t range_room;
	int64_t exec_ns; /* when a thread last called exec(); the thread has no later event if the call succeeded */
	uint32_t execs;	 /* that thread */
	int64_t reaped_ns; /* when a thread of another process had waited for its end */
	uint32_t ppid;
	uint32_t first; /* the thread with the process id */
	uint32_t space; /* space of process ids; 0 = unknown */
	bool reaped;
	bool exited; /* a thread called exit() or a like function */
	bool leveled; /* ptt_tracker_level() was called */
	bool full[PTT_KINDS]; /* by kind: changes of state are recorded, not only waits */
};

/* Memory of a process that other processes have mapped too. */
struct tk_share {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint32_t process;
	uint32_t memory;
};

/* A part of shared memory that was not mapped for something else later. */
struct tk_range {
	uint64_t start;
	uint64_t end;
	uint32_t share;
};

/* A lock that a thread holds, in the lists of its thread and of its object. */
struct tk_hold {
	int64_t since;
	uint64_t site;
	uint64_t address;
	uint32_t thread;
	uint32_t object;
	uint32_t stack; /* number in the process, 0 = unknown */
	uint32_t depth;
	uint32_t thread_next;
	uint32_t thread_prev;
	uint32_t object_next;
	uint32_t object_prev;
	uint8_t kind;
	uint8_t mode;
};

/* A wait that goes on, in the lists of its thread and of its object. */
struct tk_wait {
	int64_t since;
	uint64_t id; /* from 1, in the order of beginnings */
	uint64_t site;
	uint64_t address;
	uint32_t thread;
	uint32_t object;
	uint32_t stack; /* as in struct tk_hold */
	uint32_t owner; /* the holder of a lock, or the thread that a join waits for */
	uint32_t mutex; /* of a condition wait */
	uint32_t thread_next;
	uint32_t object_next;
	uint32_t object_prev;
	uint8_t kind;
	uint8_t mode;
};

/* A wake-up for waiters of an object that have not yet used it, in the list of the object. */
struct tk_wakeup {
	int64_t ts;
	uint64_t site;
	uint32_t stack; /* as in struct tk_hold */
	uint32_t thread; /* the waker */
	uint32_t left; /* number of waiters that have not yet used it */
	uint32_t next; /* the next later wake-up */
	uint32_t prev;
	uint8_t kind; /* PTT_WAKE_… */
};

/* The wake-ups of an object. */
struct tk_waking {
	uint64_t woken_to; /* all waits up to this id have a wake-up */
	uint32_t first; /* list, the oldest first */
	uint32_t last;
	uint32_t pending; /* number of waiters with a wake-up */
	uint32_t latest; /* the latest wake-up, used or not, with waiters or without */
};

/* Objects that a thread used last, by address. */
#define TK_CACHE 64u

struct tk_cached {
	uint64_t key;
	uint32_t object;
	uint32_t own; /* for the consumer */
};

/* A thread of the reader, with its declared process and id. */
struct tk_known {
	uint32_t thread;
	uint32_t process;
	uint32_t tid;
	bool known;
	bool allowed;
	bool seen; /* the thread has had an event */
	bool switches; /* its context switches in the kernel are recorded */
	uint16_t cpu; /* its last processor */
};

/* Elements of a consumer: their size in bytes, and the contents of a new element; NULL: zeros. */
struct tk_element {
	size_t size;
	const void *fresh;
};

struct tk_layout {
	struct tk_element process, thread, object, hold, wait, wakeup;
	size_t cache; /* size of a thread's cache: TK_CACHE of struct tk_cached, and members of the consumer */
};

struct tracker {
	int error;
	bool apart; /* an object in shared memory is a separate object for each process */
	bool renew; /* the use of a destroyed object adds a new object */
	uint32_t free_hold, free_wait, free_wakeup;
	uint32_t known_count, process_count;
	uint64_t wait_id;
	struct rd_pool threads, objects, holds, waits, wakeups, wakings, shares, caches;
	struct rd_map object_of, pthread_of, serial_of, tid_of;
	struct tk_known *known; /* by the reader's number of a thread */
	uint8_t *processes;
	const struct tk_layout *layout;
	/* A thread uses an object that is not in its cache. Return: `own` of the cache entry. NULL: 0. */
	uint32_t (*used)(struct tracker *t, uint32_t thread, uint32_t object);
	/* Another thread begins with the kernel thread id of this thread, so this thread has ended. NULL: nothing to do. */
	void (*replaced)(struct tracker *t, uint32_t thread);
	/* An object is new. NULL: nothing to do. */
	void (*object_made)(struct tracker *t, uint32_t object);
};

/* ---- tracker.c ---- */

/* tk_open - allocates the tables. @layout must stay valid. Return: 0 or -ENOMEM. Call tk_close() in both cases. */
int tk_open(struct tracker *t, const struct tk_layout *layout);
void tk_close(struct tracker *t);
/* tk_drop_ranges - frees the ranges of all processes, before other processes take their place. */
void tk_drop_ranges(struct tracker *t);
/* tk_new - adds an element. */
uint32_t tk_new(struct tracker *t, struct rd_pool *pool, const struct tk_element *element);
/* tk_process_reach - adds processes up to a number. Return: 0 or -ENOMEM. */
int tk_process_reach(struct tracker *t, uint32_t process);
void tk_map_set(struct tracker *t, struct rd_map *map, uint64_t a, uint64_t b, uint64_t value);
uint32_t tk_map_get(const struct rd_map *map, uint64_t a, uint64_t b);

/* ---- threads.c ---- */

uint32_t tk_child_of_pid(const struct tracker *t, uint32_t parent, uint32_t pid);
/* tk_number_of_any_tid - the number in the reader, plus 1, of a kernel thread id in any process; 0: none, or TK_SEVERAL. */
#define TK_SEVERAL UINT32_MAX
uint32_t tk_number_of_any_tid(const struct tracker *t, uint32_t tid);
/*
 * tk_number_of_tid - the number in the reader, plus 1, of a kernel thread id in a process, or else in another process
 *
 * Return: 0 if there is none, or if several threads may be meant.
 */
uint32_t tk_number_of_tid(const struct tracker *t, uint32_t process, uint32_t tid);
/* tk_thread_of_tid - the thread with a kernel thread id; 0 if it was not declared. */
uint32_t tk_thread_of_tid(struct tracker *t, uint32_t process, uint32_t tid);
/* tk_thread_named - the thread with the pthread_t that is the object of an event. */
uint32_t tk_thread_named(const struct tracker *t, const struct tk_event *e);
/* tk_create - the thread that an event reports as created; it may have begun already. */
uint32_t tk_create(struct tracker *t, const struct tk_event *e);
/* tk_own_event - updates the tracker only: a thread ends or is detached; a process starts, exits or calls exec(). */
void tk_own_event(struct tracker *t, const struct tk_event *e, enum tk_action action);
/* tk_process_left - after all events: whether a process exited, or became another program. */
bool tk_process_left(const struct tracker *t, const struct tk_process *p);
/*
 * tk_process_end - the time when a process ended: @killed, or @seen if it did not leave, but not before its last event
 *
 * @killed, @seen: as in ptt_tracker_ends(). Return: TK_NEVER for a process without events.
 */
int64_t tk_process_end(const struct tracker *t, uint32_t process, int64_t killed, int64_t seen);
/*
 * tk_first_event - finds or adds the thread of an event that begins a thread, or that is the first event of its number
 *
 * Return: false if the number was not declared.
 */
bool tk_first_event(struct tracker *t, struct tk_event *e, enum tk_action action);
void tk_end(struct tracker *t, const struct tk_event *e);
/* tk_scheduled - the thread that an event about a policy or a priority names; 0: unknown. */
uint32_t tk_scheduled(const struct tracker *t, const struct tk_event *e);
/* tk_join_target - the thread that a join is for; 0: unknown. @owner: this thread, if known at the beginning of the join; else 0 */
uint32_t tk_join_target(const struct tracker *t, const struct tk_event *e, uint32_t owner);

/* ---- objects.c ---- */

/* tk_share_at - the shared memory at an address of a process; 0: none. */
uint32_t tk_share_at(const struct tracker *t, uint32_t process, uint64_t address);
/* tk_known_object - the object at an address, destroyed or not; 0: never seen. */
uint32_t tk_known_object(const struct tracker *t, uint32_t process, uint32_t kind, uint64_t address);
/* tk_renew - adds a new object in the place of this object. Return: the new object. */
uint32_t tk_renew(struct tracker *t, uint32_t object, const struct tk_event *e);
/* tk_make_ranges - makes the ranges of `processes` anew, by all shared memory; their `ranges` are not valid. */
void tk_make_ranges(struct tracker *t);
/* tk_meet - fills an entry of the cache of a thread. Return: the entry. */
struct tk_cached *tk_meet(struct tracker *t, const struct tk_event *e, uint32_t kind, uint64_t address,
			  struct tk_cached *cached);
/* tk_init - the object that an event initializes; 0: a named semaphore that is open already. */
uint32_t tk_init(struct tracker *t, const struct tk_event *e);
/* tk_destroy - the object that an event destroys; 0: a named semaphore that stays open. */
uint32_t tk_destroy(struct tracker *t, const struct tk_event *e);

/* tk_is_numbered - whether an object has a number in place of an address: the trace has only its waits and wake-ups. */
static inline bool tk_is_numbered(uint64_t address)
{
	return PTT_IS_NUMBERED(address);
}

/* tk_knows_holds - whether acquisitions and releases of an object are recorded, and not only its waits. */
static inline bool tk_knows_holds(const struct tk_process *p, uint32_t kind, uint64_t address)
{
	return p->full[kind] && !tk_is_numbered(address);
}

static inline uint64_t tk_key(uint64_t address, uint32_t kind)
{
	return (address & PTT_OBJECT_MASK) | (uint64_t)kind << 48;
}

/* ---- lists.c ---- */

/* tk_hold_find - the hold that a thread has of an object, or 0. */
uint32_t tk_hold_find(const struct tracker *t, uint32_t thread, uint32_t object);

/* tk_wait_begin - adds a wait at the head of both lists. The members of the consumer are as in the layout. */
uint32_t tk_wait_begin(struct tracker *t, const struct tk_event *e, uint32_t object, uint8_t mode);
/* tk_wait_of - the innermost wait of a thread for an object, or 0. */
uint32_t tk_wait_of(const struct tracker *t, uint32_t thread, uint32_t object);
/* tk_wait_at - the innermost wait of the thread at the address of an event; a new object may be there by now. */
uint32_t tk_wait_at(const struct tracker *t, const struct tk_event *e);
/* tk_wait_end - removes a wait from all lists. Its element does not change until another wait begins. */
void tk_wait_end(struct tracker *t, uint32_t number);

/* ---- wakeups.c ---- */

/*
 * tk_wake - gives a wake-up to @count waiters, or to all waiters without a wake-up if they are fewer
 *
 * The consumer sets its own members of the element. Return: the wake-up, which is the latest of the object.
 */
uint32_t tk_wake(struct tracker *t, const struct tk_event *e, uint32_t object, uint32_t count, uint8_t kind);
/* tk_wake_more - gives the latest wake-up to @count more waiters, even if there are fewer. */
void tk_wake_more(struct tracker *t, uint32_t object, uint32_t count);
/*
 * tk_wake_use - a waiter uses the oldest wake-up since @since. Return: the wake-up, or 0
 *
 * Its element does not change until the next wake-up.
 */
uint32_t tk_wake_use(struct tracker *t, uint32_t object, int64_t since);
/* tk_wake_excess - the number of wake-ups without a waiter, after a wait has ended without a wake-up. */
uint32_t tk_wake_excess(const struct tracker *t, uint32_t object);
/* tk_wake_drop - forgets the oldest @count wake-ups. */
void tk_wake_drop(struct tracker *t, uint32_t object, uint32_t count);
/* tk_arrive - a thread arrives at a barrier. @threads: number of threads of a round; 0: unknown. Return: the round is complete. */
bool tk_arrive(struct tracker *t, uint32_t object, uint32_t threads);
/* tk_arrive_only - the same for a thread that does not wait there. */
bool tk_arrive_only(struct tracker *t, const struct tk_event *e, uint32_t object, uint32_t threads);
/* tk_round_over - the last thread of a round wakes all threads that wait at the barrier. Return: the wake-up. */
uint32_t tk_round_over(struct tracker *t, uint32_t object);

#endif
