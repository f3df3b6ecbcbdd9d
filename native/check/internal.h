/* SPDX-License-Identifier: MIT */
/* internal.h - what the parts of the checker share: tables that never move, and what each part offers those above it. */
#ifndef PTTCHECK_INTERNAL_H
#define PTTCHECK_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "../reader/traceset.h"
#include "../reader/tables.h"
#include "nptl_trace_events.h"
#include "pttcheck.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define CK_NEVER INT64_MIN
#define CK_KINDS 16

enum { CK_EXCLUSIVE, CK_SHARED };

/* A lock that a thread holds, in the lists of its thread and of its object. */
struct ck_hold {
	int64_t since;
	uint64_t site;
	uint64_t address;
	uint32_t thread;
	uint32_t object;
	uint32_t depth;
	uint32_t thread_next; /* the latest first */
	uint32_t thread_prev;
	uint32_t object_prev;
	uint32_t object_next;
	uint8_t mode;
	uint8_t kind;
};

/* A wait that goes on, in the lists of its thread and of its object. */
struct ck_wait {
	int64_t since;
	uint64_t site;
	uint64_t id;
	uint64_t address;
	uint64_t mutex_address; /* of a condition wait */
	int64_t looked;		/* when anybody took that mutex last, before the thread took it for this wait */
	uint32_t thread;
	uint32_t object;
	uint32_t owner;	 /* thread that the lock itself named, or whose end is waited for */
	uint32_t mutex;	 /* of a condition wait */
	uint32_t node;	 /* of a barrier wait whose round is complete: all that came before, if anything */
	uint32_t rival;	 /* fact that stands if this condition wait ends by a wake-up */
	uint32_t inverter; /* thread of lower priority that had the lock when the wait began */
	uint32_t thread_next; /* the innermost first */
	uint32_t object_prev;
	uint32_t object_next;
	int32_t priority;
	int32_t inverter_priority;
	uint8_t kind;
	uint8_t mode;
	bool timed;
	bool retaken; /* its mutex */
	bool shared; /* the lock says that other processes may use it */
	bool met; /* a barrier wait whose round is complete */
};

#define CK_INITED 1u
#define CK_SHARED_MEMORY 2u
#define CK_DESTROYED 4u
#define CK_ENDED 8u    /* another object has its address */
#define CK_ROBUST 16u
#define CK_INHERITS 32u /* priorities */
#define CK_DOUBT 64u   /* who holds it was not what the events said: nobody is accused of releasing it */
#define CK_AS_LOCK 128u /* a semaphore that whoever took it gives back */

/* Who did something last. */
struct ck_last {
	int64_t ts;
	uint64_t site;
	uint32_t thread; /* 0: nobody yet */
	uint32_t detail;
};

struct ck_object {
	uint64_t address;
	uint32_t process;
	uint32_t kind;
	uint32_t flags;
	uint32_t before; /* object that had this address, or 0 */
	uint32_t holds;	 /* list */
	uint32_t waits;	 /* list, the latest first */
	uint32_t waiters;
	uint32_t woken; /* of the waiters, how many have been woken */
	uint64_t woken_to; /* waits up to this id have been woken, as far as can be told */
	uint64_t mutex_address; /* of the waits for a condition, */
	bool two_mutexes;	/* unless they have several */
	uint32_t arrived; /* at a barrier, in this round */
	uint32_t barrier_count;
	uint32_t round; /* node: everything before this round's arrivals */
	uint32_t edges_out; /* lists of orders */
	uint32_t edges_in;
	uint32_t mark;
	uint32_t opens;
	int64_t taken;	     /* a mutex: when last, other than by the end of a wait; */
	int64_t taken_before; /* and before that */
	struct ck_last init;
	struct ck_last destroyed;
	struct ck_last released;
	struct ck_last woke; /* a condition: the last wake-up; detail: CK_WOKE_…; a semaphore: the last post */
	uint32_t sem_hold;   /* of a semaphore used as a lock */
	uint32_t process_next;
	uint32_t kept;	     /* fact of a thread that ended and had it, as long as nobody asks for it */
};

