/* SPDX-License-Identifier: MIT */
/* facts.h - tables that all parts of the checker share, and the functions that each part offers. The tables never move. */
#ifndef PTT_TRACKER_FACTS_H
#define PTT_TRACKER_FACTS_H

#include "../state/orders.h"
#include "../state/processor.h"
#include "nptl_trace_events.h"
#include "pttcheck.h"

/* A wait that goes on, with the members of the checker. */
struct ck_wait {
	struct tk_wait;
	uint64_t mutex_address; /* of a condition wait */
	int64_t looked;		/* when a thread last took that mutex before this thread took it for the wait */
	uint32_t rival;	 /* fact that stands if a wake-up ends this condition wait */
	uint32_t inverter; /* thread of lower priority that held the lock when the wait began */
	int32_t priority;
	int32_t inverter_priority;
	bool timed;
	bool retaken; /* its mutex */
	bool shared; /* the lock says that other processes may use it */
	bool in_cycle; /* a fact says so; known at the end */
	bool limit_over; /* its time limit was over long before it began */
	int64_t limit_by_other; /* ns to its limit by the clock that the wait does not use, if the limit is near; else 0 */
	uint32_t overtaken; /* `overtaken` of its lock when the wait began */
	bool asks_again; /* a wait for the interpreter's lock: the thread asks again after the limit; known at the end */
	uint8_t futex; /* its kind: an index of ptt_futex_kinds */
};

struct ck_wakeup {
	struct tk_wakeup;
	uint32_t node; /* of a round of a barrier, or of a pool's wake-up: the order node of everything before it, or 0 */
	bool nobody;   /* no thread waited for it */
	bool unlocked; /* the waker took no mutex between its last wake-up and this wake-up */
};

/* Flags of objects, beside the tracker's flags. */
#define CK_ROBUST (PTT_OBJECT_OWN << 0)
#define CK_INHERITS (PTT_OBJECT_OWN << 1) /* priorities */
#define CK_DOUBT (PTT_OBJECT_OWN << 2)	/* its holders are unknown: report no thread for its release */
#define CK_AS_LOCK (PTT_OBJECT_OWN << 3) /* a semaphore: each thread gives back the unit that it took */
#define CK_GIVEN_BACK (PTT_OBJECT_OWN << 6) /* a semaphore: the thread that took it has posted it */
#define CK_READERS_WAIT (PTT_OBJECT_OWN << 4) /* readers wait for it; known at the end */
#define CK_WANTED_BACK (PTT_OBJECT_OWN << 5)  /* a mutex of threads that wait for a condition; known at the end */
#define CK_OF_SEVERAL (PTT_OBJECT_OWN << 7) /* a lock: more than one thread has released it */

/* The last event of some sort. */
struct ck_last {
	int64_t ts;
	uint64_t site;
	uint32_t thread; /* 0: there was none */
};

struct ck_object {
	struct ptt_track_object;
	uint32_t mutex;	  /* of a condition: object, the mutex of its waits */
	bool two_mutexes; /* of a condition: its waits have several mutexes */
	uint32_t barrier_count;
	uint32_t round; /* order node of everything before the arrivals of this round */
	struct tk_order_object order;
	int64_t taken;	     /* of a mutex: its last acquisition, other than by the end of a wait */
	int64_t taken_before; /* and the acquisition before that */
	struct ck_last init;
	struct ck_last destroyed;
	uint32_t sem_hold;   /* of a semaphore used as a lock: the thread that has its unit */
	uint32_t taken_next; /* in the list of taken semaphores of its process */
	bool is_listed;	     /* it is in that list */
	uint32_t copied;     /* the parent's semaphore, if a fork copied it while a thread had its unit; else 0 */
	struct ck_last kept_by; /* of such a copy: the acquisition of that unit */
	int64_t free_before; /* of such a copy: the last post before that; TK_NEVER: there was none */
	int64_t asked;	     /* when a thread last began to wait for it */
	uint32_t made_stack; /* of a semaphore: the stack of its initialization, or of a wait; 0: unknown */
	uint32_t pool;	     /* of a semaphore: its number of units, if threads give back the units that they take; else 0 */
	bool made_full;	     /* of a semaphore: it began with units */
	bool parks;	     /* of a semaphore that began without units: a thread of an interpreter is parked there */
	bool work;	     /* of a semaphore of several processes: threads wait there for work */
	int64_t convoy_ns;   /* of a lock: since when it goes from waiter to waiter */
	int64_t convoy_free; /* for how many ns it was free since then */
	uint32_t passes;     /* how often it went to a waiter since then */
	int64_t clock;	     /* of a condition that was initialized: the clock of its waits */
	struct ck_last gil;  /* of a condition of the interpreter's lock: the holder of the lock; known at the end */
	uint32_t extra;	     /* of a semaphore: its element in `extras`, or 0 */
	uint32_t overtaken;  /* of a read-write lock: how often readers took it at once while other threads waited */
	struct ck_last overtaker; /* the last of these readers */
	struct ck_last let_go; /* of a mutex: its last release, if the trace has only releases that threads sleep for */
	uint32_t kept;	     /* the fact about a thread that ended with it; 0 after another thread has asked for it */
};

