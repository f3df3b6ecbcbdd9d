/* SPDX-License-Identifier: MIT */
/* state.h - processes, threads, objects, holds and waits as events change them: what all consumers of the tracker share. */
/*
 * A consumer has a struct tracker at the beginning of its own state. The elements of its tables begin with those of the
 * tracker and have behind them what only the consumer needs; it says how large they are when it opens the tracker. Numbers of
 * elements stand for them everywhere; 0 is none. Functions return what they found or made; where memory is out they
 * return 0 and leave it in `error`.
 */
#ifndef PTT_TRACKER_STATE_H
#define PTT_TRACKER_STATE_H

#include "../../reader/tables.h"
#include "catalogue.h"

#define TK_NEVER INT64_MIN

/* An event, and where it belongs: e->ts and e->ts are the same. */
struct tk_event {
	union {
		struct ptt_event;
		struct ptt_event e;
	};
	uint32_t thread;
	uint32_t process;
};

struct tk_process {
	int64_t last; /* event */
	uint32_t parent; /* number + 1, or 0 */
	uint32_t objects; /* list, the latest first */
	uint32_t threads; /* list, the first one first */
	uint32_t threads_last;
	uint32_t thread_count; /* with events */
	struct tk_range *ranges; /* of its addresses that lie in shared memory: apart, in their order */
	uint32_t range_count;
	uint32_t range_room;
	int64_t exec_ns; /* when a thread last executed another program, by its last event if that did not fail */
	uint32_t execs;	 /* that thread */
	int64_t reaped_ns; /* when a thread of another process had waited for its end */
	uint32_t ppid;
	uint32_t first; /* thread, which has its process id */
	uint32_t space; /* of process ids, 0 = not known */
	bool reaped;
	bool exited; /* a thread left it in an orderly way */
	bool leveled; /* it was said at which level it is recorded */
	bool full[PTT_KINDS]; /* by kind: changes of state are recorded, not only waits */
};

/* Memory of a process that others have mapped too. */
struct tk_share {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint32_t process;
	uint32_t memory;
};

/* What of it was not mapped for something else later. */
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
	uint32_t stack; /* as of a hold */
	uint32_t owner; /* holder, or thread whose end is waited for */
	uint32_t mutex; /* of a condition wait */
	uint32_t thread_next;
	uint32_t object_next;
	uint32_t object_prev;
	uint8_t kind;
	uint8_t mode;
};

/* A wake-up that waiters of an object were given and have not used, in the list of the object. */
struct tk_wakeup {
	int64_t ts;
	uint64_t site;
	uint32_t stack; /* as of a hold */
	uint32_t thread; /* that gave it */
	uint32_t left; /* so many have not used it */
	uint32_t next; /* given later */
	uint32_t prev;
	uint8_t kind; /* PTT_WAKE_… */
};

/* What was done to wake the waiters of an object. */
struct tk_waking {
	uint64_t woken_to; /* waits up to this id have all been given a wake-up */
	uint32_t first; /* list, the oldest first */
	uint32_t last;
	uint32_t pending; /* waiters that have been given one */
	uint32_t latest; /* wake-up, whether it is used or anybody waited for it or not */
};

/* What a thread used last, by address. */
#define TK_CACHE 64u

struct tk_cached {
	uint64_t key;
	uint32_t object;
	uint32_t own; /* the consumer's */
};

/* The row of a thread, and its process and id as they were declared. */
struct tk_known {
	uint32_t thread;
	uint32_t process;
	uint32_t tid;
	bool known;
	bool allowed;
	bool seen; /* the thread has had an event */
	bool switches; /* the kernel's context switches of it are recorded */
	uint16_t cpu; /* that it got last */
};

/* Elements of a consumer: their size, and what they are when they are new; NULL: zero. */
struct tk_element {
	size_t size;
	const void *fresh;
};

struct tk_layout {
	struct tk_element process, thread, object, hold, wait, wakeup;
	size_t cache; /* of a thread: TK_CACHE of struct tk_cached, and what the consumer has behind them */
};