#define CK_WOKE_ALL 1u
#define CK_WOKE_NOBODY 4u
#define CK_WOKE_UNLOCKED 2u /* whoever did it had taken no mutex since it last woke anybody */

#define CK_BEGUN 1u
#define CK_ENDED_THREAD 2u
#define CK_JOINED 4u
#define CK_DETACHED 8u
#define CK_WHOLE 16u /* its events are there from its beginning on */
#define CK_AWAITED 32u /* another thread waits for its end; known at the end */

#define CK_CACHE 64u

struct ck_cached {
	uint64_t key;
	uint32_t object;
	uint32_t reserved;
};

/* Asked for before in this state: see order.c. */
struct ck_asked {
	uint64_t held;
	uint32_t object;
	uint32_t node;
};

struct ck_thread {
	struct ptt_check_thread_row pub;
	struct ck_cached cache[CK_CACHE];
	struct ck_asked asked[CK_CACHE];
	uint32_t cond_left; /* object of the last condition wait that has ended, */
	int64_t cond_left_ts; /* and when */
	uint64_t pthread;
	uint64_t held_sum; /* of what it holds, whatever the order */
	uint32_t held;	   /* how much it holds, once routines left out */
	int64_t first_ts;
	int64_t last_ts;
	int64_t busy_ts; /* when it last did anything but create and join threads */
	int64_t end_ts;
	struct ck_last created; /* thread: the creator */
	uint32_t serial;
	uint32_t flags;
	uint32_t holds;
	uint32_t waits;
	uint32_t base; /* node: everything that came before */
	uint32_t own;  /* node of what it does now, or 0 */
	uint32_t mark;
	uint32_t priority;
	uint32_t process_next;
	uint32_t late_next; /* in the list of its process */
	uint64_t cond_mutex; /* address of the mutex that a wait which has just begun will release */
	bool locked;	     /* a mutex, since it last woke anybody */
};

struct ck_process {
	uint32_t parent; /* number + 1, or 0 */
	bool left;	 /* in an orderly way */
	bool replaced;	 /* by another program */
	bool hung;	 /* nobody in it will do anything any more, unless from outside; known at the end */
	bool alone;	 /* and neither will anybody who may have memory in common with it */
	bool full[CK_KINDS]; /* by domain: what is taken and released is recorded, not only waits */
	int64_t last_ts;
	bool explained;	 /* a fact says what keeps it; known at the end */
	uint32_t first_thread;
	uint32_t objects; /* lists; */
	uint32_t threads; /* the first one first */
	uint32_t threads_last;
	uint32_t late;	 /* threads that may be what others wait for at a barrier; known at the end */
	uint32_t shares; /* what was mapped last first */
	struct ck_last forked; /* thread: of the parent, which made it by fork() */
	uint64_t stack; /* of the first thread: from here on; 0: not known */
	uint64_t *memory; /* pairs of addresses */
	uint32_t memory_count;
};

/* Memory that several processes have mapped. */
struct ck_share {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint32_t process;
	uint32_t memory;
	uint32_t process_next;
};

/* Everything that one thread did between two points where threads meet. */
struct ck_node {
	uint32_t before[2];
	uint32_t mark;
};

struct ck_event {
	int64_t ts;
	uint64_t object;
	uint64_t site;
	uint64_t payload;
	uint32_t thread;
	uint32_t process;
	uint16_t id;
};

enum ck_field {
	CK_RESULT, CK_OWNER, CK_COUNT, CK_VALUE, CK_SERIAL, CK_MUTEX, CK_CREATOR, CK_SHARED_FIELD, CK_WRITE,
	CK_ROUTINE, CK_DETACHED_FIELD, CK_TIMED, CK_PROTOCOL, CK_ROBUST_FIELD, CK_PRIORITY, CK_KIND, CK_CHILD,
	CK_FIELDS,
};

