/* SPDX-License-Identifier: MIT */
/* sums.h - tables that all parts of the model share, and the functions that each part offers. The tables never move. */
#ifndef PTT_TRACKER_SUMS_H
#define PTT_TRACKER_SUMS_H

#include "../state/processor.h"
#include "../state/state.h"
#include "choice.h"
#include "pttmodel.h"

/* Rows that are handed out and dropped. */
struct md_rows {
	uint8_t *items;
	size_t size;
	uint64_t count;
	uint64_t room;
};

/* A hold, and its cost to other threads. */
struct md_hold {
	struct tk_hold;
	uint64_t share; /* of the object when it began */
	struct tk_sched_mark sched; /* of its thread when it began */
	uint32_t pair;
	uint32_t site_row;
	uint32_t max_waiters;
	uint64_t cut_share; /* `share` of the object at its last cut, see locks/inside.c */
	uint32_t watched_next; /* among the watched holds of its thread */
	uint32_t watched_prev;
	bool watched; /* other threads wait for it, or have waited for it */
	uint8_t thread_place; /* bits of `places` of its thread and of its object */
	uint8_t object_place;
};

/* A wait that goes on, and the threads to charge with it. */
struct md_wait {
	struct tk_wait;
	uint64_t parent;
	uint64_t chain; /* the first of its parents; 0: it has none */
	int64_t retaken; /* when a condition wait had its mutex back, else TK_NEVER */
	uint64_t held;	 /* `held` of the object when the wait began */
	uint64_t mutex_held; /* `held` of the mutex when the thread took it back */
	uint64_t mutex_held_all;
	struct tk_sched_mark sched; /* of the thread when the wait began */
	uint32_t site_row;
	uint32_t owner_site;
	uint32_t owner_stack;
	uint32_t released_stack; /* of the first release by the owner; 0 = unknown */
	uint32_t released_site;
	uint32_t depth;
	int32_t locks_held; /* by its thread; -1 = unknown */
	uint32_t crowd; /* waiters when it began, and threads that a signal woke and that are still in their condition wait */
	bool named; /* the event named the owner: no hold was known */
	bool owner_follows; /* and no thread has taken the lock since */
	uint8_t futex; /* its kind: an index of ptt_futex_kinds */
	bool counted;
};

/* The last holders of a lock with waiters, in the order of their releases. */
#define MD_LOG 64u

struct md_log_entry {
	int64_t since;
	int64_t ended;
	uint32_t thread; /* 0 = unknown */
	uint32_t site;	 /* in the form of md_blame() */
};

struct md_log {
	struct md_log_entry entry[MD_LOG];
	uint32_t count; /* ever */
};

/* A wake-up, and the mutex that the woken threads wait for next. */
struct md_wakeup {
	struct tk_wakeup;
	uint64_t held;	/* `held` of the mutex at the wake-up */
	uint64_t held_all;
	uint32_t mutex; /* the mutex that woken threads must take back, if its holds are recorded; else 0 */
	uint32_t site_row;
	uint32_t crowd; /* waiters of the mutex at the wake-up */
	bool gave_back; /* the poster had taken a unit before */
};

struct md_object {
	struct ptt_model_object pub;
	uint64_t share;     /* integral over time of waiters / holders, since the first wait */
	uint64_t held;      /* how long threads held it since then, in the window */
	uint64_t held_all;  /* the same without regard to the window */
	int64_t share_ts;
	uint64_t tail_share;
	int64_t tail_since;
	uint64_t excess;    /* charged to forgotten holders, for waits that gave up */
	uint64_t blamed;    /* the sum of the blame of all its holders, at the end */
	uint64_t address_users; /* of `first`: threads that used it or a later object at its address, as `pub.users` */
	uint64_t places; /* places that holds take; the last place is never full */
	uint32_t tail;      /* the blame of the supposed holder, if holds are not recorded */
	uint32_t sharing;   /* counted waiters */
	uint32_t crowd;     /* maximum of waiters since a hold last began or ended; holds that go on do not know it yet */
	uint32_t awaited;   /* number of threads that a signal woke, and that still wait for this mutex in their condition wait */
	uint32_t release_row; /* site of the last release; 0 until md_release_row() needs it */
	uint32_t held_site; /* where the last finished hold began; 0 = unknown */
	uint32_t log;
	uint32_t units_out; /* number of threads that have units of a semaphore */
	uint32_t first; /* the first object at this address that was initialized at the same place */
	bool owner_follows; /* the event may still follow that makes a waiter's owner take the lock */
	bool counted;
	bool as_lock;	    /* a semaphore with one unit: each thread that took the unit gave it back itself */
	bool given_away;    /* such a semaphore: another thread posted it without waiters, as interpreters do before they free a lock */
	uint32_t maker;	    /* of such a semaphore: the thread that initialized it */
	bool pool;	    /* a semaphore that began with several units, which threads take and give back */
	uint8_t purpose;    /* enum ptt_purpose */
	bool made_by_stack; /* the stack of its initialization is known, so stacks of its events are recorded */
};

