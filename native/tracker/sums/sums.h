/* SPDX-License-Identifier: MIT */
/* sums.h - what the parts of the model share: tables that never move, and what each part offers those above it. */
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

/* A hold, and what it has cost others. */
struct md_hold {
	struct tk_hold;
	uint64_t share; /* of the object when it began */
	struct tk_sched_mark sched; /* of its thread when it began */
	uint32_t pair;
	uint32_t site_row;
	uint32_t max_waiters;
	uint8_t thread_place; /* bits of `places` */
	uint8_t object_place;
};

/* A wait that has begun, and what it is to be charged to. */
struct md_wait {
	struct tk_wait;
	uint64_t parent;
	uint64_t chain; /* where its parents begin, 0 without any */
	int64_t retaken; /* when a condition wait had its mutex back, else TK_NEVER */
	uint64_t held;	 /* of the object when it began */
	uint64_t mutex_held; /* of the mutex when it was retaken */
	uint64_t mutex_held_all;
	struct tk_sched_mark sched; /* of the thread when it began */
	uint32_t site_row;
	uint32_t owner_site;
	uint32_t owner_stack;
	uint32_t released_stack; /* of the first release by the owner, 0 = none is known */
	uint32_t released_site;
	uint32_t depth;
	int32_t locks_held; /* by its thread; -1 = not known */
	uint32_t crowd; /* waiters when it began, and those a signal has woken that wait for its condition still */
	bool named; /* the owner was named by the event: no hold of it was known */
	bool owner_follows; /* and nobody has taken it since */
	uint8_t futex; /* its kind: a place in ptt_futex_kinds */
	bool counted;
};

/* The last ones to hold a lock that was waited for, in the order in which they let go. */
#define MD_LOG 64u

struct md_log_entry {
	int64_t since;
	int64_t ended;
	uint32_t thread; /* 0 = nobody knows */
	uint32_t site;	 /* as md_blame() takes it */
};

struct md_log {
	struct md_log_entry entry[MD_LOG];
	uint32_t count; /* ever */
};

/* A wake-up, and the object that the woken threads wait for then. */
struct md_wakeup {
	struct tk_wakeup;
	uint64_t held;	/* of the mutex then */
	uint64_t held_all;
	uint32_t mutex; /* that the woken have to take back, where it is known when it is held; else 0 */
	uint32_t site_row;
	uint32_t crowd; /* of the mutex then */
	bool gave_back; /* the poster had taken a unit before */
};

struct md_object {
	struct ptt_model_object pub;
	uint64_t share;     /* integral over time of waiters / holders, since it was first waited for */
	uint64_t held;      /* how long it was held meanwhile */
	uint64_t held_all;  /* the window or not */
	int64_t share_ts;
	uint64_t tail_share;
	int64_t tail_since;
	uint64_t excess;    /* has been charged for waits that gave up, and of whom nobody remembers */
	uint64_t blamed;    /* of all its holders, when all is over */
	uint64_t address_users; /* of `first`: the threads that used it or a later one, as `pub.users` */
	uint64_t places; /* that are taken by holds; the last one is never full */
	uint32_t tail;      /* the thread that is blamed where holds are not recorded */
	uint32_t sharing;   /* waiters that count */
	uint32_t crowd;     /* most that waited since a hold last began or ended: holds that go on are yet to learn of it */
	uint32_t awaited;   /* by so many that a signal has woken, and that wait for its condition still */
	uint32_t release_row; /* site of the last release; 0 if nobody has asked for it: see md_release_row() */
	uint32_t held_site; /* where the last hold that was over had begun; 0 if it is not known */
	uint32_t log;
	uint32_t units_out; /* threads that have units of a semaphore */
	uint32_t first; /* the first object of this address that was initialized at the same place */
	bool owner_follows; /* a waiter's owner may not have said yet that it took it */
	bool counted;
	bool as_lock;	    /* a semaphore whose one unit has always come back from the thread that took it */
	bool given_away;    /* such a semaphore, posted by another thread while nobody waited: as the interpreter does before it frees a lock */
	uint32_t maker;	    /* of such a semaphore: the thread that initialized it */
	bool pool;	    /* a semaphore that began with several units, which threads take and give back */
	uint8_t purpose;    /* enum ptt_purpose */
	bool made_by_stack; /* the stack of its initialization is known: so are those of all that matters */
};