struct ptt_check {
	int64_t long_hold;
	int64_t long_wait;
	int error;
	uint64_t lost;
	uint64_t futex_waits; /* of the program's own: whose locks these are nobody says */
	uint64_t wait_id;
	int64_t last_ts;
	struct rd_pool objects, threads, holds, waits, nodes, edges, orders, facts, steps, held, shares;
	uint32_t free_hold, free_wait;
	struct rd_map object_of, pthread_of, serial_of, tid_of, seen, seen_at, edge_of, order_of, set_of;
	struct ck_known {
		uint32_t thread;
		uint32_t process;
		uint32_t tid;
		bool known;
	} *known;
	uint32_t known_count;
	struct ck_process *processes;
	uint32_t process_count;
	uint32_t mark; /* of the last walk */
	uint32_t telling; /* the fact that steps are added to */
	uint64_t crowded; /* locks asked for by threads that held too many others to keep the orders */
	uint64_t walked; /* steps of searches for orders, which are bounded */
	uint32_t *stack;
	uint32_t stack_room;
	uint8_t level[1024];
	struct ck_field_at {
		uint8_t number;
		uint8_t offset;
		uint8_t type;
	} field_at[1024][CK_FIELDS];
	const struct ptt_event_type *type[1024];
};

#define CK_OBJECT(c, i) (&((struct ck_object *)(void *)(c)->objects.items)[i])
#define CK_THREAD(c, i) (&((struct ck_thread *)(void *)(c)->threads.items)[i])
#define CK_HOLD(c, i) (&((struct ck_hold *)(void *)(c)->holds.items)[i])
#define CK_WAITING(c, i) (&((struct ck_wait *)(void *)(c)->waits.items)[i])
#define CK_NODE(c, i) (&((struct ck_node *)(void *)(c)->nodes.items)[i])
#define CK_FACT(c, i) (&((struct ptt_check_fact *)(void *)(c)->facts.items)[i])
#define CK_SHARE(c, i) (&((struct ck_share *)(void *)(c)->shares.items)[i])
#define CK_STEP(c, i) (&((struct ptt_check_step *)(void *)(c)->steps.items)[i])

/* What follows is in order: each file calls those above it only, and check.c calls them all. */

static inline uint32_t ck_new(struct ptt_check *c, struct rd_pool *pool)
{
	return rd_pool_new(pool, &c->error);
}

static inline struct ck_last ck_now(const struct ck_event *e)
{
	return (struct ck_last){ .ts = e->ts, .site = e->site, .thread = e->thread };
}

/* ---- fields.c ---- */

void ck_learn_catalogue(struct ptt_check *c);
int64_t ck_number(const struct ptt_check *c, const struct ck_event *e, enum ck_field field, int64_t none);

/* ---- before.c ---- */

/* ck_publish - the node of all that a thread has done so far; what it does from now on is another one's. */
uint32_t ck_publish(struct ptt_check *c, uint32_t thread);
/* ck_joined_node - a node after both. */
uint32_t ck_joined_node(struct ptt_check *c, uint32_t a, uint32_t b);
/* ck_own_node - of what a thread does now. */
uint32_t ck_own_node(struct ptt_check *c, uint32_t thread);
/* ck_apart_in_time - whether one of two nodes is over when the other begins; also when that is too far to see. */
bool ck_apart_in_time(struct ptt_check *c, uint32_t a, uint32_t b);
/* ck_stack_push - for walks along nodes and orders, one at a time; false: no memory. */
bool ck_stack_push(struct ptt_check *c, uint32_t *depth, uint32_t value);

/* ---- holds.c ---- */

/* ck_share_of - a number that stands for a hold in the sum over what a thread holds. */
static inline uint64_t ck_share_of(uint32_t object, uint8_t mode)
{
	return rd_hash(object, (uint64_t)mode + 1);
}