struct tracker {
	int error;
	bool apart; /* objects in memory that processes share are one for each process */
	bool renew; /* an object that is used after its end is another object */
	uint32_t free_hold, free_wait, free_wakeup;
	uint32_t known_count, process_count;
	uint64_t wait_id;
	struct rd_pool threads, objects, holds, waits, wakeups, wakings, shares, caches;
	struct rd_map object_of, pthread_of, serial_of, tid_of;
	struct tk_known *known; /* by the reader's number of a thread */
	uint8_t *processes;
	const struct tk_layout *layout;
	/* A thread uses an object that it did not use lately. Return: what is kept beside it. NULL: nothing is. */
	uint32_t (*used)(struct tracker *t, uint32_t thread, uint32_t object);
	/* A thread begins with the kernel thread id of another one, which is over. NULL: nothing to do. */
	void (*replaced)(struct tracker *t, uint32_t thread);
	/* An object is there that was not before. NULL: nothing to do. */
	void (*object_made)(struct tracker *t, uint32_t object);
};

/* ---- tracker.c ---- */

/* tk_open - @layout stays where it is. Return: 0 or -ENOMEM; tk_close() is needed either way. */
int tk_open(struct tracker *t, const struct tk_layout *layout);
void tk_close(struct tracker *t);
/* tk_drop_ranges - frees the ranges of all processes, before `processes` are replaced by others. */
void tk_drop_ranges(struct tracker *t);
/* tk_new - a new element. */
uint32_t tk_new(struct tracker *t, struct rd_pool *pool, const struct tk_element *element);
/* tk_process_reach - makes processes known up to a number. Return: 0 or -ENOMEM. */
int tk_process_reach(struct tracker *t, uint32_t process);
void tk_map_set(struct tracker *t, struct rd_map *map, uint64_t a, uint64_t b, uint64_t value);
uint32_t tk_map_get(const struct rd_map *map, uint64_t a, uint64_t b);

/* ---- threads.c ---- */

uint32_t tk_child_of_pid(const struct tracker *t, uint32_t parent, uint32_t pid);
/* tk_number_of_any_tid - the reader's number plus 1 of a kernel thread id in any process, or TK_SEVERAL. */
#define TK_SEVERAL UINT32_MAX
uint32_t tk_number_of_any_tid(const struct tracker *t, uint32_t tid);
/*
 * tk_number_of_tid - the reader's number plus 1 of a kernel thread id, of another process if this one has none; 0 where that
 * may be several
 */
uint32_t tk_number_of_tid(const struct tracker *t, uint32_t process, uint32_t tid);
/* tk_thread_of_tid - the thread with a kernel thread id, 0 if it was never declared. */
uint32_t tk_thread_of_tid(struct tracker *t, uint32_t process, uint32_t tid);
/* tk_thread_named - the thread whose pthread_t is the object of an event. */
uint32_t tk_thread_named(const struct tracker *t, const struct tk_event *e);
/* tk_create - the thread that an event says was created; it may have begun already. */
uint32_t tk_create(struct tracker *t, const struct tk_event *e);
/* tk_own_event - what only the tracker has to know: that a thread ended or was detached, that a process starts, exits or execs. */
void tk_own_event(struct tracker *t, const struct tk_event *e, enum tk_action action);
/* tk_process_left - after all events: it ended in an orderly way, or became another program. */
bool tk_process_left(const struct tracker *t, const struct tk_process *p);
/* tk_process_end - when a process ended: with its last event if one says so, or else when it was seen that it had. */
int64_t tk_process_end(const struct tracker *t, uint32_t process, int64_t killed, int64_t seen);
/*
 * tk_first_event - finds or makes the thread of an event that begins it, or that is the first behind its number
 *
 * False: it was never declared.
 */
bool tk_first_event(struct tracker *t, struct tk_event *e, enum tk_action action);
void tk_end(struct tracker *t, const struct tk_event *e);
/* tk_scheduled - the thread whose scheduling an event is about. */
uint32_t tk_scheduled(const struct tracker *t, const struct tk_event *e);
/* tk_join_target - the thread that a join is for: @owner if that was known at the join's beginning, 0 if not. */
uint32_t tk_join_target(const struct tracker *t, const struct tk_event *e, uint32_t owner);