/* A lock on a futex that a thread has taken after a wait, if its next operation on the futex is to wake a waiter. */
struct ck_won {
	uint32_t object; /* 0: there is none */
	int64_t since;
};

/* Refused tries of a thread in a row, with nothing else in between, to take a lock of other threads. */
struct ck_tries {
	uint32_t object;
	uint32_t count; /* 0: the other members mean nothing */
	int64_t since, last;
	uint64_t site;
	struct ck_last holder; /* at the last try with a known holder */
};

/* A wait on a way from wait to wait, and the thread that it is for. */
struct ck_link {
	uint32_t wait;
	uint32_t thread;
};

#define CK_INSIDE 8u

/* A semaphore used as a lock, from the moment when a thread posted it without having taken it. */
struct ck_extra {
	uint32_t object;
	uint32_t fact;
	int64_t value; /* of the semaphore, as its events show */
	bool above;    /* the value was above 1 */
	bool no_lock;
	uint32_t inside; /* number of threads that have a unit */
	uint32_t with; /* the thread that had a unit at the same time as the first of the pair */
	struct ck_last post;
	struct ck_last pair[2]; /* acquisitions by two threads that had a unit at the same time */
	struct ck_last in[CK_INSIDE];
};

/* Flags of threads, beside the tracker's flags. */
#define CK_WHOLE (PTT_THREAD_OWN << 0)	 /* the trace has its events from its beginning on */
#define CK_AWAITED (PTT_THREAD_OWN << 1) /* another thread waits for its end; known at the end */
#define CK_ASKED_FOR (PTT_THREAD_OWN << 2) /* another thread has waited for this thread itself, not only for its locks */
#define CK_CLEAR (PTT_THREAD_OWN << 3)	   /* its waits lead into no cycle; known at the end */
#define CK_IN_CYCLE (PTT_THREAD_OWN << 4) /* its wait is part of a cycle; known at the end */

struct ck_thread {
	struct ptt_track_thread;
	/* The end of its row: see struct ptt_check_thread_row. */
	uint64_t silent_ns;
	uint32_t call; /* its present system call; 0 = none */
	uint32_t library_wait;
	uint32_t cond_left; /* object of its last finished condition wait */
	int64_t cond_left_ts; /* the end of that wait */
	struct tk_order_thread order;
	int64_t busy_ts; /* its last action other than to create and join threads */
	struct ck_last created; /* thread: the creator */
	uint32_t mark;
	uint32_t priority;
	uint32_t late_next; /* in the list of its process */
	uint64_t cond_mutex; /* address of the mutex that its new condition wait is about to release */
	bool locked;	     /* it has taken a mutex since its last wake-up of another thread */
	uint32_t units;	     /* number of semaphores used as locks that it has */
	uint32_t unit;	     /* the last of these semaphores */
	uint32_t pool;	     /* the last semaphore with several units that it took a unit from */
	uint32_t pool_units; /* number of units of that semaphore that it has */
	uint32_t asked_sem;  /* the last semaphore that it took or waited for */
	struct tk_sched sched;
	struct tk_sched_mark called; /* at the beginning of its present system call */
	int64_t call_ns;
	uint64_t call_site;
	bool futex_unknown; /* it waits for a futex of unknown purpose */
	struct ck_won won;
	struct ck_tries tries;
	int64_t nap_ns; /* duration of its last sleep outside of waits that was as long as a long wait */
	int64_t nap_ts; /* the end of that sleep */
};