struct md_site {
	struct ptt_model_site pub;
	bool counted;
	uint8_t use; /* enum ptt_site_use */
};

/* Objects and call sites that a thread used last. */
#define MD_SITES 32u

struct md_cache {
	struct tk_cached object[TK_CACHE];
	uint64_t site_key[MD_SITES];
	uint32_t site[MD_SITES];
};

/* State of a thread in the kernel's scheduler. */
enum { MD_NEVER /* there was no switch */, MD_ON, MD_OFF, MD_PREEMPTED, MD_MISSED /* unknown */ };

struct md_switch {
	int64_t ts;
	uint16_t cpu;
	uint8_t now;
};

struct md_thread {
	struct ptt_model_thread pub;
	struct tk_sched sched;
	int64_t reported; /* its states are reported up to here; TK_NEVER: not at all */
	int64_t path_first; /* the critical path leaves the thread here; set at the end, as the next three */
	int64_t path_last; /* and enters it here */
	int64_t path_event; /* time of its last event */
	int64_t path_wait; /* when the wait at path_last began, or TK_NEVER */
	int64_t made_ns; /* when `maker` forked its process, or executed its program */
	uint32_t maker; /* of the first thread of a process: the thread that created the process, or 0 */
	uint64_t places; /* as in struct md_object */
	bool trying; /* in a try-lock; needs level 3 */
	uint16_t call; /* the system call that it sleeps in since its last event; 0 = none */
	uint32_t called_stack;
	uint64_t called_at; /* call site */
	int64_t call_ns;	     /* when the call began */
	struct tk_sched_mark called; /* at that time */
	int64_t cut_ns; /* when its holds were last cut, if it has held locks since then */
	struct tk_sched_mark cut_sched; /* at that time */
	uint32_t watched; /* list of its watched holds */
	struct md_switch last; /* switch */
	struct md_switch *switches; /* in order; the first switch is before `reported`, if known. Only for states */
	uint32_t switch_count;
	uint32_t switch_room;
};

/* A finished wait, for the critical path. */
struct md_step {
	int64_t start;
	int64_t wake;
	int64_t end;
	int64_t ready; /* ns before the end that it could have run but had no processor; -1 = unknown */
	uint32_t thread;
	uint32_t waker;
	uint32_t object;
	uint32_t site;
};

/* The steps of the critical path, in the order of their ends. */
struct md_steps {
	struct md_rows held; /* the latest steps */
	uint64_t stored; /* number of earlier steps, which are in the file */
	struct md_step *back; /* a part of the file, during a walk */
	uint64_t back_part; /* number of this part, plus 1 */
	int64_t least; /* shorter waits are left out */
	int file; /* -1 = none */
};

/* Position of a walk along the critical path. */
struct md_walk {
	int64_t t;
	uint64_t left; /* number of earlier steps */
	uint32_t thread; /* 0 = the walk is over */
	uint32_t hops; /* number of steps to creators */
};

/* How a wait ended. */
struct md_end {
	int64_t ts;
	int64_t dur;  /* -1: ts - start */
	int64_t wake; /* or TK_NEVER */
	uint64_t held; /* of a contended wait: how long a thread held the object */
	uint32_t waker;
	uint32_t waker_site;
	uint32_t waker_stack;
	int32_t result;
	uint8_t wait_class;
	uint8_t wake_kind;
	bool open;
};

/* State of each thread and object when the window ended, for the tables. */
struct md_then_thread {
	int64_t last_ns;
	int64_t end_ns;
	int64_t join_ns;
	uint32_t flags;
	uint32_t held;
	uint32_t policy;
	int32_t priority;
	int64_t wait_ns; /* when its wait began, or TK_NEVER */
};