struct md_site {
	struct ptt_model_site pub;
	bool counted;
	uint8_t use; /* enum ptt_site_use */
};

/* What a thread used last. */
#define MD_SITES 32u

struct md_cache {
	struct tk_cached object[TK_CACHE];
	uint64_t site_key[MD_SITES];
	uint32_t site[MD_SITES];
};

/* What the kernel did with a thread, from a time on. */
enum { MD_NEVER /* there was no switch */, MD_ON, MD_OFF, MD_PREEMPTED, MD_MISSED /* that is not known */ };

struct md_switch {
	int64_t ts;
	uint16_t cpu;
	uint8_t now;
};

struct md_thread {
	struct ptt_model_thread pub;
	struct tk_sched sched;
	int64_t reported; /* its states are reported up to here; TK_NEVER: none is */
	int64_t path_first; /* where the critical path leaves and enters it, and its last event; set by the end */
	int64_t path_last;
	int64_t path_event;
	int64_t path_wait; /* since when it waits at path_last, or TK_NEVER */
	int64_t made_ns; /* when `maker` forked its process, or became it */
	uint32_t maker; /* of the first thread of a process: the thread that did, or 0 */
	uint64_t places; /* as of an object */
	bool trying; /* inside a try-lock, as level 3 shows */
	uint16_t call; /* a system call in which it sleeps, since its last event; 0 = none */
	int64_t call_ns;	     /* when that began */
	struct tk_sched_mark called; /* then */
	struct md_switch last; /* switch */
	struct md_switch *switches; /* the first one from before `reported`, where one is known; in order. For states only */
	uint32_t switch_count;
	uint32_t switch_room;
};

/* A finished wait, for the critical path. */
struct md_step {
	int64_t start;
	int64_t wake;
	int64_t end;
	int64_t ready; /* so long before the end it could have run, and had no processor; -1 = not known */
	uint32_t thread;
	uint32_t waker;
	uint32_t object;
	uint32_t site;
};

/* The waits for the critical path, in the order of their ends. */
struct md_steps {
	struct md_rows held; /* the latest */
	uint64_t stored; /* so many before those are in the file */
	struct md_step *back; /* a part of the file, while the path is walked */
	uint64_t back_part; /* its number, plus 1 */
	int64_t least; /* shorter ones are left out */
	int file; /* -1 = none */
};

/* Where a walk along the critical path has come to. */
struct md_walk {
	int64_t t;
	uint64_t left; /* waits that lie before */
	uint32_t thread; /* 0 = it is over */
	uint32_t hops; /* to creators */
};

/* How a wait ended. */
struct md_end {
	int64_t ts;
	int64_t dur;  /* -1: ts - start */
	int64_t wake; /* or TK_NEVER */
	uint64_t held; /* of a contended one */
	uint32_t waker;
	uint32_t waker_site;
	uint32_t waker_stack;
	int32_t result;
	uint8_t wait_class;
	uint8_t wake_kind;
	bool open;
};