struct ck_cache {
	struct tk_cached object[TK_CACHE];
	struct tk_asked asked[TK_CACHE];
};

struct ck_process {
	struct tk_process;
	bool hung;	 /* only something outside of the process can make its threads continue; known at the end */
	bool alone;	 /* the same for all processes that may share memory with it; known at the end */
	bool explained;	 /* a fact explains why it is blocked; known at the end */
	bool no_handlers; /* no signal handler posts a semaphore */
	bool handlers_may; /* only signal handlers and its known threads may post a semaphore */
	bool meets;	 /* threads wait at a barrier; known at the end */
	uint32_t first_thread;
	uint32_t late;	 /* list of threads that others may wait for at a barrier; known at the end */
	int64_t realtime, monotonic; /* these clocks at time 0; 0: unknown */
	struct ck_last forked; /* fork() of the process, by a thread of the parent */
	struct ck_last end_known; /* a thread has waited for the end of the process */
	int64_t before_fork; /* the last action of the forking thread before the fork */
	bool has_copies; /* it has its copies of the parent's semaphores */
	uint32_t taken; /* list of taken semaphores used as locks; a semaphore that was given back stays in it for a while */
	uint64_t stack; /* lowest address of the stack of the first thread; 0: unknown */
	uint64_t nested; /* how often a thread took a semaphore used as a lock while it had another such semaphore */
	uint64_t *memory; /* pairs of addresses */
	uint32_t memory_count;
};

#define TK_IS_PROCESS struct ck_process
#define TK_IS_THREAD struct ck_thread
#define TK_IS_OBJECT struct ck_object
#define TK_IS_HOLD struct tk_hold
#define TK_IS_WAIT struct ck_wait
#define TK_IS_WAKEUP struct ck_wakeup
#define TK_IS_CACHE struct ck_cache
#include "../state/hot.h"

struct ptt_check {
	struct tracker t;
	int64_t long_hold;
	int64_t long_wait;
	uint64_t lost;
	uint64_t futex_waits; /* for futexes of unknown purpose */
	struct tk_orders orders;
	struct rd_pool facts, steps;
	struct rd_map seen, seen_at;
	uint32_t mark; /* of the last walk */
	uint32_t current; /* the fact that gets the next steps */
	struct rd_map uses;   /* uses of semaphores, by stack */
	struct rd_map handed; /* places that make semaphores which one thread takes and another thread posts */
	struct rd_pool extras;
	struct rd_pool links; /* the way that deadlock.c walks */
};

#define CK_OBJECT(c, i) (&((struct ck_object *)(void *)(c)->t.objects.items)[i])
#define CK_THREAD(c, i) (&((struct ck_thread *)(void *)(c)->t.threads.items)[i])
#define CK_HOLD(c, i) (&((struct tk_hold *)(void *)(c)->t.holds.items)[i])
#define CK_WAITING(c, i) (&((struct ck_wait *)(void *)(c)->t.waits.items)[i])
#define CK_WAKEUP(c, i) (&((struct ck_wakeup *)(void *)(c)->t.wakeups.items)[i])
#define CK_PROCESS(c, i) (&((struct ck_process *)(void *)(c)->t.processes)[i])
#define CK_FACT(c, i) (&((struct ptt_check_fact *)(void *)(c)->facts.items)[i])
#define CK_EXTRA(c, i) (&((struct ck_extra *)(void *)(c)->extras.items)[i])
#define CK_STEP(c, i) (&((struct ptt_check_step *)(void *)(c)->steps.items)[i])
#define CK_LINK(c, i) (&((struct ck_link *)(void *)(c)->links.items)[i])