struct md_then_object {
	int64_t last_ns;
	uint32_t waiters;
	uint32_t holders;
	uint32_t holder;
	uint32_t flags;
};

/* The part of the time that counts; see window.c. */
struct md_window {
	int64_t begin;
	int64_t end;
	bool begun; /* an event in or after the window was seen */
	bool ended; /* an event after the window was seen */
	struct md_then_thread *threads;
	struct md_then_object *objects;
	uint32_t thread_count;
	uint32_t object_count;
};

#define TK_IS_PROCESS struct tk_process
#define TK_IS_THREAD struct md_thread
#define TK_IS_OBJECT struct md_object
#define TK_IS_HOLD struct md_hold
#define TK_IS_WAIT struct md_wait
#define TK_IS_WAKEUP struct md_wakeup
#define TK_IS_CACHE struct md_cache
#include "../state/hot.h"

struct ptt_model {
	struct tracker t;
	uint32_t flags;
	struct md_window window;
	uint64_t lost;
	struct rd_pool sites, pairs, blames, causes, wakers, edges, histograms;
	struct rd_pool logs, insides;
	struct md_rows wait_rows, hold_rows, inside_rows, wakeup_rows, open_rows, state_rows, segments, thread_states;
	struct md_steps steps;
	struct md_walk walk;
	struct rd_map site_of, pair_of, blame_of, cause_key, cause_of, waker_of, edge_of, inside_of;
	struct rd_map made_of; /* the first object by process, kind, place of initialization and address */
	struct rd_choice only_objects;
	struct rd_map only_sites, site_uses;
	struct rd_map families; /* facts about processes, by process id */
	struct rd_map gils, semaphores; /* purposes of objects by process and address; of semaphores by process and stack */
	bool only_threads;
	bool unused; /* the current event creates or ends an object, and does not use it */
	bool early; /* the current events come from ptt_model_state() */
};

#define MD_OBJECT(m, i) (&((struct md_object *)(void *)(m)->t.objects.items)[i])
#define MD_CACHE_OF(m, i) (&((struct md_cache *)(void *)(m)->t.caches.items)[i])
#define MD_SITE(m, i) (&((struct md_site *)(void *)(m)->sites.items)[i])
#define MD_THREAD(m, i) (&((struct md_thread *)(void *)(m)->t.threads.items)[i])
#define MD_PAIR(m, i) (&((struct ptt_model_pair *)(void *)(m)->pairs.items)[i])
#define MD_BLAME(m, i) (&((struct ptt_model_blame *)(void *)(m)->blames.items)[i])
#define MD_HOLD(m, i) (&((struct md_hold *)(void *)(m)->t.holds.items)[i])
#define MD_WAITING(m, i) (&((struct md_wait *)(void *)(m)->t.waits.items)[i])
#define MD_LOG_OF(m, o) (&((struct md_log *)(void *)(m)->logs.items)[(o)->log])
#define MD_WAKEUP(m, i) (&((struct md_wakeup *)(void *)(m)->t.wakeups.items)[i])

/*
 * The rest of this file is in order: a file calls only files above it, and model.c calls all of them. Each folder also calls
 * only folders above it: tables, path, locks, waits, windows. Functions that add an element or a row may allocate. If there is
 * no memory, they set the error of the tracker, and the model fails.
 */

/* md_new - adds a zeroed element to a pool. Return: its number; 0: there is no memory. */
static inline uint32_t md_new(struct ptt_model *m, struct rd_pool *pool)
{
	return rd_pool_new(pool, &m->t.error);
}

/* md_is_lock - whether a thread holds objects of this kind, and other threads wait for its release. */
static inline bool md_is_lock(uint32_t kind)
{
	return kind == PTT_KIND_MUTEX || kind == PTT_KIND_RWLOCK || kind == PTT_KIND_SPIN || kind == PTT_KIND_ONCE ||
	       kind == PTT_KIND_LLL;
}

/* ---- the window ---- */

/* md_inside - cuts an interval to the window. Return: whether a part of it, or a moment, lies in the window. */
static inline bool md_inside(const struct ptt_model *m, int64_t *from, int64_t *to)
{
	const struct md_window *w = &m->window;
	bool counts = *from < w->end && (*to > w->begin || *from >= w->begin);

	if (*from < w->begin)
		*from = w->begin;
	if (*to > w->end)
		*to = w->end;
	return counts;
}

/* md_in_window - whether a moment lies in the window. */
static inline bool md_in_window(const struct ptt_model *m, int64_t ts)
{
	return ts >= m->window.begin && ts < m->window.end;
}