/* What threads and objects were like when a window ended, for the tables: element by element. */
struct md_then_thread {
	int64_t last_ns;
	int64_t end_ns;
	int64_t join_ns;
	uint32_t flags;
	uint32_t held;
	uint32_t policy;
	int32_t priority;
	int64_t wait_ns; /* since when it waits, or TK_NEVER */
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
	bool begun; /* the first event inside it, or behind it, was seen */
	bool ended; /* the first event behind it was seen */
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
	struct rd_pool logs;
	struct md_rows wait_rows, hold_rows, wakeup_rows, open_rows, state_rows, segments, thread_states;
	struct md_steps steps;
	struct md_walk walk;
	struct rd_map site_of, pair_of, blame_of, cause_key, cause_of, waker_of, edge_of;
	struct rd_map made_of; /* the first object by process, kind, place of initialization and address */
	struct rd_choice only_objects;
	struct rd_map only_sites, site_uses;
	struct rd_map families; /* facts of processes, by process id */
	struct rd_map gils, semaphores; /* purposes of objects by process and address; of semaphores, by process and stack */
	bool only_threads;
	bool unused; /* the event that is fed makes an object or ends it, and is no use of it */
	bool early; /* the events of ptt_model_state() are fed */
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

/* What follows is in order: each file calls those above it only, and model.c calls them all. */

/* md_new - the number of a new zeroed element; 0 when there is no room, which fails the model. */
static inline uint32_t md_new(struct ptt_model *m, struct rd_pool *pool)
{
	return rd_pool_new(pool, &m->t.error);
}

/* md_is_lock - objects of this kind are held by a thread, and others wait for it to let go. */
static inline bool md_is_lock(uint32_t kind)
{
	return kind == PTT_KIND_MUTEX || kind == PTT_KIND_RWLOCK || kind == PTT_KIND_SPIN || kind == PTT_KIND_ONCE ||
	       kind == PTT_KIND_LLL;
}

/* ---- what lies in the window ---- */

/* md_inside - whether an interval, or a moment, lies in the window with some part, to which it is cut. */
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
 * md_portion - the part of an interval that lies in the window, times @times, divided by @among. It is rounded so that the
 * portions of consecutive windows add up to the portion of the whole.
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

/* ---- tables.c ---- */

/* md_row - a new zeroed row, or NULL, which fails the model. */
void *md_row(struct ptt_model *m, struct md_rows *rows);

/* md_lookup - the element a key leads to, made when new. @made: whether it was. */
uint32_t md_lookup(struct ptt_model *m, struct rd_map *map, struct rd_pool *pool, uint64_t a, uint64_t b, bool *made);
/* md_pair - the element of a thread and an object. */
uint32_t md_pair(struct ptt_model *m, uint32_t thread, uint32_t object);
/* md_site - the row of a call site of a thread; 0 without one. */
uint32_t md_site(struct ptt_model *m, uint32_t thread, uint64_t site, uint32_t kind);
/* md_counted - whether the choice of threads, objects and call sites includes these. */
bool md_counted(const struct ptt_model *m, uint32_t thread, uint32_t object, uint32_t site);
/* md_histogram_add - counts a wait in a histogram, which is made if it is 0. */
void md_histogram_add(struct ptt_model *m, uint32_t *histogram, uint64_t ns);

/* ---- objects.c ---- */

/* md_object - the object that an event of this kind at this address means, alive; pair: its entry with the thread. */
static inline uint32_t md_object(struct ptt_model *m, const struct tk_event *e, uint32_t kind, uint64_t address,
				 uint32_t *pair)
{
	const struct tk_cached *cached = tk_cached(&m->t, e, kind, address);

	*pair = cached->own;
	MD_OBJECT(m, cached->object)->pub.last_ns = e->ts;
	return cached->object;
}

/* md_object_made, _used - what the tracker calls: a new object, and a thread that uses one. */
void md_object_made(struct tracker *t, uint32_t object);
uint32_t md_object_used(struct tracker *t, uint32_t thread, uint32_t object);
/* md_unused - the object of an event that makes it or ends it; @call: what the tracker does with that. */
uint32_t md_unused(struct ptt_model *m, const struct tk_event *e, uint32_t (*call)(struct tracker *t, const struct tk_event *e));
/* md_user - counts the threads that use an object. Returns the pair, or 0 where none is needed. */
uint32_t md_user(struct ptt_model *m, uint32_t thread, uint32_t object);
/* md_release_row - the site of the last release of an object; most releases end no wait, and need none. May allocate. */
static inline uint32_t md_release_row(struct ptt_model *m, struct md_object *o)
{
	if (!o->release_row && o->pub.releaser)
		o->release_row = md_site(m, o->pub.releaser, o->pub.release_site, o->pub.kind);
	return o->release_row;
}
void md_init(struct ptt_model *m, const struct tk_event *e);
/* md_gil_taken - how the lock of an interpreter was taken that a condition stands for; NULL: it is no such condition, or the lock is free. */
const struct md_wakeup *md_gil_taken(const struct ptt_model *m, const struct md_object *o);
/* md_class - what a wait for an object is that is of class @otherwise, if nothing is known of what the object is for. */
uint8_t md_class(const struct md_object *o, uint8_t otherwise);
/*
 * md_parked_at - a thread begins to wait for a semaphore. No event says where a mutex or an event of Python begins: the
 * object begins with the first wait, or with a wait that is for something else
 * Return: the object that is there now.
 */
uint32_t md_parked_at(struct ptt_model *m, const struct tk_event *e, uint32_t object);
void md_destroy(struct ptt_model *m, const struct tk_event *e);
/* md_type - an event reported what a low-level lock is for, or which type of lock of another library an object is. */
void md_type(struct ptt_model *m, const struct tk_event *e);
/* md_set_type - it is of this type from now on: flags from PTT_OBJECT_TYPE_SHIFT on. */
void md_set_type(struct ptt_model *m, uint32_t object, uint32_t type);

/* ---- blame.c ---- */

/* Added to the site of a hold's release that stands for where it was taken. */
#define MD_RELEASED (UINT32_C(1) << 31)
uint32_t md_blame(struct ptt_model *m, uint32_t object, uint32_t thread, uint32_t site);
/* md_charge - waits of others that a holder or waker caused. May be negative. */
void md_charge(struct ptt_model *m, uint32_t blame, int64_t ns);
/* md_sharing - how many waits the holders of an object are to be blamed for now. */
static inline uint32_t md_sharing(const struct md_object *o)
{
	return o->sharing + o->awaited;
}

/* md_share - adds up to now; before a holder or waiter comes or goes. */
void md_share(struct ptt_model *m, struct md_object *o, int64_t ts);
uint32_t md_log_of(struct ptt_model *m, struct md_object *o);
void md_log_add(struct ptt_model *m, struct md_object *o, struct md_log_entry entry);
void md_close_tail(struct ptt_model *m, struct md_object *o, int64_t ts);
/* md_blame_from - whom to blame from now on, where holds are not recorded; thread 0 = nobody knows. */
void md_blame_from(struct ptt_model *m, uint32_t object, uint32_t thread, uint32_t site, int64_t ts);
/* md_claim - a thread turns out to have had the lock since it was last released, while this wait went on. */
void md_claim(struct ptt_model *m, struct md_wait *w, uint32_t thread, uint32_t site, int64_t ts);
/*
 * md_place_owner - the owner that was named, or that nobody knew, has the lock. It had it before it could say so, as a thread
 * may wait for one whose acquisition is stamped later: then it is this hold that was waited for. Before its own wait for it is over.
 */
void md_place_owner(struct ptt_model *m, const struct tk_event *e, uint32_t object);
/* md_no_owner_follows - what takes the lock from now on is no hold that its waiters have named. */
void md_no_owner_follows(struct ptt_model *m, struct md_object *o);
/* md_take_back - takes a part of a wait from the threads that held it, as far as they are known. Return: how much, up to @most. */
uint64_t md_take_back(struct ptt_model *m, uint32_t object, int64_t start, int64_t end, uint64_t most);
/* md_unblame - takes a wait, or a part of it that was held for @ns, out of what holders are blamed for. */
void md_unblame(struct ptt_model *m, uint32_t object, int64_t start, int64_t end, uint64_t ns);
/* md_blame_past - blames holds that are over for a wait of @thread that nobody knew of. Return: how long they were. */
uint64_t md_blame_past(struct ptt_model *m, uint32_t object, uint32_t thread, int64_t start, int64_t end);
/* md_settle - takes what nobody remembers from all holders of the object, in proportion; when all is over. */
void md_settle(struct ptt_model *m);

/* ---- edges.c ---- */

void md_edges(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint8_t mode, bool blocked);

/* ---- threads.c ---- */

/* md_thread_of_tid - the thread with a kernel thread id, made known if it is not. */
uint32_t md_thread_of_tid(struct ptt_model *m, uint32_t process, uint32_t tid);
void md_create(struct ptt_model *m, const struct tk_event *e);
void md_begin(struct ptt_model *m, const struct tk_event *e);
void md_schedule(struct ptt_model *m, const struct tk_event *e);
/* md_silence - a thread had no event since its last one; that is silence unless it was in a wait. */
void md_silence(struct ptt_model *m, struct md_thread *t, int64_t until);

/* md_lives - threads that have not ended live until their process ends; @ends: when each process ended. */
void md_lives(struct ptt_model *m, const int64_t *ends);

/* ---- steps.c ---- */

void md_step_put(struct ptt_model *m, struct md_step step);
void md_step_add(struct ptt_model *m, const struct md_wait *w, const struct md_end *end, int64_t dur);
uint64_t md_step_count(const struct ptt_model *m);
/* md_step_at - valid until the next call; NULL when it cannot be read, which fails the model. */
const struct md_step *md_step_at(struct ptt_model *m, uint64_t number);
/* md_steps_leave - gives back what reading them took. */
void md_steps_leave(struct ptt_model *m);

/* ---- families.c ---- */

void md_process_start(struct ptt_model *m, const struct tk_event *e);
/* md_process_made - a thread forked or spawned a process. */
void md_process_made(struct ptt_model *m, const struct tk_event *e);
/* md_process_reaped - a thread knows that a child has ended. */
void md_process_reaped(struct ptt_model *m, const struct tk_event *e);

/* ---- waits.c ---- */

uint32_t md_wait_begin(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint8_t mode);
/* md_wait_behind - the owner that a wait is for was in the wait @parent then; @parent may be the wait itself, to be numbered anew. */
void md_wait_behind(struct md_wait *w, const struct md_wait *parent);
/* md_wait_take - takes a wait that is over out of all lists. False: its beginning is not in the trace, but guessed. */
bool md_wait_take(struct ptt_model *m, const struct tk_event *e, uint32_t object, struct md_wait *out);
/* md_wait_account - adds a finished wait to all sums and reports its rows. */
void md_wait_account(struct ptt_model *m, const struct md_wait *w, const struct md_end *end);
/* md_wait_row - reports a wait, or the part of it from @since to @until, in rows, if the wait counts. */
void md_wait_row(struct ptt_model *m, struct md_rows *rows, const struct md_wait *w, const struct md_end *end,
		 int64_t since, int64_t until);
/* md_crowd - so many wait for an object now: what its holds are told. */
void md_crowd(struct md_object *o, uint32_t waiters);
/* md_crowd_was - a wait that is over, and counts, had so many beside it when it began, itself included. */
void md_crowd_was(struct ptt_model *m, struct md_object *o, const struct md_wait *w);
/* md_not_in_crowd - a thread seemed to wait for an object until now, and has not waited since @ts. */
void md_not_in_crowd(struct ptt_model *m, const struct md_object *o, int64_t ts);
/* md_crowd_pass - lets the holds of an object have what md_crowd() has seen: before one of them begins, ends or is shown. */
void md_crowd_pass(struct ptt_model *m, struct md_object *o);
/* md_take_call_of_wait - a thread that waited for an object took it by the call that it waited in. */
void md_take_call_of_wait(const struct ptt_model *m, struct tk_event *e, uint32_t object);
/* md_lock_waited - a wait for a lock is over: taken or given up. */
void md_lock_waited(struct ptt_model *m, const struct tk_event *e, uint32_t object);
/* md_end_of - the end that @e reports, its waker not yet known: of class @done where it got what it waited for, and
 * @missing_ns long where @e does not say how long. */
struct md_end md_end_of(const struct tk_event *e, uint8_t done, int64_t missing_ns);

/* ---- locks.c ---- */

void md_acquire(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t pair, uint8_t mode);
void md_release(struct ptt_model *m, const struct tk_event *e);
void md_hold_open_rows(struct ptt_model *m, const int64_t *ends);

/* ---- wakes.c ---- */

void md_wake(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t count, uint8_t kind,
	     bool gave_back);
/* A post may be stamped before the wait that it ends, for it is stamped before it is done. */
#define MD_SKEW_NS 1000000
/* md_wakeup_times - how often the event of a wake-up is to be fed early to become this one. */
uint32_t md_wakeup_times(const struct md_wakeup *wakeup);
void md_cond_in(struct ptt_model *m, const struct tk_event *e);
void md_cond_out(struct ptt_model *m, const struct tk_event *e);
/* md_cond_open - a condition wait that has been woken and never got its mutex back: what it really waits for. */
bool md_cond_open(struct ptt_model *m, struct md_wait *w, int64_t *signalled);
/* md_drop_wakes - forgets the wake-ups that nobody has used. */
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
/* md_blame_waker - blames whoever ended a wait, if that is known, for the time up to the wake-up; fills in end->held. */
void md_blame_waker(struct ptt_model *m, const struct md_wait *w, struct md_end *end);
/* md_futex_class - what a wait for a futex, or a semaphore of a known kind, is that got what it waited for, or goes on. */
uint8_t md_futex_class(const struct md_wait *w);
/* md_sem_unknown_class - the same of one for a semaphore, where the thread that ends it is not known. */
uint8_t md_sem_unknown_class(struct ptt_model *m, const struct md_wait *w);
/* md_wait_of_kind - a wait, or 0, begins for a word or semaphore of the kind that the event names, if it names one. */
void md_wait_of_kind(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t wait);
void md_join_in(struct ptt_model *m, const struct tk_event *e);
void md_join_out(struct ptt_model *m, const struct tk_event *e);

/* ---- thread_states.c ---- */

void md_sched(struct ptt_model *m, const struct tk_event *e);
void md_sched_unknown(struct ptt_model *m, const struct tk_event *e);
/* md_switches_loaded - a thread of a snapshot, which has no memory of the model that was saved. */
void md_switches_loaded(struct ptt_model *m, struct md_thread *t);
void md_switched(struct ptt_model *m, const struct tk_event *e, enum tk_action action);
/* md_state_of_wait - reports a wait of a class that is over at @until, and what the thread did since its last report. */
void md_state_of_wait(struct ptt_model *m, const struct md_wait *w, uint8_t wait_class, int64_t until);
void md_sleep_begin(struct ptt_model *m, const struct tk_event *e);
/* md_sleep_end - at any event of a thread in a call but the readings of the scheduler. */
void md_sleep_end(struct ptt_model *m, const struct tk_event *e);
/* md_finish_states - all lives are known, and all waits are reported of. */
void md_finish_states(struct ptt_model *m);

/* ---- open_waits.c ---- */

int md_finish_waits(struct ptt_model *m, const int64_t *ends);

/* ---- window.c ---- */

/* md_window_reach - before an event, or the end, at this time: begins and ends the window where it is behind that. */
void md_window_reach(struct ptt_model *m, int64_t ts);
/* md_window_finish - after all is accounted: leaves threads and objects as they were in the window. */
void md_window_finish(struct ptt_model *m, const int64_t *ends);

#endif