/*
 * The rest of this file is in order: a file calls only files above it, and check.c calls all of them. Each folder also calls
 * only folders above it: common, deadlocks, waits. Functions that add an element may allocate. If there is no memory, they set
 * the error of the tracker.
 */

static inline uint32_t ck_new(struct ptt_check *c, struct rd_pool *pool)
{
	return rd_pool_new(pool, &c->t.error);
}

static inline struct ck_last ck_now(const struct tk_event *e)
{
	return (struct ck_last){ .ts = e->ts, .site = e->site, .thread = e->thread };
}

/* ---- holds and waits ---- */

static inline void ck_hold_begin(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode)
{
	tk_hold_begin(&c->t, e, object, mode);
	tk_order_hold(&CK_THREAD(c, e->thread)->order, CK_OBJECT(c, object)->kind, object, mode);
}

static inline void ck_hold_end(struct ptt_check *c, uint32_t number)
{
	const struct tk_hold *h = CK_HOLD(c, number);

	tk_order_release(&CK_THREAD(c, h->thread)->order, h);
	tk_hold_end(&c->t, number);
}

/* ck_drop_holds - ends all known holds of an object. */
static inline void ck_drop_holds(struct ptt_check *c, uint32_t object)
{
	while (CK_OBJECT(c, object)->holds)
		ck_hold_end(c, CK_OBJECT(c, object)->holds);
}

/* ck_joined_before - whether a wait is for the end of a thread that was joined already; that thread ends no wait. */
static inline bool ck_joined_before(const struct ptt_check *c, const struct ck_wait *w)
{
	return w->kind == PTT_KIND_THREAD && w->owner && CK_THREAD(c, w->owner)->flags & PTT_THREAD_JOINED;
}

/* ck_is_woken - whether a signal, a broadcast or the last arrival has ended a wait for a condition or a barrier. */
static inline bool ck_is_woken(const struct ptt_check *c, const struct ck_wait *w)
{
	return w->id <= TK_WAKING(&c->t, CK_OBJECT(c, w->object))->woken_to;
}

/* ck_pending - the number of waiters of an object that are woken but have not yet continued. */
static inline uint32_t ck_pending(const struct ptt_check *c, const struct ck_object *o)
{
	return TK_WAKING(&c->t, o)->pending;
}

/* ck_woke - the last wake-up of an object; thread 0: there was none. */
static inline const struct ck_wakeup *ck_woke(const struct ptt_check *c, const struct ck_object *o)
{
	return CK_WAKEUP(c, TK_WAKING(&c->t, o)->latest);
}

/* ---- common/facts.c ---- */

/*
 * ck_fact_add - adds a fact. Return: its number; 0: the fact is known, or the call site has too many facts of its kind
 *
 * @a, @b: facts of a kind with equal @a and @b are the same fact
 */
uint32_t ck_fact_add(struct ptt_check *c, enum ptt_fact_kind kind, const struct tk_event *e, uint64_t a, uint64_t b,
		     uint32_t flags);
/* ck_fact_known - whether ck_fact_add() has added such a fact. */
bool ck_fact_known(const struct ptt_check *c, enum ptt_fact_kind kind, uint64_t a, uint64_t b, uint32_t flags);
/*
 * ck_fact_add_largest - as ck_fact_add(), for facts with a size: keeps the largest of equal facts
 *
 * Return: the number of the fact if it is the largest so far. Then the caller adds all steps again.
 */
uint32_t ck_fact_add_largest(struct ptt_check *c, enum ptt_fact_kind kind, const struct tk_event *e, uint64_t a, uint64_t b,
			     int64_t value);
/* ck_step - adds a step to the last fact of ck_fact_add() or ck_fact_add_largest(). */
struct ptt_check_step *ck_step(struct ptt_check *c, enum ptt_check_what what, uint32_t thread, int64_t ts, uint64_t site,
			       uint32_t object);