/*
 * md_portion - the part of an interval that lies in the window, in ns, times @times, divided by @among
 *
 * It is rounded so that the portions of consecutive windows add up to the portion of the whole.
 */
static inline int64_t md_portion(const struct ptt_model *m, int64_t from, int64_t to, uint32_t times, uint32_t among)
{
	int64_t first = from, last = to;

	if (!md_inside(m, &first, &last) || last <= first)
		return 0;
	if (among <= 1)
		return (last - first) * times;
	return (last - from) * times / among - (first - from) * times / among;
}

/* ---- tables/tables.c ---- */

/* md_row - adds a zeroed row. NULL: there is no memory. */
void *md_row(struct ptt_model *m, struct md_rows *rows);
/* md_lookup - the element of a key, added if it is new. @made: whether it is new. */
uint32_t md_lookup(struct ptt_model *m, struct rd_map *map, struct rd_pool *pool, uint64_t a, uint64_t b, bool *made);
/* md_pair - the element of a thread and an object. */
uint32_t md_pair(struct ptt_model *m, uint32_t thread, uint32_t object);
/* md_site - the row of a call site of a thread; 0 for site 0. */
uint32_t md_site(struct ptt_model *m, uint32_t thread, uint64_t site, uint32_t kind);
/* md_counted - whether the choice of threads, objects and call sites includes this wait or hold. */
bool md_counted(const struct ptt_model *m, uint32_t thread, uint32_t object, uint32_t site);
/* md_histogram_add - counts a wait in a histogram. Creates the histogram if its number is 0. */
void md_histogram_add(struct ptt_model *m, uint32_t *histogram, uint64_t ns);

/* ---- tables/threads.c ---- */

/* md_thread_of_tid - the thread with a kernel thread id; declares the thread if it is unknown. */
uint32_t md_thread_of_tid(struct ptt_model *m, uint32_t process, uint32_t tid);
void md_create(struct ptt_model *m, const struct tk_event *e);
void md_begin(struct ptt_model *m, const struct tk_event *e);
void md_schedule(struct ptt_model *m, const struct tk_event *e);
/* md_silence - a thread had no event from its last event to @until; counts this as silence unless the thread waited. */
void md_silence(struct ptt_model *m, struct md_thread *t, int64_t until);
/* md_life_end - when a thread ended whose process ended at @end: by its own end, by its join, or when another thread had its id. */
static inline int64_t md_life_end(const struct ptt_model_thread *t, int64_t end)
{
	if (t->flags & (PTT_THREAD_REPLACED | PTT_THREAD_ENDED))
		return t->last_ns < end ? t->last_ns : end;
	return t->flags & PTT_THREAD_JOINED && t->join_ns < end ? t->join_ns : end;
}

/* md_lives - threads without an end live until their process ends. @ends: the end of each process. */
void md_lives(struct ptt_model *m, const int64_t *ends);

/* ---- tables/thread_states.c ---- */

void md_sched(struct ptt_model *m, const struct tk_event *e);
void md_sched_unknown(struct ptt_model *m, const struct tk_event *e);
/* md_switches_loaded - gives a thread of a snapshot its own memory: its pointers are from the saved model. */
void md_switches_loaded(struct ptt_model *m, struct md_thread *t);
void md_switched(struct ptt_model *m, const struct tk_event *e, enum tk_action action);
/* md_state_of_wait - reports a wait that ended at @until, and the states of its thread since the last report. */
void md_state_of_wait(struct ptt_model *m, const struct md_wait *w, uint8_t wait_class, int64_t until);
void md_sleep_begin(struct ptt_model *m, const struct tk_event *e);
/* md_sleep_end - a thread in a system call has an event that is no reading of the scheduler. */
void md_sleep_end(struct ptt_model *m, const struct tk_event *e);
/* md_finish_states - reports the last states. Call it after md_lives(), when all waits are reported. */
void md_finish_states(struct ptt_model *m);

/* ---- path/steps.c ---- */

/* md_step_put - keeps a step. May write to the file of ptt_model_path_file(), and block. */
void md_step_put(struct ptt_model *m, struct md_step step);
/* md_step_add - keeps a finished wait as a step. @dur: its duration in ns */
void md_step_add(struct ptt_model *m, const struct md_wait *w, const struct md_end *end, int64_t dur);
uint64_t md_step_count(const struct ptt_model *m);
/* md_step_at - a step, valid until the next call. NULL: the file cannot be read, and the model fails. */
const struct md_step *md_step_at(struct ptt_model *m, uint64_t number);
/* md_steps_leave - frees the memory of md_step_at(). */
void md_steps_leave(struct ptt_model *m);

