/* SPDX-License-Identifier: MIT */
/* facts.h - what the parts of the checker share: tables that never move, and what each part offers those above it. */
#ifndef PTT_TRACKER_FACTS_H
#define PTT_TRACKER_FACTS_H

#include "../state/orders.h"
#include "../state/processor.h"
#include "nptl_trace_events.h"
#include "pttcheck.h"

/* A wait that goes on, and what only the checker asks of it. */
struct ck_wait {
	struct tk_wait;
	uint64_t mutex_address; /* of a condition wait */
	int64_t looked;		/* when anybody took that mutex last, before the thread took it for this wait */
	uint32_t rival;	 /* fact that stands if this condition wait ends by a wake-up */
	uint32_t inverter; /* thread of lower priority that had the lock when the wait began */
	int32_t priority;
	int32_t inverter_priority;
	bool timed;
	bool retaken; /* its mutex */
	bool shared; /* the lock says that other processes may use it */
	bool in_cycle; /* a fact says so; known at the end */
	bool limit_over; /* a long time before it began */
	int64_t limit_by_other; /* ns to its limit by the clock that it does not go by, if that is near; 0: it is not */
	uint32_t overtaken; /* of its lock, when the wait began */
	bool asks_again; /* for the interpreter's lock: the limit is there to ask for it again; known at the end */
	uint8_t futex; /* its kind: a place in ptt_futex_kinds */
};

struct ck_wakeup {
	struct tk_wakeup;
	uint32_t node; /* of a barrier's round, or what a pool was woken for: all that came before, if anything */
	bool nobody;   /* waited for it */
	bool unlocked; /* the waker had taken no mutex since it last woke anybody */
};

/* Flags of objects beside the tracker's. */
#define CK_ROBUST (PTT_OBJECT_OWN << 0)
#define CK_INHERITS (PTT_OBJECT_OWN << 1) /* priorities */
#define CK_DOUBT (PTT_OBJECT_OWN << 2)	/* another thread held it than the events said: no thread is accused of releasing it */
#define CK_AS_LOCK (PTT_OBJECT_OWN << 3) /* a semaphore that whoever took it gives back */
#define CK_GIVEN_BACK (PTT_OBJECT_OWN << 6) /* a semaphore: whoever took it has posted it */
#define CK_READERS_WAIT (PTT_OBJECT_OWN << 4) /* known at the end, as is */
#define CK_WANTED_BACK (PTT_OBJECT_OWN << 5)  /* a mutex of threads that wait for a condition */
#define CK_OF_SEVERAL (PTT_OBJECT_OWN << 7) /* a lock: more than one thread has released it */

/* The last time that something was done. */
struct ck_last {
	int64_t ts;
	uint64_t site;
	uint32_t thread; /* 0: nobody yet */
};

struct ck_object {
	struct ptt_track_object;
	uint32_t mutex;	  /* object: of the waits for a condition, */
	bool two_mutexes; /* unless they have several */
	uint32_t barrier_count;
	uint32_t round; /* node: everything before this round's arrivals */
	struct tk_order_object order;
	int64_t taken;	     /* a mutex: when last, other than by the end of a wait; */
	int64_t taken_before; /* and before that */
	struct ck_last init;
	struct ck_last destroyed;
	uint32_t sem_hold;   /* of a semaphore used as a lock */
	uint32_t taken_next; /* in the list of its process of semaphores that were taken, */
	bool is_listed;	     /* if it is in it */
	uint32_t copied;     /* the parent's semaphore that a fork copied while a thread had its unit; 0: none */
	struct ck_last kept_by; /* that thread, and where it took the unit, */
	int64_t free_before; /* when the semaphore was last posted before that; TK_NEVER: it was not */
	int64_t asked;	     /* when a thread last began to wait for a lock */
	uint32_t made_stack; /* of a semaphore: with which it was made, or is waited for; 0: not known */
	uint32_t pool;	     /* so many units a semaphore began with that whoever takes one gives back; 0: it is none */
	bool made_full;	     /* it began with units, */
	bool parks;	     /* or none, and a thread of an interpreter is parked there */
	bool work;	     /* of a semaphore of several processes: whoever waits for it wants to wait for work */
	int64_t convoy_ns;   /* since when it has been handed from waiter to waiter, */
	int64_t convoy_free; /* how long nobody had it meanwhile, */
	uint32_t passes;     /* and how often it was */
	int64_t clock;	     /* of a condition that was initialized: its waits go by this one */
	struct ck_last gil;  /* the condition of an interpreter's lock: who has the lock; known at the end */
	uint32_t extra;	     /* of a semaphore: its place in the table of semaphores that were posted once too often */
	uint32_t overtaken;  /* of a read-write lock: readers took it so often at once while others waited, */
	struct ck_last overtaker; /* and this was the last of them */
	uint32_t kept;	     /* fact of a thread that ended and had it, as long as nobody asks for it */
};

