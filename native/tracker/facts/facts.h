/* SPDX-License-Identifier: MIT */
/* facts.h - what the parts of the checker share: tables that never move, and what each part offers those above it. */
#ifndef PTT_TRACKER_FACTS_H
#define PTT_TRACKER_FACTS_H

#include "../state/state.h"
#include "nptl_trace_events.h"
#include "pttcheck.h"

/* A wait that goes on, and what only the checker asks of it. */
struct ck_wait {
	struct tk_wait;
	uint64_t mutex_address; /* of a condition wait */
	int64_t looked;		/* when anybody took that mutex last, before the thread took it for this wait */
	uint32_t node;	 /* of a barrier wait whose round is complete: all that came before, if anything */
	uint32_t rival;	 /* fact that stands if this condition wait ends by a wake-up */
	uint32_t inverter; /* thread of lower priority that had the lock when the wait began */
	int32_t priority;
	int32_t inverter_priority;
	bool timed;
	bool retaken; /* its mutex */
	bool shared; /* the lock says that other processes may use it */
	bool met; /* a barrier wait whose round is complete */
};

/* Flags of objects beside the tracker's. */
#define CK_ROBUST (PTT_OBJECT_OWN << 0)
#define CK_INHERITS (PTT_OBJECT_OWN << 1) /* priorities */
#define CK_DOUBT (PTT_OBJECT_OWN << 2)	/* who holds it was not what the events said: nobody is accused of releasing it */
#define CK_AS_LOCK (PTT_OBJECT_OWN << 3) /* a semaphore that whoever took it gives back */

/* Who did something last. */
struct ck_last {
	int64_t ts;
	uint64_t site;
	uint32_t thread; /* 0: nobody yet */
	uint32_t detail;
};

struct ck_object {
	struct ptt_track_object;
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
	int64_t taken;	     /* a mutex: when last, other than by the end of a wait; */
	int64_t taken_before; /* and before that */
	struct ck_last init;
	struct ck_last destroyed;
	struct ck_last released;
	struct ck_last woke; /* a condition: the last wake-up; detail: CK_WOKE_…; a semaphore: the last post */
	uint32_t sem_hold;   /* of a semaphore used as a lock */
	uint32_t kept;	     /* fact of a thread that ended and had it, as long as nobody asks for it */
};

#define CK_WOKE_ALL 1u
#define CK_WOKE_NOBODY 4u
#define CK_WOKE_UNLOCKED 2u /* whoever did it had taken no mutex since it last woke anybody */

/* Flags of threads beside the tracker's. */
#define CK_WHOLE (PTT_THREAD_OWN << 0)	 /* its events are there from its beginning on */
#define CK_AWAITED (PTT_THREAD_OWN << 1) /* another thread waits for its end; known at the end */

/* Asked for before in this state: see order.c. */
struct ck_asked {
	uint64_t held;
	uint32_t object;
	uint32_t node;
};

struct ck_thread {
	struct ptt_track_thread;
	uint32_t cond_left; /* object of the last condition wait that has ended, */
	int64_t cond_left_ts; /* and when */
	uint64_t held_sum; /* of what it holds, whatever the order */
	uint32_t locks;	   /* how much it holds, once routines left out */
	int64_t busy_ts; /* when it last did anything but create and join threads */
	struct ck_last created; /* thread: the creator */
	uint32_t base; /* node: everything that came before */
	uint32_t own;  /* node of what it does now, or 0 */
	uint32_t mark;
	uint32_t priority;
	uint32_t late_next; /* in the list of its process */
	uint64_t cond_mutex; /* address of the mutex that a wait which has just begun will release */
	bool locked;	     /* a mutex, since it last woke anybody */
};

struct ck_cache {
	struct tk_cached object[TK_CACHE];
	struct ck_asked asked[TK_CACHE];
};

struct ck_process {
	struct tk_process;
	bool hung;	 /* nobody in it will do anything any more, unless from outside; known at the end */
	bool alone;	 /* and neither will anybody who may have memory in common with it */
	bool explained;	 /* a fact says what keeps it; known at the end */
	uint32_t first_thread;
	uint32_t late;	 /* threads that may be what others wait for at a barrier; known at the end */
	struct ck_last forked; /* thread: of the parent, which made it by fork() */
	uint64_t stack; /* of the first thread: from here on; 0: not known */
	uint64_t *memory; /* pairs of addresses */
	uint32_t memory_count;
};

/* Everything that one thread did between two points where threads meet. */
struct ck_node {
	uint32_t before[2];
	uint32_t mark;
};

#define TK_IS_PROCESS struct ck_process
#define TK_IS_THREAD struct ck_thread
#define TK_IS_OBJECT struct ck_object
#define TK_IS_HOLD struct tk_hold
#define TK_IS_WAIT struct ck_wait
#define TK_IS_CACHE struct ck_cache
#include "../state/hot.h"