/* ---- path/families.c ---- */

void md_process_start(struct ptt_model *m, const struct tk_event *e);
/* md_process_made - a thread forked or spawned a process. */
void md_process_made(struct ptt_model *m, const struct tk_event *e);
/* md_process_reaped - a thread knows that a child has ended. */
void md_process_reaped(struct ptt_model *m, const struct tk_event *e);

/* ---- locks/blame.c ---- */

/* Added to a call site of a release that stands for the unknown call site of the acquisition. */
#define MD_RELEASED (UINT32_C(1) << 31)
/* md_blame - the number of the blame of a thread for an object at a call site. */
uint32_t md_blame(struct ptt_model *m, uint32_t object, uint32_t thread, uint32_t site);
/* md_charge - charges a holder or waker with @ns of the waits of other threads; may be negative. */
void md_charge(struct ptt_model *m, uint32_t blame, int64_t ns);
/* md_sharing - the number of waits that the holders of an object share the blame for now. */
static inline uint32_t md_sharing(const struct md_object *o)
{
	return o->sharing + o->awaited;
}

/* md_hold_add - adds @ns to the cost of a hold that goes on; may be negative. */
static inline void md_hold_add(struct md_hold *h, int64_t ns)
{
	h->share -= (uint64_t)ns;
	h->cut_share -= (uint64_t)ns;
}

/* md_share - updates the sums of an object to @ts. Call it before a holder or waiter comes or goes. */
void md_share(struct ptt_model *m, struct md_object *o, int64_t ts);
uint32_t md_log_of(struct ptt_model *m, struct md_object *o);
void md_log_add(struct ptt_model *m, struct md_object *o, struct md_log_entry entry);
void md_close_tail(struct ptt_model *m, struct md_object *o, int64_t ts);
/* md_blame_from - sets the thread to blame from @ts on, if holds are not recorded. Thread 0: unknown. */
void md_blame_from(struct ptt_model *m, uint32_t object, uint32_t thread, uint32_t site, int64_t ts);
/* md_claim - a thread turns out to have held the lock since the last release, during this wait. */
void md_claim(struct ptt_model *m, struct md_wait *w, uint32_t thread, uint32_t site, int64_t ts);
/*
 * md_place_owner - the named or unknown owner of a lock acquires it
 *
 * An acquisition is stamped after it happened, so waits may begin before its stamp. Those waits were for this hold. Call this
 * before the wait of the owner for the lock ends.
 */
void md_place_owner(struct ptt_model *m, const struct tk_event *e, uint32_t object);
/* md_no_owner_follows - no later hold of the lock belongs to an owner that its waiters have named. */
void md_no_owner_follows(struct ptt_model *m, struct md_object *o);
/* md_take_back - takes part of a wait from the blame of the known holders. Return: the amount in ns, up to @most. */
uint64_t md_take_back(struct ptt_model *m, uint32_t object, int64_t start, int64_t end, uint64_t most);
/* md_unblame - takes @ns of a wait from the blame of the holders; unknown holders share the rest at the end. */
void md_unblame(struct ptt_model *m, uint32_t object, int64_t start, int64_t end, uint64_t ns);
/* md_blame_past - blames finished holds for a wait of @thread without a beginning. Return: the sum of the holds, in ns. */
uint64_t md_blame_past(struct ptt_model *m, uint32_t object, uint32_t thread, int64_t start, int64_t end);
/* md_settle - at the end: takes the blame of unknown holders from all holders of the object, in proportion. */
void md_settle(struct ptt_model *m);

/* ---- locks/edges.c ---- */

void md_edges(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint8_t mode, bool blocked);

/* ---- locks/inside.c ---- */

/* md_watch_hold, md_unwatch_hold - whether the hold is cut. Both may be called again without effect. */
void md_watch_hold(struct ptt_model *m, uint32_t number);
void md_unwatch_hold(struct ptt_model *m, uint32_t number);
/* md_watch_holds - threads begin to wait for the holders of an object. */
void md_watch_holds(struct ptt_model *m, const struct md_object *o);
/* md_cut_hold - accounts what the holder did up to @ts in a watched hold. @known: the event at @ts is an event of the holder. */
void md_cut_hold(struct ptt_model *m, uint32_t number, int64_t ts, bool known);
/* md_cut_holds - cuts all holds of a thread. Call it before a wait or a system call of the thread begins or ends. */
void md_cut_holds(struct ptt_model *m, const struct tk_event *e);