uint32_t ck_hold_of(const struct ptt_check *c, uint32_t thread, uint32_t object);
void ck_hold_begin(struct ptt_check *c, const struct ck_event *e, uint32_t object, uint8_t mode);
void ck_hold_end(struct ptt_check *c, uint32_t number);
/* ck_drop_holds - nobody holds an object any more, as far as is known. */
void ck_drop_holds(struct ptt_check *c, uint32_t object);

/* ---- waits.c ---- */

uint32_t ck_wait_begin(struct ptt_check *c, const struct ck_event *e, uint32_t object, uint8_t mode);
/* ck_wait_end - takes a wait of a thread for an object out of all lists; false: there is none. */
bool ck_wait_end(struct ptt_check *c, uint32_t thread, uint32_t object, struct ck_wait *out);
/* ck_is_woken - a signal or broadcast has ended a condition wait, as far as can be told. */
static inline bool ck_is_woken(const struct ptt_check *c, const struct ck_wait *w)
{
	return w->id <= CK_OBJECT(c, w->object)->woken_to;
}

/* ck_wait_at - the innermost wait of a thread for the object that had this address then. */
uint32_t ck_wait_at(const struct ptt_check *c, const struct ck_event *e);

/* ---- facts.c ---- */

/*
 * ck_found - a new fact, or 0 if it is known already or there are too many of its kind from this place
 *
 * @a, @b: what makes it the same as another one
 */
uint32_t ck_found(struct ptt_check *c, enum ptt_fact_kind kind, const struct ck_event *e, uint64_t a, uint64_t b,
		  uint32_t flags);
/*
 * ck_found_more - as ck_found(), for what has a size: of the same ones the largest is told. Of one that is larger than
 * those before, all steps are to be given anew.
 */
uint32_t ck_found_more(struct ptt_check *c, enum ptt_fact_kind kind, const struct ck_event *e, uint64_t a, uint64_t b,
		       int64_t value);
/* ck_step - one more step of the fact that ck_found() or ck_found_more() has returned last. */
struct ptt_check_step *ck_step(struct ptt_check *c, enum ptt_check_what what, uint32_t thread, int64_t ts, uint64_t site,
			       uint32_t object);
void ck_step_last(struct ptt_check *c, enum ptt_check_what what, const struct ck_last *last, uint32_t object);
void ck_step_hold(struct ptt_check *c, uint32_t hold);
void ck_step_wait(struct ptt_check *c, uint32_t wait, uint32_t other);
/* ck_step_now - what the event itself is. */
struct ptt_check_step *ck_step_now(struct ptt_check *c, enum ptt_check_what what, const struct ck_event *e,
				   uint32_t object);

/* ---- objects.c ---- */

/* ck_known_object - the object at an address, whatever became of it; 0: never seen. */
uint32_t ck_known_object(const struct ptt_check *c, uint32_t process, uint32_t kind, uint64_t address);
uint32_t ck_object(struct ptt_check *c, const struct ck_event *e, uint32_t kind, uint64_t address);
/* ck_use - the object that an event is about, for one that uses it: of a destroyed one another becomes. */
uint32_t ck_use(struct ptt_check *c, const struct ck_event *e, uint32_t kind);
bool ck_lasting(const struct ptt_check *c, const struct ck_object *o);
void ck_init(struct ptt_check *c, const struct ck_event *e, uint32_t kind);
void ck_destroy(struct ptt_check *c, const struct ck_event *e, uint32_t kind);
void ck_use_destroyed(struct ptt_check *c, const struct ck_event *e, uint32_t object);

/* ---- held_waits.c ---- */

/* ck_waited_with_holds - a wait for no lock ends now: what its thread kept meanwhile, although others asked for it. */
void ck_waited_with_holds(struct ptt_check *c, const struct ck_event *e, uint32_t wait);

/* ---- order.c ---- */

int ck_order_open(struct ptt_check *c);
/* ck_ask - a thread asks for a lock in a way that may block it for ever, while it holds others. */
void ck_ask(struct ptt_check *c, const struct ck_event *e, uint32_t object, uint8_t mode);