struct ptt_check {
	struct tracker t;
	int64_t long_hold;
	int64_t long_wait;
	uint64_t lost;
	uint64_t futex_waits; /* of the program's own: whose locks these are nobody says */
	struct rd_pool nodes, edges, orders, facts, steps, held;
	struct rd_map seen, seen_at, edge_of, order_of, set_of;
	uint32_t mark; /* of the last walk */
	uint32_t telling; /* the fact that steps are added to */
	uint64_t crowded; /* locks asked for by threads that held too many others to keep the orders */
	uint64_t walked; /* steps of searches for orders, which are bounded */
	uint32_t *stack;
	uint32_t stack_room;
};

#define CK_OBJECT(c, i) (&((struct ck_object *)(void *)(c)->t.objects.items)[i])
#define CK_THREAD(c, i) (&((struct ck_thread *)(void *)(c)->t.threads.items)[i])
#define CK_HOLD(c, i) (&((struct tk_hold *)(void *)(c)->t.holds.items)[i])
#define CK_WAITING(c, i) (&((struct ck_wait *)(void *)(c)->t.waits.items)[i])
#define CK_PROCESS(c, i) (&((struct ck_process *)(void *)(c)->t.processes)[i])
#define CK_NODE(c, i) (&((struct ck_node *)(void *)(c)->nodes.items)[i])
#define CK_FACT(c, i) (&((struct ptt_check_fact *)(void *)(c)->facts.items)[i])
#define CK_STEP(c, i) (&((struct ptt_check_step *)(void *)(c)->steps.items)[i])

/* What follows is in order: each file calls those above it only, and check.c calls them all. */

static inline uint32_t ck_new(struct ptt_check *c, struct rd_pool *pool)
{
	return rd_pool_new(pool, &c->t.error);
}

static inline struct ck_last ck_now(const struct tk_event *e)
{
	return (struct ck_last){ .ts = e->ts, .site = e->site, .thread = e->thread };
}

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

/* ---- objects.c ---- */

/* ck_share_of - a number that stands for a hold in the sum over what a thread holds. */
static inline uint64_t ck_share_of(uint32_t object, uint8_t mode)
{
	return rd_hash(object, (uint64_t)mode + 1);
}

static inline void ck_hold_begin(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);

	tk_hold_begin(&c->t, e, object, mode);
	t->locks += CK_OBJECT(c, object)->kind != PTT_KIND_ONCE;
	t->held_sum += ck_share_of(object, mode);
}

static inline void ck_hold_end(struct ptt_check *c, uint32_t number)
{
	const struct tk_hold *h = CK_HOLD(c, number);
	struct ck_thread *t = CK_THREAD(c, h->thread);

	t->locks -= h->kind != PTT_KIND_ONCE;
	t->held_sum -= ck_share_of(h->object, h->mode);
	tk_hold_end(&c->t, number);
}

/* ck_drop_holds - nobody holds an object any more, as far as is known. */
static inline void ck_drop_holds(struct ptt_check *c, uint32_t object)
{
	while (CK_OBJECT(c, object)->holds)
		ck_hold_end(c, CK_OBJECT(c, object)->holds);
}

/* ck_wait_begin - a wait, timed if the event has a word of that. */
uint32_t ck_wait_begin(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode);

/* ck_is_woken - a signal or broadcast has ended a condition wait, as far as can be told. */
static inline bool ck_is_woken(const struct ptt_check *c, const struct ck_wait *w)
{
	return w->id <= CK_OBJECT(c, w->object)->woken_to;
}

/* ---- facts.c ---- */

/*
 * ck_found - a new fact, or 0 if it is known already or there are too many of its kind from this place
 *
 * @a, @b: what makes it the same as another one
 */
uint32_t ck_found(struct ptt_check *c, enum ptt_fact_kind kind, const struct tk_event *e, uint64_t a, uint64_t b,
		  uint32_t flags);
/*
 * ck_found_more - as ck_found(), for what has a size: of the same ones the largest is told. Of one that is larger than
 * those before, all steps are to be given anew.
 */
uint32_t ck_found_more(struct ptt_check *c, enum ptt_fact_kind kind, const struct tk_event *e, uint64_t a, uint64_t b,
		       int64_t value);
/* ck_step - one more step of the fact that ck_found() or ck_found_more() has returned last. */
struct ptt_check_step *ck_step(struct ptt_check *c, enum ptt_check_what what, uint32_t thread, int64_t ts, uint64_t site,
			       uint32_t object);
void ck_step_last(struct ptt_check *c, enum ptt_check_what what, const struct ck_last *last, uint32_t object);
void ck_step_hold(struct ptt_check *c, uint32_t hold);
void ck_step_wait(struct ptt_check *c, uint32_t wait, uint32_t other);
/* ck_step_now - what the event itself is. */
struct ptt_check_step *ck_step_now(struct ptt_check *c, enum ptt_check_what what, const struct tk_event *e,
				   uint32_t object);