/* A lock on a futex that a thread has had since then, if the next that it does with the futex is to wake a waiter. */
struct ck_won {
	uint32_t object; /* 0: there is none */
	int64_t since;
};

/* Tries in a row to take a lock that other threads have: its thread does nothing else meanwhile. */
struct ck_tries {
	uint32_t object;
	uint32_t count; /* 0: the rest says nothing */
	int64_t since, last;
	uint64_t site;
	struct ck_last holder; /* at the last try at which that is known */
};

#define CK_INSIDE 8u

/* A semaphore that is used as a lock since a thread posted it that had not taken it. */
struct ck_extra {
	uint32_t object;
	uint32_t fact;
	int64_t value; /* as events say: of the semaphore */
	bool above;    /* it has been above 1 */
	bool no_lock;
	uint32_t inside; /* so many threads have a unit, */
	uint32_t with; /* this one at the same time as the first of the pair */
	struct ck_last post;
	struct ck_last pair[2]; /* had a unit at the same time */
	struct ck_last in[CK_INSIDE];
};

/* Flags of threads beside the tracker's. */
#define CK_WHOLE (PTT_THREAD_OWN << 0)	 /* its events are there from its beginning on */
#define CK_AWAITED (PTT_THREAD_OWN << 1) /* another thread waits for its end; known at the end */
#define CK_ASKED_FOR (PTT_THREAD_OWN << 2) /* another thread has waited for it, by its name and not by a lock's */
#define CK_CLEAR (PTT_THREAD_OWN << 3)	   /* its waits lead into no cycle; known at the end, as is */
#define CK_IN_CYCLE (PTT_THREAD_OWN << 4)

struct ck_thread {
	struct ptt_track_thread;
	/* The end of its row: see struct ptt_check_thread_row. */
	uint64_t silent_ns;
	uint32_t call; /* the system call in which it is; 0 = none */
	uint32_t library_wait;
	uint32_t cond_left; /* object of the last condition wait that has ended, */
	int64_t cond_left_ts; /* and when */
	struct tk_order_thread order;
	int64_t busy_ts; /* when it last did anything but create and join threads */
	struct ck_last created; /* thread: the creator */
	uint32_t mark;
	uint32_t priority;
	uint32_t late_next; /* in the list of its process */
	uint64_t cond_mutex; /* address of the mutex that a wait which has just begun will release */
	bool locked;	     /* a mutex, since it last woke anybody */
	uint32_t units;	     /* it has so many semaphores that are used as locks, */
	uint32_t unit;	     /* this one since last */
	uint32_t pool;	     /* the semaphore of several units that it took from last, */
	uint32_t pool_units; /* and how many it has of these */
	uint32_t asked_sem;  /* the semaphore that it took, or waited for, last */
	struct tk_sched sched;
	struct tk_sched_mark called; /* when it made the system call in which it is, */
	int64_t call_ns;
	uint64_t call_site;
	bool futex_unknown; /* it waits for a futex of unknown purpose */
	struct ck_won won;
	struct ck_tries tries;
	int64_t nap_ns; /* the last sleep of a millisecond or more, in no wait, */
	int64_t nap_ts; /* and when it was over */
};