void ck_step_last(struct ptt_check *c, enum ptt_check_what what, const struct ck_last *last, uint32_t object);
/* ck_step_released - adds the last release of an object, if a release was seen. */
void ck_step_released(struct ptt_check *c, uint32_t object);
void ck_step_hold(struct ptt_check *c, uint32_t hold);
void ck_step_wait(struct ptt_check *c, uint32_t wait, uint32_t other);
/* ck_step_held - adds the acquisition by @thread that another thread waits for in @wait. */
void ck_step_held(struct ptt_check *c, uint32_t wait, uint32_t thread);
/* ck_step_now - adds the event itself. */
struct ptt_check_step *ck_step_now(struct ptt_check *c, enum ptt_check_what what, const struct tk_event *e,
				   uint32_t object);

/* ck_lasting - whether an object lies in memory that exists as long as its process, such as a global variable. */
bool ck_lasting(const struct ptt_check *c, const struct ck_object *o);

/* ---- common/semaphores.c ---- */

/* ck_sem_use - the use of a semaphore by an interpreter, PTT_USED_…. */
uint32_t ck_sem_use(const struct ptt_check *c, const struct ck_object *o);
/* ck_sem_made - an event initializes a semaphore: learns its purpose. */
void ck_sem_made(struct ptt_check *c, const struct tk_event *e, uint32_t object);
/* ck_sem_awaited - a thread begins to wait for a semaphore: learns its purpose. */
void ck_sem_awaited(struct ptt_check *c, const struct tk_event *e, uint32_t object);
/* ck_sem_no_lock - a thread has posted a semaphore that another thread took. */
void ck_sem_no_lock(struct ptt_check *c, struct ck_object *o);
/* ck_sem_forked - an event says that a process was forked: it has copies of the semaphores that threads of its parent hold. */
void ck_sem_forked(struct ptt_check *c, const struct tk_event *e, uint32_t process);
/* ck_sem_taken_by - a thread takes the unit of a semaphore. */
void ck_sem_taken_by(struct ptt_check *c, uint32_t object, uint32_t thread);
/* ck_sem_is_lock - whether threads give back a semaphore that they took, according to its events and its purpose. */
bool ck_sem_is_lock(struct ptt_check *c, const struct ck_object *o);
/* ck_sem_holder - the thread that took a semaphore and is supposed to give it back; 0: there is none. */
uint32_t ck_sem_holder(struct ptt_check *c, const struct ck_object *o);
/* ck_sem_unit_of - likewise, including semaphores with names, which processes that are not traced may post. */
uint32_t ck_sem_unit_of(struct ptt_check *c, const struct ck_object *o);
/* ck_sem_proven - whether a semaphore was used as a lock: threads gave back their units, and no other thread did. */
static inline bool ck_sem_proven(const struct ck_object *o)
{
	return o->flags & CK_AS_LOCK && o->flags & CK_GIVEN_BACK;
}

/* ---- common/object_misuse.c ---- */

/* ck_wait_begin - adds a wait. It has a time limit if the event says so. */
uint32_t ck_wait_begin(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode);
/* ck_object - the object at an address, destroyed or not. */
static inline uint32_t ck_object(struct ptt_check *c, const struct tk_event *e, uint32_t kind, uint64_t address)
{
	return tk_object(&c->t, e, kind, address);
}

/* ck_object_made - callback of the tracker: an object of a forked process inherits the state of its parent's object. */
void ck_object_made(struct tracker *t, uint32_t object);
/* ck_use - the object that an event uses. If the object was destroyed, this is a new object. */
uint32_t ck_use(struct ptt_check *c, const struct tk_event *e, uint32_t kind);
void ck_init(struct ptt_check *c, const struct tk_event *e);
void ck_destroy(struct ptt_check *c, const struct tk_event *e);
void ck_use_destroyed(struct ptt_check *c, const struct tk_event *e, uint32_t object);

/* ---- deadlocks/deadlock.c ---- */

typedef bool ck_visit_fn(struct ptt_check *c, uint32_t thread, void *data);

/* ck_each_blocker - calls back with each thread that a wait is for, until a call returns true. */
bool ck_each_blocker(struct ptt_check *c, const struct ck_wait *w, bool at_end, ck_visit_fn *visit, void *data);
/* ck_limited - whether a wait ends by itself, and its thread then does something else. */
static inline bool ck_limited(const struct ck_wait *w)
{
	return w->timed && !w->asks_again;
}

