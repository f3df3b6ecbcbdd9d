/* SPDX-License-Identifier: MIT */
/* promises.h - what the parts of the verifier share: threads, objects, holds, and how violations are reported. */
#ifndef PTT_TRACKER_PROMISES_H
#define PTT_TRACKER_PROMISES_H

#include "../state/state.h"
#include "pttverify.h"

/*
 * Stamps of calls and returns are not fenced: one may be this much earlier than what came before it in the program was
 * seen by other processors. It is some hundred times what a processor can read ahead.
 */
#define VF_SLACK_NS 10000

enum vf_rule {
	VF_MUTEX_EXCLUSION, VF_MUTEX_RECURSION, VF_MUTEX_OWNER, VF_MUTEX_ROBUST, VF_RWLOCK_EXCLUSION,
	VF_RWLOCK_PREFERENCE, VF_SPIN_EXCLUSION, VF_COND_MUTEX, VF_COND_WAKEUP, VF_BARRIER_EARLY, VF_BARRIER_SERIAL,
	VF_SEM_VALUE, VF_ONCE_TWICE, VF_ONCE_EARLY, VF_JOIN_END, VF_CREATE_BEGIN, VF_TRY_BUSY, VF_TIMEOUT_EARLY,
	VF_RESULT, VF_NOT_WOKEN, VF_RULES,
};

enum vf_skip {
	VF_SKIP_INCOMPLETE, VF_SKIP_BEFORE, VF_SKIP_SHARED, VF_SKIP_FORKED, VF_SKIP_MISUSED, VF_SKIP_REUSED,
	VF_SKIP_LEVEL, VF_SKIP_CLOCK, VF_SKIP_LATE, VF_SKIPS,
};

/* ---- tables ---- */

/* A lock that a thread holds, and what would show that the lock did not keep its promise meanwhile. */
struct vf_hold {
	struct tk_hold;
	bool after_wait; /* taken by a condition wait */
	bool let_go;     /* not all of a recursive lock */
	bool twice;      /* taken again although of the error-checking type */
	uint8_t conflict_rule;
	struct ptt_event taken;
	struct ptt_event conflict; /* what the lock must not have allowed meanwhile; id 0 = nothing */
};

/* A thread that waits for a condition. */
struct vf_waiter {
	struct tk_wait;
	uint32_t mutex_generation;
	int64_t freed;	/* when it said to release the mutex; TK_NEVER = it has not */
	struct ptt_event in;
};

/* A signal that has woken threads which are known to have waited. */
struct vf_wakeup {
	struct tk_wakeup;
	struct ptt_event signal;
};

#define VF_MISUSED PTT_OBJECT_OWN /* the program did what POSIX does not define */

/* What is known of an object; another one at the same place takes its element, with the next generation. */
struct vf_object {
	struct ptt_track_object;
	uint32_t epoch;
	bool before_it; /* there was another one here */
	uint8_t type; /* of a mutex, preference of a rwlock, clock of a condition */
	bool robust;
	bool inconsistent; /* taken from a dead owner, and nobody has made it consistent: it has no owner */
	struct ptt_event init;
	/* the thread that touched it last, and when another one did before */
	uint32_t events;
	uint32_t last_thread;
	int64_t last_ts;
	int64_t other_ts;
	struct ptt_event tried;	  /* a try that no thread could have made fail ... */
	struct ptt_event refused; /* ... and that seems to have failed; id 0 = none */
	uint32_t calls; /* in progress that may take or release it, as level 3 shows */
	union {
		struct {
			uint32_t writers; /* that wait */
			uint32_t writer;  /* the only one that waits; 0 = not known */
			struct ptt_event alone;  /* when it began to */
			struct ptt_event queued; /* what shows that it is queued; id 0 = nothing */
			struct ptt_event overtaker;
		} lock;
		struct {
			uint32_t count;
			uint64_t in, out, serials;
			uint64_t early_in;
			struct ptt_event last_in;
			struct ptt_event full;  /* completed the last round */
			struct ptt_event early; /* left before that, it seems; id 0 = nobody */
		} barrier;
		struct {
			uint64_t value, posts, takes;
			int64_t positive_ts; /* has units since then */
			struct ptt_event post;
			struct ptt_event below; /* took what was not there, it seems; id 0 = nobody */
		} sem;
		struct {
			uint32_t runner; /* 0 = nobody */
			struct ptt_event begin;
			struct ptt_event end;   /* of a run that was not cancelled; id 0 = none */
			struct ptt_event again; /* runs it as well, it seems */
			struct ptt_event early; /* returned meanwhile, it seems */
		} once;
	};
};