/* ---- deadlock.c ---- */

typedef bool ck_visit_fn(struct ptt_check *c, uint32_t thread, void *data);

/* ck_each_blocker - calls back with each thread that a wait is for, until one call says true. */
bool ck_each_blocker(struct ptt_check *c, const struct ck_wait *w, bool at_end, ck_visit_fn *visit, void *data);
/* ck_deadlock - looks for a cycle of waits through a thread. @at_end: nothing more will happen. */
void ck_deadlock(struct ptt_check *c, uint32_t thread, const struct ck_event *e, bool at_end);
/* ck_forked_locks - waits in forked processes for locks whose owners are not there. */
void ck_forked_locks(struct ptt_check *c);
/* ck_blocked - a thread that nobody outside of the trace lets go on. */
bool ck_blocked(const struct ptt_check *c, uint32_t thread);

/* ---- conds.c ---- */

void ck_cond_in(struct ptt_check *c, const struct ck_event *e);
void ck_cond_out(struct ptt_check *c, const struct ck_event *e);
void ck_wake(struct ptt_check *c, const struct ck_event *e, bool all);
void ck_cond_unlocked(struct ptt_check *c, const struct ck_event *e, uint32_t mutex, uint32_t flags);
void ck_barrier_in(struct ptt_check *c, const struct ck_event *e);
void ck_barrier_out(struct ptt_check *c, const struct ck_event *e);
void ck_lost_wakeups(struct ptt_check *c);
void ck_stuck_barriers(struct ptt_check *c);

/* ---- stuck.c ---- */

/* ck_stuck - after all else that may keep a process for ever: it need not be told twice. */
void ck_stuck(struct ptt_check *c);

/* ---- threads.c ---- */

uint32_t ck_thread_of_number(struct ptt_check *c, uint32_t number);
uint32_t ck_thread_of_tid(struct ptt_check *c, uint32_t process, uint32_t tid);
void ck_create(struct ptt_check *c, const struct ck_event *e);
uint32_t ck_begin(struct ptt_check *c, const struct ck_event *e, uint32_t number);
void ck_fork(struct ptt_check *c, const struct ck_event *e);
void ck_end(struct ptt_check *c, const struct ck_event *e);
void ck_detach(struct ptt_check *c, const struct ck_event *e);
void ck_join_in(struct ptt_check *c, const struct ck_event *e);
void ck_join_out(struct ptt_check *c, const struct ck_event *e);
void ck_priority(struct ptt_check *c, const struct ck_event *e);
void ck_leaks(struct ptt_check *c);

/* ---- lock_waits.c ---- */

void ck_lock_wait(struct ptt_check *c, const struct ck_event *e, uint32_t kind);
void ck_lock_waited(struct ptt_check *c, const struct ck_event *e, uint32_t object);
void ck_sem_taken(struct ptt_check *c, const struct ck_event *e, bool waited);
void ck_sem_post(struct ptt_check *c, const struct ck_event *e);

/* ---- locks.c ---- */

enum ck_how { CK_PLAIN, CK_TRIED, CK_WAITED };

void ck_acquire(struct ptt_check *c, const struct ck_event *e, uint32_t object, uint8_t mode, enum ck_how how);
void ck_release(struct ptt_check *c, const struct ck_event *e, uint32_t kind);
void ck_lock_error(struct ptt_check *c, const struct ck_event *e, uint32_t kind);
void ck_exit_holding(struct ptt_check *c, const struct ck_event *e);
/* ck_kept_locks - takes back what was said of detached threads whose locks nobody asked for to the process' end. */
void ck_kept_locks(struct ptt_check *c);

/* ---- hung.c ---- */

/*
 * ck_find_hung - says of each process whether it is hung and whether it is alone.
 *
 * @ends: by process, when it ended; CK_NEVER: that is not known. @count: how many there are
 */
void ck_find_hung(struct ptt_check *c, const int64_t *ends, uint32_t count);

#endif