/* ck_asked_for - a thread waits for another thread by its name, not only for a lock of that thread. */
static inline void ck_asked_for(struct ptt_check *c, uint32_t thread)
{
	CK_THREAD(c, thread)->flags |= CK_ASKED_FOR;
}

/* ck_deadlock - looks for a cycle of waits through a thread that waits. @at_end: no more events follow */
void ck_deadlock(struct ptt_check *c, uint32_t thread, const struct tk_event *e, bool at_end);
/* ck_last_deadlocks - looks for the cycles that exist because no more events follow. */
void ck_last_deadlocks(struct ptt_check *c, const struct tk_event *e);
/* ck_forked_locks - finds waits in forked processes for locks with owners that do not exist there. */
void ck_forked_locks(struct ptt_check *c);
/* ck_abandoned_locks - finds waits for locks that threads of other processes held when those processes ended, at @ends. */
void ck_abandoned_locks(struct ptt_check *c, const int64_t *ends, uint32_t count);
/* ck_blocked - whether nothing outside of the trace can end the wait of a thread. */
bool ck_blocked(const struct ptt_check *c, uint32_t thread);

/* ---- deadlocks/hung.c ---- */

/*
 * ck_find_hung - sets `hung` and `alone` of each process
 *
 * @ends: when each process ended; TK_NEVER: unknown. @count: number of processes in @ends
 */
void ck_find_hung(struct ptt_check *c, const int64_t *ends, uint32_t count);
/* ck_suppose_no_handlers - does so again as if no signal handler posted a semaphore. False: none could anyway. */
bool ck_suppose_no_handlers(struct ptt_check *c, const int64_t *ends, uint32_t count);

/* ---- deadlocks/order_cycles.c ---- */

/* ck_order_closed - callback of the lock orders: orders close a cycle that can deadlock. */
void ck_order_closed(struct tracker *t, const struct tk_event *e, const struct tk_cycle *cycle);
/* ck_prevented_cycles - reports the cycles of orders that cannot deadlock, and why. */
void ck_prevented_cycles(struct ptt_check *c);

/* ---- deadlocks/stuck.c ---- */

/*
 * ck_stuck - reports processes with all threads blocked; call it last, because other facts may explain a process
 *
 * @flags: PTT_FLAG_UNLESS_HANDLER after ck_suppose_no_handlers(), or 0
 */
void ck_stuck(struct ptt_check *c, uint32_t flags);

/* ---- waits/contention.c ---- */

/* ck_first_wait - the first wait for a lock, among the latest; 0: there is none. */
uint32_t ck_first_wait(const struct ptt_check *c, uint32_t object);
/* ck_waited_with_holds - a wait for something other than a lock ends: reports locks that its thread held while others waited. */
void ck_waited_with_holds(struct ptt_check *c, const struct tk_event *e, uint32_t wait);

/* ck_ask - a thread that holds locks asks for a lock. @tried: the request does not block for ever. */
static inline void ck_ask(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode, bool tried)
{
	tk_ask(&c->orders, e, &CK_THREAD(c, e->thread)->order,
	       ((struct ck_cache *)(void *)c->t.caches.items)[e->thread].asked, object, mode, tried);
}
/* ck_pass - a thread takes a lock after a wait, or takes a lock that went from waiter to waiter before. */
void ck_pass(struct ptt_check *c, const struct tk_event *e, uint32_t object, enum tk_how how);
/* ck_try_out - a try of a lock, or of anything else, returns. */
void ck_try_out(struct ptt_check *c, const struct tk_event *e);
/* ck_tries_end - a thread with refused tries does something; it may be another try. */
void ck_tries_end(struct ptt_check *c, const struct tk_event *e, enum tk_action action);
/* ck_tries_report - reports the refused tries of a thread, if it has any, and forgets them. */
void ck_tries_report(struct ptt_check *c, uint32_t thread);

/* ---- waits/extra_posts.c ---- */