/* A call in progress, as level 3 shows, or a wait. */
struct vf_call {
	uint32_t object, generation;
	uint32_t thread; /* that a join waits for */
	bool quiet;  /* nobody else could have made a try fail */
	bool freed;  /* an unlock has been accepted as the owner's */
	uint32_t events; /* of the object, then */
	struct ptt_event in; /* id 0 = none */
};

#define VF_RECENT 32u

/* It has ended, as its end or the beginning of another one with its kernel thread id shows. */
#define VF_GONE (PTT_THREAD_ENDED | PTT_THREAD_REPLACED)

struct vf_thread {
	struct ptt_track_thread;
	uint32_t epoch;
	struct vf_call call;    /* the innermost of level 3 */
	struct vf_call blocked; /* a wait for anything but a condition */
	struct vf_call barrier;
	struct vf_call waited;  /* the last once that it waited for */
	struct vf_call cond;    /* .events: number of the waiter */
	bool retaken;           /* the condition wait has its mutex back */
	struct ptt_event create; /* id 0 = it is not creating a thread */
	struct ptt_event gone; /* somebody joined it, or a mutex said that its owner was dead; id 0 = no */
	struct ptt_event owned; /* what it had taken then */
	uint8_t gone_rule;
	struct ptt_event bad_free; /* of a lock that another one holds; id 0 = none */
	/* what it took lately, by object */
	struct {
		uint32_t object, generation;
		int64_t ts;
	} taken[VF_RECENT];
};

struct vf_cache {
	struct tk_cached object[TK_CACHE];
};

struct vf_process {
	struct tk_process;
	struct ptt_verify_process known;
	int64_t forked;
	uint32_t epoch; /* counts the moments from which nothing before is known */
};

#define TK_IS_PROCESS struct vf_process
#define TK_IS_THREAD struct vf_thread
#define TK_IS_OBJECT struct vf_object
#define TK_IS_HOLD struct vf_hold
#define TK_IS_WAIT struct vf_waiter
#define TK_IS_WAKEUP struct vf_wakeup
#define TK_IS_CACHE struct vf_cache
#include "../state/hot.h"

struct ptt_verify {
	struct tracker t;
	int64_t patience;
	struct rd_map begin_of, row_of;
	struct ptt_verify_violation *rows;
	uint32_t row_count, row_room;
	struct ptt_event *begun; /* begins of threads, by begin_of */
	uint32_t begun_count, begun_room;
	uint64_t checks[VF_RULES];
	uint64_t skips[VF_SKIPS];
	const int16_t *errors[1024]; /* that a routine may return, by the id of its _IN event; ends with 0 */
	bool tries[1024];            /* returns at once where it would have to wait */
	bool makes[1024];            /* initializes or destroys */
};

#define VF_OBJECT(v, i) (&((struct vf_object *)(void *)(v)->t.objects.items)[i])
#define VF_THREAD_AT(v, i) (&((struct vf_thread *)(void *)(v)->t.threads.items)[i])
#define VF_HOLD(v, i) (&((struct vf_hold *)(void *)(v)->t.holds.items)[i])
#define VF_WAITER(v, i) (&((struct vf_waiter *)(void *)(v)->t.waits.items)[i])
#define VF_WAKEUP(v, i) (&((struct vf_wakeup *)(void *)(v)->t.wakeups.items)[i])
#define VF_PROCESS(v, i) (&((struct vf_process *)(void *)(v)->t.processes)[i])

/* ---- renewal.c ---- */