/* ---- locks/holds.c: see holds.h ---- */

/* md_crowd_tell_holds - tells the holds of an object about the waiters seen so far. Call it before a hold begins, ends or is shown. */
void md_crowd_tell_holds(struct ptt_model *m, struct md_object *o);

/* ---- locks/objects.c ---- */

/* md_object - the living object of this kind at this address. @pair: its element with the thread of the event. */
static inline uint32_t md_object(struct ptt_model *m, const struct tk_event *e, uint32_t kind, uint64_t address,
				 uint32_t *pair)
{
	const struct tk_cached *cached = tk_cached(&m->t, e, kind, address);

	*pair = cached->own;
	MD_OBJECT(m, cached->object)->pub.last_ns = e->ts;
	return cached->object;
}

/* md_object_made, md_object_used - callbacks of the tracker: an object is new; a thread uses an object. */
void md_object_made(struct tracker *t, uint32_t object);
uint32_t md_object_used(struct tracker *t, uint32_t thread, uint32_t object);
/* md_object_without_use - @call creates or ends the object of an event; the event does not count as a use. Return: the object. */
uint32_t md_object_without_use(struct ptt_model *m, const struct tk_event *e,
			       uint32_t (*call)(struct tracker *t, const struct tk_event *e));
/* md_user - counts a thread among the users of an object. Return: the pair; 0: no pair is needed. */
uint32_t md_user(struct ptt_model *m, uint32_t thread, uint32_t object);
/* md_release_row - the site of the last release of an object. Most releases end no wait, so the row is made on demand. */
static inline uint32_t md_release_row(struct ptt_model *m, struct md_object *o)
{
	if (!o->release_row && o->pub.releaser)
		o->release_row = md_site(m, o->pub.releaser, o->pub.release_site, o->pub.kind);
	return o->release_row;
}
void md_init(struct ptt_model *m, const struct tk_event *e);
/* md_gil_taken - the acquisition of the interpreter's lock that a condition is part of; NULL: the lock is free, or there is none. */
const struct md_wakeup *md_gil_taken(const struct ptt_model *m, const struct md_object *o);
/* md_class - the class of a wait by the purpose of its object; @otherwise if the purpose is unknown. */
uint8_t md_class(const struct md_object *o, uint8_t otherwise);
/*
 * md_parked_at - a thread begins to wait for a semaphore
 *
 * No event says where a mutex or an event of Python begins. So a new object begins with the first wait, or with a wait for a
 * different purpose. Return: the object that is there now.
 */
uint32_t md_parked_at(struct ptt_model *m, const struct tk_event *e, uint32_t object);
/* md_type - an event names the purpose of a low-level lock, or the type of a lock of another library. */
void md_type(struct ptt_model *m, const struct tk_event *e);
/* md_set_type - sets the type of an object: its flags from PTT_OBJECT_TYPE_SHIFT on. */
void md_set_type(struct ptt_model *m, uint32_t object, uint32_t type);

/* ---- locks/locks.c ---- */

void md_acquire(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t pair, uint8_t mode);
void md_release(struct ptt_model *m, const struct tk_event *e);
void md_destroy(struct ptt_model *m, const struct tk_event *e);
void md_hold_open_rows(struct ptt_model *m, const int64_t *ends);

/* ---- waits/waits.c ---- */

uint32_t md_wait_begin(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint8_t mode);
/* md_wait_chain - the owner of a wait is itself in the wait @parent. @parent may be @w, which then needs a new number. */
void md_wait_chain(struct md_wait *w, const struct md_wait *parent);
/* md_wait_take - takes a finished wait out of all lists. False: the trace lacks its beginning, which is an estimate. */
bool md_wait_take(struct ptt_model *m, const struct tk_event *e, uint32_t object, struct md_wait *out);
/* md_wait_account - adds a finished wait to all sums and reports its rows. */
void md_wait_account(struct ptt_model *m, const struct md_wait *w, const struct md_end *end);
/* md_wait_row - reports the part of a wait from @since to @until, if the wait counts. */
void md_wait_row(struct ptt_model *m, struct md_rows *rows, const struct md_wait *w, const struct md_end *end,
		 int64_t since, int64_t until);