/* ck_object - the object at an address, whatever became of it. */
static inline uint32_t ck_object(struct ptt_check *c, const struct tk_event *e, uint32_t kind, uint64_t address)
{
	return tk_object(&c->t, e, kind, address);
}

/* ck_object_made - what a forked child finds at an address is what its parent made of it. */
void ck_object_made(struct tracker *t, uint32_t object);
/* ck_use - the object that an event is about, for one that uses it: of a destroyed one another becomes. */
uint32_t ck_use(struct ptt_check *c, const struct tk_event *e, uint32_t kind);
bool ck_lasting(const struct ptt_check *c, const struct ck_object *o);
void ck_init(struct ptt_check *c, const struct tk_event *e);
void ck_destroy(struct ptt_check *c, const struct tk_event *e);
void ck_use_destroyed(struct ptt_check *c, const struct tk_event *e, uint32_t object);

/* ---- held_waits.c ---- */

/* ck_waited_with_holds - a wait for no lock ends now: what its thread kept meanwhile, although others asked for it. */
void ck_waited_with_holds(struct ptt_check *c, const struct tk_event *e, uint32_t wait);

/* ---- order.c ---- */

int ck_order_open(struct ptt_check *c);
/* ck_ask - a thread asks for a lock in a way that may block it for ever, while it holds others. */
void ck_ask(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode);

/* ---- deadlock.c ---- */

typedef bool ck_visit_fn(struct ptt_check *c, uint32_t thread, void *data);

/* ck_each_blocker - calls back with each thread that a wait is for, until one call says true. */
bool ck_each_blocker(struct ptt_check *c, const struct ck_wait *w, bool at_end, ck_visit_fn *visit, void *data);
/* ck_deadlock - looks for a cycle of waits through a thread. @at_end: nothing more will happen. */
void ck_deadlock(struct ptt_check *c, uint32_t thread, const struct tk_event *e, bool at_end);
/* ck_forked_locks - waits in forked processes for locks whose owners are not there. */
void ck_forked_locks(struct ptt_check *c);
/* ck_blocked - a thread that nobody outside of the trace lets go on. */
bool ck_blocked(const struct ptt_check *c, uint32_t thread);

/* ---- conds.c ---- */

void ck_cond_in(struct ptt_check *c, const struct tk_event *e);
void ck_cond_out(struct ptt_check *c, const struct tk_event *e);
void ck_wake(struct ptt_check *c, const struct tk_event *e);
void ck_cond_unlocked(struct ptt_check *c, const struct tk_event *e, uint32_t mutex, uint32_t flags);
void ck_barrier_in(struct ptt_check *c, const struct tk_event *e);
void ck_barrier_out(struct ptt_check *c, const struct tk_event *e);
void ck_lost_wakeups(struct ptt_check *c);
void ck_stuck_barriers(struct ptt_check *c);

/* ---- stuck.c ---- */

/* ck_stuck - after all else that may keep a process for ever: it need not be told twice. */
void ck_stuck(struct ptt_check *c);

/* ---- threads.c ---- */

void ck_create(struct ptt_check *c, const struct tk_event *e);
void ck_begin(struct ptt_check *c, const struct tk_event *e);
void ck_fork(struct ptt_check *c, const struct tk_event *e);
void ck_end(struct ptt_check *c, const struct tk_event *e);
void ck_join_in(struct ptt_check *c, const struct tk_event *e);
void ck_join_out(struct ptt_check *c, const struct tk_event *e);
void ck_priority(struct ptt_check *c, const struct tk_event *e);
void ck_leaks(struct ptt_check *c);

/* ---- lock_waits.c ---- */

void ck_lock_wait(struct ptt_check *c, const struct tk_event *e, uint32_t kind);
void ck_lock_waited(struct ptt_check *c, const struct tk_event *e, uint32_t object);
void ck_sem_taken(struct ptt_check *c, const struct tk_event *e);
void ck_sem_post(struct ptt_check *c, const struct tk_event *e);

/* ---- locks.c ---- */

void ck_acquire(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode, enum tk_how how);
void ck_release(struct ptt_check *c, const struct tk_event *e, uint32_t kind);
void ck_lock_error(struct ptt_check *c, const struct tk_event *e);
void ck_exit_holding(struct ptt_check *c, const struct tk_event *e);
/* ck_kept_locks - takes back what was said of detached threads whose locks nobody asked for to the process' end. */
void ck_kept_locks(struct ptt_check *c);

/* ---- hung.c ---- */

/*
 * ck_find_hung - says of each process whether it is hung and whether it is alone.
 *
 * @ends: by process, when it ended; TK_NEVER: that is not known. @count: how many there are
 */
void ck_find_hung(struct ptt_check *c, const int64_t *ends, uint32_t count);

#endif