/* vf_renew - forgets what was there; what comes is another object. */
void vf_renew(struct ptt_verify *v, struct vf_object *o);
/* vf_object_gone - destroyed: it is forgotten. */
void vf_object_gone(struct ptt_verify *v, struct vf_object *o);
void vf_object_made(struct tracker *t, uint32_t object);
/* vf_drop_holds - nobody holds the lock any more. */
void vf_drop_holds(struct ptt_verify *v, struct vf_object *o);

/* vf_number_of - of an object, in the tracker. */
static inline uint32_t vf_number_of(const struct ptt_verify *v, const struct vf_object *o)
{
	return (uint32_t)(o - VF_OBJECT(v, 0));
}

static inline bool vf_is_there(const struct ptt_verify *v, const struct vf_object *o)
{
	return !(o->flags & PTT_OBJECT_ENDED) && o->epoch == VF_PROCESS(v, o->process)->epoch;
}

/* vf_object - what an event of this kind means at its object's address; made when it is new. */
static inline struct vf_object *vf_object(struct ptt_verify *v, const struct tk_event *e, uint32_t kind, uint64_t address)
{
	struct vf_object *o = VF_OBJECT(v, tk_object(&v->t, e, kind, address));

	if (unlikely(!vf_is_there(v, o)))
		vf_renew(v, o);
	return o;
}

/* vf_same - the object that a call was about, or NULL if there is another one by now. */
static inline struct vf_object *vf_same(const struct ptt_verify *v, const struct vf_call *call)
{
	struct vf_object *o = VF_OBJECT(v, call->object);

	return call->in.id && call->object && o->generation == call->generation && vf_is_there(v, o) ? o : NULL;
}

/* vf_mutex_of - the mutex that a waiter for a condition came with; NULL if there is another one by now. */
static inline struct vf_object *vf_mutex_of(const struct ptt_verify *v, const struct vf_waiter *w)
{
	struct vf_object *o = VF_OBJECT(v, w->mutex);

	return w->mutex && o->generation == w->mutex_generation ? o : NULL;
}

/* vf_hold_of - the hold that a thread has of a lock, or NULL. */
static inline struct vf_hold *vf_hold_of(const struct ptt_verify *v, const struct vf_object *o, uint32_t thread)
{
	uint32_t hold = o->holds;

	while (hold && VF_HOLD(v, hold)->thread != thread)
		hold = VF_HOLD(v, hold)->object_next;
	return hold ? VF_HOLD(v, hold) : NULL;
}

/* ---- report.c ---- */

struct vf_claim {
	enum vf_rule rule;
	uint32_t severity;
	uint32_t process;
	uint32_t kind;
	uint64_t object;
	uint64_t detail; /* distinguishes what else is the same */
};

/* vf_report - a violation; events whose id is 0 are left out. Returns its row if it is the first of its kind. */
struct ptt_verify_violation *vf_report(struct ptt_verify *v, const struct vf_claim *claim,
				     const struct ptt_event *const *events, uint32_t count);
#define VF_EVENTS(...)                                              \
	((const struct ptt_event *const[]){ __VA_ARGS__ }),  \
	(uint32_t)(sizeof((const struct ptt_event *const[]){ __VA_ARGS__ }) / sizeof(void *))
/* VF_TELL(v, VF_ONCE_TWICE, o, &first, &second): an error about an object. */
#define VF_TELL(v, which, o, ...)                                                                                   \
	vf_report(v, &(struct vf_claim){ .rule = which, .process = (o)->process, .kind = (o)->kind,                  \
				       .object = (o)->address },                                                    \
		VF_EVENTS(__VA_ARGS__))
/* vf_forget_recent - takes back what was said of a process in the second before: events were missing already. */
void vf_forget_recent(struct ptt_verify *v, uint32_t process, int64_t ts, enum vf_skip reason);
/* vf_not_woken - a thread should have gone on at `since`: reports it if that is long enough before the end. */
void vf_not_woken(struct ptt_verify *v, uint32_t process, const struct vf_object *o, int64_t since,
		  const struct ptt_event *wait, const struct ptt_event *due);
/* vf_private - seen since its initialization and used by one process only; else counted as skipped. */
bool vf_private(struct ptt_verify *v, const struct vf_object *o);

/* ---- results.c ---- */