/* md_crowd - an object has @waiters now. Its holds learn the number later: see md_crowd_tell_holds(). */
void md_crowd(struct md_object *o, uint32_t waiters);
/* md_crowd_count - a counted wait has ended; notes the number of waiters at its beginning, this wait included. */
void md_crowd_count(struct ptt_model *m, struct md_object *o, const struct md_wait *w);
/* md_crowd_leave - a thread seemed to wait for an object until now, but has not waited since @ts. */
void md_crowd_leave(struct ptt_model *m, const struct md_object *o, int64_t ts);
/* md_take_call_of_wait - a thread waited for an object and took it in the same call: @e gets the site and stack of the wait. */
void md_take_call_of_wait(const struct ptt_model *m, struct tk_event *e, uint32_t object);
/* md_lock_waited - a wait for a lock is over: the thread took the lock, or gave up. */
void md_lock_waited(struct ptt_model *m, const struct tk_event *e, uint32_t object);
/*
 * md_end_of - the end of a wait that an event reports, still without its waker
 *
 * @done: class of the wait if it succeeded. @missing_ns: duration if the event has none.
 */
struct md_end md_end_of(const struct tk_event *e, uint8_t done, int64_t missing_ns);

/* ---- waits/wakes.c ---- */

void md_wake(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t count, uint8_t kind,
	     bool gave_back);
/* A post is stamped before it happens, so its stamp may be this much earlier than the wait that it ends. */
#define MD_SKEW_NS 1000000
/* md_wakeup_times - how often to feed the event of a wake-up early to restore the wake-up. */
uint32_t md_wakeup_times(const struct md_wakeup *wakeup);
void md_cond_in(struct ptt_model *m, const struct tk_event *e);
void md_cond_out(struct ptt_model *m, const struct tk_event *e);
/*
 * md_cond_open - turns an open condition wait into the wait for its mutex, if the thread was woken and did not get the mutex
 *
 * @signalled: the time of the wake-up. Return: whether @w is a wait for the mutex now.
 */
bool md_cond_open(struct ptt_model *m, struct md_wait *w, int64_t *signalled);
/* md_drop_wakes - forgets the unused wake-ups of an object. */
void md_drop_wakes(struct ptt_model *m, uint32_t object, int64_t ts);
void md_barrier_in(struct ptt_model *m, const struct tk_event *e);
void md_barrier_arrive(struct ptt_model *m, const struct tk_event *e);
void md_barrier_out(struct ptt_model *m, const struct tk_event *e);
void md_sem_taken(struct ptt_model *m, const struct tk_event *e);
void md_sem_gave_up(struct ptt_model *m, const struct tk_event *e);
void md_sem_post(struct ptt_model *m, const struct tk_event *e);
void md_futex_in(struct ptt_model *m, const struct tk_event *e);
void md_futex_out(struct ptt_model *m, const struct tk_event *e);
void md_futex_wake(struct ptt_model *m, const struct tk_event *e);
/* md_blame_waker - blames the known waker for a wait up to the wake-up. Sets end->held. */
void md_blame_waker(struct ptt_model *m, const struct md_wait *w, struct md_end *end);
/* md_futex_class - the class of a successful or open wait for a futex, or for a semaphore of a known kind. */
uint8_t md_futex_class(const struct md_wait *w);
/* md_sem_unknown_class - the same for a semaphore, if the thread that ends the wait is unknown. */
uint8_t md_sem_unknown_class(struct ptt_model *m, const struct md_wait *w);
/* md_wait_of_kind - sets the kind of the word or semaphore that an event names. @wait: the new wait, or 0 */
void md_wait_of_kind(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t wait);
void md_join_in(struct ptt_model *m, const struct tk_event *e);
void md_join_out(struct ptt_model *m, const struct tk_event *e);

/* ---- waits/open_waits.c ---- */

int md_finish_waits(struct ptt_model *m, const int64_t *ends);

/* ---- windows/window.c ---- */

/* md_window_reach - begins and ends the window if @ts has passed its limits. Call it before an event, and at the end. */
void md_window_reach(struct ptt_model *m, int64_t ts);
/* md_window_finish - restores the state of threads and objects at the end of the window, when all is accounted. */
void md_window_finish(struct ptt_model *m, const int64_t *ends);

#endif