/* ---- objects.c ---- */

/* tk_share_at - the shared memory that an address of a process lies in. */
uint32_t tk_share_at(const struct tracker *t, uint32_t process, uint64_t address);
/* tk_known_object - the object at an address, whatever became of it; 0: never seen. */
uint32_t tk_known_object(const struct tracker *t, uint32_t process, uint32_t kind, uint64_t address);
/* tk_renew - what an event is about is another object than this one, which was there. Return: that. */
uint32_t tk_renew(struct tracker *t, uint32_t object, const struct tk_event *e);
/* tk_make_ranges - lets `processes` that have replaced others have their shared memory; what they say of it means nothing. */
void tk_make_ranges(struct tracker *t);
/* tk_meet - fills an entry of a thread's cache. Return: the entry. */
struct tk_cached *tk_meet(struct tracker *t, const struct tk_event *e, uint32_t kind, uint64_t address,
			  struct tk_cached *cached);
/* tk_init - the object that an event initializes; 0 where it is a named semaphore that is open already. */
uint32_t tk_init(struct tracker *t, const struct tk_event *e);
/* tk_destroy - the object that an event destroys; 0 where it is a named semaphore that stays open. */
uint32_t tk_destroy(struct tracker *t, const struct tk_event *e);

/* tk_is_numbered - what stands for an object is its number: of such a one waits are recorded, and what ends them. */
static inline bool tk_is_numbered(uint64_t address)
{
	return PTT_IS_NUMBERED(address);
}

/* tk_knows_holds - it is recorded when an object of a kind is taken and given back, and not only who waits for it. */
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

/* tk_wait_begin - a new wait at the head of both lists; all else in its element is as in the layout. */
uint32_t tk_wait_begin(struct tracker *t, const struct tk_event *e, uint32_t object, uint8_t mode);
/* tk_wait_of - the innermost wait of a thread for an object, or 0. */
uint32_t tk_wait_of(const struct tracker *t, uint32_t thread, uint32_t object);
/* tk_wait_at - the innermost wait of the thread for what was at the address then; another object may be there by now. */
uint32_t tk_wait_at(const struct tracker *t, const struct tk_event *e);
/* tk_wait_end - takes a wait out of all lists; its element stays as it is until another wait begins. */
void tk_wait_end(struct tracker *t, uint32_t number);

/* ---- wakeups.c ---- */

/*
 * tk_wake - gives a wake-up to @count waiters, as far as so many have none yet. Return: it, the object's latest
 *
 * What the consumer has behind it in the element is for the consumer to set.
 */
uint32_t tk_wake(struct tracker *t, const struct tk_event *e, uint32_t object, uint32_t count, uint8_t kind);
/* tk_wake_more - gives the latest wake-up to more waiters, whether there are so many or not. */
void tk_wake_more(struct tracker *t, uint32_t object, uint32_t count);
/*
 * tk_wake_use - a waiter uses the oldest wake-up that was given at @since or later. Return: it, or 0
 *
 * Its element stays as it is until another one is given.
 */
uint32_t tk_wake_use(struct tracker *t, uint32_t object, int64_t since);
/* tk_wake_excess - how many of the wake-ups are for nobody, after a wait has ended without one. */
uint32_t tk_wake_excess(const struct tracker *t, uint32_t object);
/* tk_wake_drop - forgets the oldest wake-ups, so many of them. */
void tk_wake_drop(struct tracker *t, uint32_t object, uint32_t count);
/* tk_arrive - a thread arrives at a barrier for so many, 0: not known. Return: whether its round is complete. */
bool tk_arrive(struct tracker *t, uint32_t object, uint32_t threads);
/* tk_arrive_only - the same of a thread that does not wait there. */
bool tk_arrive_only(struct tracker *t, const struct tk_event *e, uint32_t object, uint32_t threads);
/* tk_round_over - the thread that came last to a barrier wakes all that wait there. Return: its wake-up. */
uint32_t tk_round_over(struct tracker *t, uint32_t object);

#endif