void vf_learn_calls(struct ptt_verify *v);
/* vf_result - whether a routine may return this; @in: its beginning, id 0 when it is not known. */
void vf_result(struct ptt_verify *v, const struct tk_event *e, const struct ptt_event *in);
/* vf_result_of - the same; @call: the id of the routine's _IN event. */
void vf_result_of(struct ptt_verify *v, const struct tk_event *e, uint32_t call, int64_t result,
		  const struct ptt_event *in);

/* ---- settle.c ---- */

/* vf_touch - a thread does something to a lock or semaphore. */
void vf_touch(struct ptt_verify *v, struct vf_object *o, const struct tk_event *e);
/* vf_settle - reports what an event of the same moment could still have explained, now that the time is later. */
void vf_settle(struct ptt_verify *v, struct vf_object *o, int64_t ts);
/* vf_units - what a semaphore has had to give so far. */
uint64_t vf_units(const struct vf_object *o);

/* ---- cond_promises.c ---- */

void vf_cond_in(struct ptt_verify *v, const struct tk_event *e);
void vf_cond_out(struct ptt_verify *v, const struct tk_event *e);
void vf_cond_wake(struct ptt_verify *v, const struct tk_event *e);
void vf_cond_leave(struct ptt_verify *v, struct vf_thread *t);
/* vf_cond_mutex_freed, _taken - what the thread's condition wait does with its mutex. */
void vf_cond_mutex_freed(struct ptt_verify *v, struct vf_thread *t, const struct vf_object *mutex, int64_t ts);
bool vf_cond_mutex_taken(struct ptt_verify *v, struct vf_thread *t, const struct vf_object *mutex);
void vf_conds_finish(struct ptt_verify *v);

/* ---- lock_promises.c ---- */

void vf_lock_init(const struct tk_event *e, struct vf_object *o);
void vf_acquire(struct ptt_verify *v, const struct tk_event *e);
void vf_release(struct ptt_verify *v, const struct tk_event *e);
void vf_consistent(struct ptt_verify *v, const struct tk_event *e);
void vf_lock_wait(struct ptt_verify *v, const struct tk_event *e);
void vf_lock_wait_end(struct ptt_verify *v, const struct tk_event *e);

/* vf_settle_bad_free - the event after a release of what another thread holds says whether it was refused. */
void vf_settle_bad_free(struct ptt_verify *v, const struct tk_event *e);
/* vf_checks_owner - a mutex that promises an error to whoever unlocks it without owning it. */
bool vf_checks_owner(const struct vf_object *o);

/* ---- counts.c ---- */

void vf_barrier_in(struct ptt_verify *v, const struct tk_event *e);
void vf_barrier_out(struct ptt_verify *v, const struct tk_event *e);
void vf_sem_taken(struct ptt_verify *v, const struct tk_event *e);
void vf_sem_post(struct ptt_verify *v, const struct tk_event *e);
void vf_once_begin(struct ptt_verify *v, const struct tk_event *e);
void vf_once_end(struct ptt_verify *v, const struct tk_event *e);
void vf_once_wait(struct ptt_verify *v, const struct tk_event *e);
void vf_once_returned(struct ptt_verify *v, const struct tk_event *e, const struct vf_call *since);

void vf_barriers_finish(struct ptt_verify *v);

/* ---- thread_promises.c ---- */

void vf_create(struct ptt_verify *v, const struct tk_event *e);
void vf_begin(struct ptt_verify *v, const struct tk_event *e);
/* vf_replaced - another thread begins with the kernel thread id of this one. */
void vf_replaced(struct tracker *t, uint32_t thread);
void vf_end(struct ptt_verify *v, const struct tk_event *e);
void vf_join_in(struct ptt_verify *v, const struct tk_event *e);
void vf_join_out(struct ptt_verify *v, const struct tk_event *e);
void vf_blocked_finish(struct ptt_verify *v);

/* ---- calls.c ---- */

void vf_call_in(struct ptt_verify *v, const struct tk_event *e);
void vf_call_out(struct ptt_verify *v, const struct tk_event *e);
void vf_failed(struct ptt_verify *v, const struct tk_event *e);

#endif