struct ck_cache {
	struct tk_cached object[TK_CACHE];
	struct tk_asked asked[TK_CACHE];
};

struct ck_process {
	struct tk_process;
	bool hung;	 /* nobody in it will do anything any more, unless from outside; known at the end */
	bool alone;	 /* and neither will any process that may have memory in common with it */
	bool explained;	 /* a fact says what keeps it; known at the end */
	bool no_handlers; /* no signal handler posts a semaphore, */
	bool handlers_may; /* or one may, and nobody else outside of the threads that are known */
	bool meets;	 /* threads wait at a barrier; known at the end */
	uint32_t first_thread;
	uint32_t late;	 /* threads that may be what others wait for at a barrier; known at the end */
	int64_t realtime, monotonic; /* these clocks at time 0; 0: not known */
	struct ck_last forked; /* thread: of the parent, which made it by fork() */
	struct ck_last end_known; /* thread: which has waited for its end */
	int64_t before_fork; /* when the thread that forked it last did anything before */
	bool has_copies; /* of its parent's semaphores */
	uint32_t taken; /* list of semaphores used as locks that threads took; a semaphore that was given back leaves it late */
	uint64_t stack; /* of the first thread: from here on; 0: not known */
	uint64_t nested; /* how often a thread took a semaphore that is used as a lock while it had another one */
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
	uint32_t current; /* the fact that steps are added to */
	struct rd_map uses;   /* of semaphores, by stack */
	struct rd_map handed; /* places where semaphores were made that one thread took and another posted */
	struct rd_pool extras;
	struct rd_pool links; /* of the way from wait to wait that deadlock.c walks */
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

/* What follows is in order: each file calls those above it only, and check.c calls them all. */

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

/* ck_drop_holds - nobody holds an object any more, as far as is known. */
static inline void ck_drop_holds(struct ptt_check *c, uint32_t object)
{
	while (CK_OBJECT(c, object)->holds)
		ck_hold_end(c, CK_OBJECT(c, object)->holds);
}

/* ck_wait_begin - a wait, timed if the event has a word of that. */
uint32_t ck_wait_begin(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode);

/* ck_joined_before - a wait is for the end of a thread that has been joined, which ends no wait. */
static inline bool ck_joined_before(const struct ptt_check *c, const struct ck_wait *w)
{
	return w->kind == PTT_KIND_THREAD && w->owner && CK_THREAD(c, w->owner)->flags & PTT_THREAD_JOINED;
}

/* ck_is_woken - a signal, a broadcast or the last arrival has ended a wait for a condition or a barrier, as far as is known. */
static inline bool ck_is_woken(const struct ptt_check *c, const struct ck_wait *w)
{
	return w->id <= TK_WAKING(&c->t, CK_OBJECT(c, w->object))->woken_to;
}

/* ck_pending - how many waiters of an object have been woken. */
static inline uint32_t ck_pending(const struct ptt_check *c, const struct ck_object *o)
{
	return TK_WAKING(&c->t, o)->pending;
}

/* ck_woke - the last wake-up of an object; thread 0: there was none. */
static inline const struct ck_wakeup *ck_woke(const struct ptt_check *c, const struct ck_object *o)
{
	return CK_WAKEUP(c, TK_WAKING(&c->t, o)->latest);
}

/* ---- facts.c ---- */

/*
 * ck_found - a new fact, or 0 if it is known already or there are too many of its kind from this place
 *
 * @a, @b: what makes it the same as another one
 */
uint32_t ck_found(struct ptt_check *c, enum ptt_fact_kind kind, const struct tk_event *e, uint64_t a, uint64_t b,
		  uint32_t flags);
/* ck_known - whether ck_found() has made such a fact. */
bool ck_known(const struct ptt_check *c, enum ptt_fact_kind kind, uint64_t a, uint64_t b, uint32_t flags);
/*
 * ck_found_more - as ck_found(), for facts with a size: of equal facts the largest is kept. The caller gives all steps
 * anew of a fact that is larger than the facts before.
 */
uint32_t ck_found_more(struct ptt_check *c, enum ptt_fact_kind kind, const struct tk_event *e, uint64_t a, uint64_t b,
		       int64_t value);
/* ck_step - one more step of the fact that ck_found() or ck_found_more() has returned last. */
struct ptt_check_step *ck_step(struct ptt_check *c, enum ptt_check_what what, uint32_t thread, int64_t ts, uint64_t site,
			       uint32_t object);
void ck_step_last(struct ptt_check *c, enum ptt_check_what what, const struct ck_last *last, uint32_t object);
/* ck_step_released - the last release of an object, if one was seen. */
void ck_step_released(struct ptt_check *c, uint32_t object);
void ck_step_hold(struct ptt_check *c, uint32_t hold);
void ck_step_wait(struct ptt_check *c, uint32_t wait, uint32_t other);
/* ck_step_held - what a thread has that a wait is for. */
void ck_step_held(struct ptt_check *c, uint32_t wait, uint32_t thread);
/* ck_step_now - what the event itself is. */
struct ptt_check_step *ck_step_now(struct ptt_check *c, enum ptt_check_what what, const struct tk_event *e,
				   uint32_t object);

/* ck_lasting - an object lies in memory that is there as long as its process, such as a global variable. */
bool ck_lasting(const struct ptt_check *c, const struct ck_object *o);

/* ---- semaphores.c ---- */

/* ck_sem_use - what an interpreter uses a semaphore for, PTT_USED_…. */
uint32_t ck_sem_use(const struct ptt_check *c, const struct ck_object *o);
/* ck_sem_made - an event initializes a semaphore: learns its purpose. */
void ck_sem_made(struct ptt_check *c, const struct tk_event *e, uint32_t object);
/* ck_sem_awaited - what the wait for a semaphore says of it. */
void ck_sem_awaited(struct ptt_check *c, const struct tk_event *e, uint32_t object);
/* ck_sem_no_lock - a thread has posted a semaphore that another thread took. */
void ck_sem_no_lock(struct ptt_check *c, struct ck_object *o);
/* ck_sem_forked - a process was forked, as an event says: it has copies of the semaphores whose units threads of its parent have. */
void ck_sem_forked(struct ptt_check *c, const struct tk_event *e, uint32_t process);
/* ck_sem_taken_by - a thread takes the unit of a semaphore. */
void ck_sem_taken_by(struct ptt_check *c, uint32_t object, uint32_t thread);
/* ck_sem_is_lock - whoever takes a semaphore gives it back, as far as its events and its purpose say. */
bool ck_sem_is_lock(struct ptt_check *c, const struct ck_object *o);
/* ck_sem_holder - the thread that took a semaphore and may be the one to give it back; 0: there is none. */
uint32_t ck_sem_holder(struct ptt_check *c, const struct ck_object *o);
/* ck_sem_unit_of - likewise, of semaphores with names as well, which processes that are not traced may post. */
uint32_t ck_sem_unit_of(struct ptt_check *c, const struct ck_object *o);
/* ck_sem_proven - a semaphore has been used as a lock: threads have given back what they took, and nobody else has. */
static inline bool ck_sem_proven(const struct ck_object *o)
{
	return o->flags & CK_AS_LOCK && o->flags & CK_GIVEN_BACK;
}

/* ---- extra_posts.c ---- */

/* ck_extra_begin - a semaphore is posted: perhaps once too often. */
void ck_extra_begin(struct ptt_check *c, const struct tk_event *e, uint32_t object);
/* ck_extra_taken, ck_extra_posted - such a semaphore is taken, or posted again. @number: what its object has as `extra` */
void ck_extra_taken(struct ptt_check *c, const struct tk_event *e, uint32_t number);
void ck_extra_posted(struct ptt_check *c, const struct tk_event *e, uint32_t number);
/* ck_extra_finish - takes back what was said of semaphores that are no locks. */
void ck_extra_finish(struct ptt_check *c);

/* ---- object_misuse.c ---- */

/* ck_object - the object at an address, whatever became of it. */
static inline uint32_t ck_object(struct ptt_check *c, const struct tk_event *e, uint32_t kind, uint64_t address)
{
	return tk_object(&c->t, e, kind, address);
}

/* ck_object_made - what a forked child finds at an address is what its parent made of it. */
void ck_object_made(struct tracker *t, uint32_t object);
/* ck_use - the object that an event uses. A destroyed object becomes another object. */
uint32_t ck_use(struct ptt_check *c, const struct tk_event *e, uint32_t kind);
void ck_init(struct ptt_check *c, const struct tk_event *e);
void ck_destroy(struct ptt_check *c, const struct tk_event *e);
void ck_use_destroyed(struct ptt_check *c, const struct tk_event *e, uint32_t object);

/* ---- contention.c ---- */

/* ck_first_wait - the first of the waits for a lock, as far as it is near; 0: there is none. */
uint32_t ck_first_wait(const struct ptt_check *c, uint32_t object);
/* ck_waited_with_holds - a wait for no lock ends now: what its thread kept meanwhile, although others asked for it. */
void ck_waited_with_holds(struct ptt_check *c, const struct tk_event *e, uint32_t wait);

/* ck_ask - a thread asks for a lock while it holds others. @tried: in a way that does not block it for ever. */
static inline void ck_ask(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode, bool tried)
{
	tk_ask(&c->orders, e, &CK_THREAD(c, e->thread)->order,
	       ((struct ck_cache *)(void *)c->t.caches.items)[e->thread].asked, object, mode, tried);
}
/* ck_pass - a lock is taken that was waited for, or that has been handed on so far. */
void ck_pass(struct ptt_check *c, const struct tk_event *e, uint32_t object, enum tk_how how);
/* ck_try_out - a thread has tried to take a lock, or anything else. */
void ck_try_out(struct ptt_check *c, const struct tk_event *e);
/* ck_tries_end - a thread that has tried in vain to take a lock does something: perhaps it tries again. */
void ck_tries_end(struct ptt_check *c, const struct tk_event *e, enum tk_action action);
/* ck_tries_report - a thread tries no longer to take a lock, if it did. */
void ck_tries_report(struct ptt_check *c, uint32_t thread);

/* ---- off_processor.c ---- */

void ck_sched(struct ptt_check *c, const struct tk_event *e);
void ck_sched_unknown(struct ptt_check *c, const struct tk_event *e);
void ck_sleep_in(struct ptt_check *c, const struct tk_event *e);
void ck_sleep_out(struct ptt_check *c, const struct tk_event *e);
/* ck_given_back - a thread wakes a waiter of a futex: what it slept with the lock since its own wait for the lock ended. */
void ck_given_back(struct ptt_check *c, const struct tk_event *e, uint32_t object);

/* ---- order_cycles.c ---- */

/* ck_order_closed - orders close a cycle that can deadlock. */
void ck_order_closed(struct tracker *t, const struct tk_event *e, const struct tk_cycle *cycle);
/* ck_prevented_cycles - reports the cycles of orders that cannot deadlock, and why. */
void ck_prevented_cycles(struct ptt_check *c);

/* ---- deadlock.c ---- */

typedef bool ck_visit_fn(struct ptt_check *c, uint32_t thread, void *data);

/* ck_each_blocker - calls back with each thread that a wait is for, until one call says true. */
bool ck_each_blocker(struct ptt_check *c, const struct ck_wait *w, bool at_end, ck_visit_fn *visit, void *data);
/* ck_limited - a wait ends by itself some time, and its thread does something else then. */
static inline bool ck_limited(const struct ck_wait *w)
{
	return w->timed && !w->asks_again;
}

/* ck_asked_for - a thread waits for another one, not only for what that holds. */
static inline void ck_asked_for(struct ptt_check *c, uint32_t thread)
{
	CK_THREAD(c, thread)->flags |= CK_ASKED_FOR;
}

int ck_deadlock_open(struct ptt_check *c);
/* ck_deadlock - looks for a cycle of waits through a thread, whose wait has just begun. */
void ck_deadlock(struct ptt_check *c, uint32_t thread, const struct tk_event *e);
/* ck_last_deadlocks - looks for the cycles that there are because nothing more will happen. */
void ck_last_deadlocks(struct ptt_check *c, const struct tk_event *e);
/* ck_forked_locks - waits in forked processes for locks whose owners are not there. */
void ck_forked_locks(struct ptt_check *c);
/* ck_abandoned_locks - waits for locks that threads of other processes held when these ended, at @ends. */
void ck_abandoned_locks(struct ptt_check *c, const int64_t *ends, uint32_t count);
/* ck_blocked - a thread that nobody outside of the trace lets go on. */
bool ck_blocked(const struct ptt_check *c, uint32_t thread);

/* ---- limits.c ---- */

/* ck_limit_in - a wait for a condition begins that has a time limit. */
void ck_limit_in(struct ptt_check *c, const struct tk_event *e, uint32_t wait);
/* ck_limit_out - such a wait ends. */
void ck_limit_out(struct ptt_check *c, const struct tk_event *e, uint32_t wait);

/* ---- wakeups.c ---- */

void ck_cond_in(struct ptt_check *c, const struct tk_event *e);
void ck_cond_out(struct ptt_check *c, const struct tk_event *e);
void ck_wake(struct ptt_check *c, const struct tk_event *e);
/* ---- futexes.c ---- */

void ck_futex_in(struct ptt_check *c, const struct tk_event *e);
void ck_futex_out(struct ptt_check *c, const struct tk_event *e);
void ck_futex_wake(struct ptt_check *c, const struct tk_event *e);

void ck_cond_unlocked(struct ptt_check *c, const struct tk_event *e, uint32_t mutex, uint32_t flags);
void ck_barrier_in(struct ptt_check *c, const struct tk_event *e);
void ck_barrier_arrive(struct ptt_check *c, const struct tk_event *e);
void ck_barrier_out(struct ptt_check *c, const struct tk_event *e);
void ck_lost_wakeups(struct ptt_check *c);
void ck_stuck_barriers(struct ptt_check *c);

/* ---- stuck.c ---- */

/* ck_stuck - after all else that may keep a process for ever: it need not be reported twice. */
/* @flags: PTT_FLAG_UNLESS_HANDLER after ck_suppose_no_handlers(), or 0. */
void ck_stuck(struct ptt_check *c, uint32_t flags);

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

/* ---- lock_waits.c ---- */

void ck_lock_wait(struct ptt_check *c, const struct tk_event *e, uint32_t kind);
void ck_lock_waited(struct ptt_check *c, const struct tk_event *e, uint32_t object);
/* ck_still_waits - a thread waits to the end: readers may have kept it from its lock. */
void ck_still_waits(struct ptt_check *c, uint32_t thread);
void ck_sem_taken(struct ptt_check *c, const struct tk_event *e);
void ck_sem_post(struct ptt_check *c, const struct tk_event *e);

/* ---- lock_misuse.c ---- */

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
/* ck_suppose_no_handlers - says it anew as if no signal handler posted a semaphore; false: none could anyway. */
bool ck_suppose_no_handlers(struct ptt_check *c, const int64_t *ends, uint32_t count);

#endif