/* ck_extra_begin - a thread posts a semaphore, perhaps once too often. */
void ck_extra_begin(struct ptt_check *c, const struct tk_event *e, uint32_t object);
/* ck_extra_taken, ck_extra_posted - a thread takes or posts such a semaphore. @number: `extra` of its object */
void ck_extra_taken(struct ptt_check *c, const struct tk_event *e, uint32_t number);
void ck_extra_posted(struct ptt_check *c, const struct tk_event *e, uint32_t number);
/* ck_extra_finish - drops the facts about semaphores that are not locks. */
void ck_extra_finish(struct ptt_check *c);

/* ---- waits/limits.c ---- */

/* ck_limit_in - a wait for a condition with a time limit begins. */
void ck_limit_in(struct ptt_check *c, const struct tk_event *e, uint32_t wait);
/* ck_limit_out - such a wait ends. */
void ck_limit_out(struct ptt_check *c, const struct tk_event *e, uint32_t wait);

/* ---- waits/off_processor.c ---- */

void ck_sched(struct ptt_check *c, const struct tk_event *e);
void ck_sched_unknown(struct ptt_check *c, const struct tk_event *e);
void ck_sleep_in(struct ptt_check *c, const struct tk_event *e);
void ck_sleep_out(struct ptt_check *c, const struct tk_event *e);
/* ck_given_back - a thread wakes a waiter of a futex: reports its sleep with the lock since its own wait for the lock ended. */
void ck_given_back(struct ptt_check *c, const struct tk_event *e, uint32_t object);

/* ---- waits/futexes.c ---- */

void ck_futex_in(struct ptt_check *c, const struct tk_event *e);
void ck_futex_out(struct ptt_check *c, const struct tk_event *e);
void ck_futex_wake(struct ptt_check *c, const struct tk_event *e);

/* ---- waits/wakeups.c ---- */

void ck_cond_in(struct ptt_check *c, const struct tk_event *e);
void ck_cond_out(struct ptt_check *c, const struct tk_event *e);
void ck_wake(struct ptt_check *c, const struct tk_event *e);
void ck_cond_unlocked(struct ptt_check *c, const struct tk_event *e, uint32_t mutex, uint32_t flags);
void ck_barrier_in(struct ptt_check *c, const struct tk_event *e);
void ck_barrier_arrive(struct ptt_check *c, const struct tk_event *e);
void ck_barrier_out(struct ptt_check *c, const struct tk_event *e);
void ck_lost_wakeups(struct ptt_check *c);
void ck_stuck_barriers(struct ptt_check *c);

/* ---- waits/lock_waits.c ---- */

void ck_lock_wait(struct ptt_check *c, const struct tk_event *e, uint32_t kind);
void ck_lock_waited(struct ptt_check *c, const struct tk_event *e, uint32_t object);
/* ck_still_waits - a thread waits at the end of the trace: readers may have kept it from its lock. */
void ck_still_waits(struct ptt_check *c, uint32_t thread);
void ck_sem_taken(struct ptt_check *c, const struct tk_event *e);
void ck_sem_post(struct ptt_check *c, const struct tk_event *e);

/* ---- lock_misuse.c ---- */

void ck_acquire(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode, enum tk_how how);
void ck_release(struct ptt_check *c, const struct tk_event *e, uint32_t kind);
void ck_release_awaited(struct ptt_check *c, const struct tk_event *e);
void ck_lock_error(struct ptt_check *c, const struct tk_event *e);
void ck_exit_holding(struct ptt_check *c, const struct tk_event *e);
/* ck_kept_locks - drops the facts about detached threads if no thread asked for their locks until the process ended. */
void ck_kept_locks(struct ptt_check *c);

/* ---- thread_ends.c ---- */

void ck_create(struct ptt_check *c, const struct tk_event *e);
void ck_begin(struct ptt_check *c, const struct tk_event *e);
void ck_fork(struct ptt_check *c, const struct tk_event *e);
void ck_reaped(struct ptt_check *c, const struct tk_event *e);
void ck_end(struct ptt_check *c, const struct tk_event *e);
void ck_join_in(struct ptt_check *c, const struct tk_event *e);
void ck_join_out(struct ptt_check *c, const struct tk_event *e);
void ck_priority(struct ptt_check *c, const struct tk_event *e);
void ck_leaks(struct ptt_check *c);

#endif
