/* SPDX-License-Identifier: MIT */
/* promises.h - threads, objects and holds of the verifier, and the functions that its parts offer each other. */
#ifndef PTT_TRACKER_PROMISES_H
#define PTT_TRACKER_PROMISES_H

#include "../state/state.h"
#include "pttverify.h"

/*
 * The stamps of calls and returns have no memory fence. So a stamp may be this much earlier than the moment when other processors
 * see the effects of earlier instructions. This is some hundred times the time that a processor can read ahead.
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

/* A lock that a thread holds, and an event during the hold that the lock must not have allowed. */
struct vf_hold {
	struct tk_hold;
	bool after_wait; /* taken by a condition wait */
	bool let_go;     /* a recursive lock was released, but not as often as it was taken */
	bool twice;      /* a lock of the error-checking type was taken again */
	uint8_t conflict_rule;
	struct ptt_event taken;
	struct ptt_event conflict; /* an event that the lock must not have allowed; id 0 = none */
};

/* A thread that waits for a condition. */
struct vf_waiter {
	struct tk_wait;
	uint32_t mutex_generation;
	int64_t freed;	/* stamp of the release of the mutex; TK_NEVER = none yet */
	struct ptt_event in;
};

/* A signal that has woken known waiters. */
struct vf_wakeup {
	struct tk_wakeup;
	struct ptt_event signal;
};

#define VF_MISUSED PTT_OBJECT_OWN /* the program did something that POSIX does not define */

/* The known state of an object. A new object at its address takes the same element, with the next generation. */
struct vf_object {
	struct ptt_track_object;
	uint32_t epoch;
	bool before_it; /* another object was at this address before */
	uint8_t type; /* type of a mutex, preference of a read-write lock, clock of a condition */
	bool robust;
	bool inconsistent; /* taken from a dead owner, and not made consistent: it has no owner */
	struct ptt_event init;
	/* the thread that touched it last, and when another thread touched it before */
	uint32_t events;
	uint32_t last_thread;
	int64_t last_ts;
	int64_t other_ts;
	struct ptt_event tried;	  /* a try that no other thread could have made fail ... */
	struct ptt_event refused; /* ... and that seems to have failed; id 0 = none */
	uint32_t calls; /* calls in progress that may take or release it; needs level 3 */
	union {
		struct {
			uint32_t writers; /* number of waiting writers */
			uint32_t writer;  /* the only waiting writer; 0 = unknown */
			struct ptt_event alone;  /* the beginning of its wait */
			struct ptt_event queued; /* the event that shows it in the queue; id 0 = none */
			struct ptt_event overtaker; /* a reader that took the lock since then; id 0 = none */
		} lock;
		struct {
			uint32_t count;
			uint64_t in, out, serials;
			uint64_t early_in;
			struct ptt_event last_in;
			struct ptt_event full;  /* the arrival that completed the last round */
			struct ptt_event early; /* a thread seems to have left before that; id 0 = none */
		} barrier;
		struct {
			uint64_t value, posts, takes;
			int64_t positive_ts; /* since when it has units */
			struct ptt_event post;
			struct ptt_event below; /* a thread seems to have taken a unit that did not exist; id 0 = none */
		} sem;
		struct {
			uint32_t runner; /* the thread that runs the routine; 0 = none */
			struct ptt_event begin;
			struct ptt_event end;   /* of a run that was not cancelled; id 0 = none */
			struct ptt_event again; /* a second thread seems to run the routine at the same time; id 0 = none */
			struct ptt_event early; /* a call seems to have returned during the run; id 0 = none */
		} once;
	};
};

/* A wait, or a call in progress (which needs level 3). */
struct vf_call {
	uint32_t object, generation;
	uint32_t thread; /* the thread that a join waits for */
	bool quiet;  /* no other thread could have made the try fail */
	bool freed;  /* the mutex was released during an unlock */
	uint32_t events; /* `events` of the object at the call */
	struct ptt_event in; /* id 0 = none */
};

#define VF_RECENT 32u

/* The thread has ended: the trace has its end, or the beginning of another thread with its kernel thread id. */
#define VF_GONE (PTT_THREAD_ENDED | PTT_THREAD_REPLACED)

struct vf_thread {
	struct ptt_track_thread;
	uint32_t epoch;
	struct vf_call call;    /* the innermost of level 3 */
	struct vf_call blocked; /* a wait for anything but a condition */
	struct vf_call barrier;
	struct vf_call waited;  /* the last once control that it waited for */
	struct vf_call cond;    /* .events: number of the waiter */
	bool retaken;           /* the condition wait has its mutex back */
	struct ptt_event create; /* id 0 = it is not creating a thread */
	struct ptt_event gone; /* a thread joined it, or a mutex reported its owner as dead; id 0 = none */
	struct ptt_event owned; /* its acquisition of that mutex */
	uint8_t gone_rule;
	struct ptt_event bad_free; /* its release of a lock of another thread; id 0 = none */
	/* locks that it took lately, by object */
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
	uint32_t epoch; /* number of times that the known state was dropped */
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
	struct ptt_event *begun; /* beginnings of threads, by begin_of */
	uint32_t begun_count, begun_room;
	uint64_t checks[VF_RULES];
	uint64_t skips[VF_SKIPS];
	/* by the id of the _IN event of a routine */
	const int16_t *errors[1024]; /* that it may return; ends with 0 */
	bool tries[1024];            /* it never waits */
	bool makes[1024];            /* it initializes or destroys */
};

#define VF_OBJECT(v, i) (&((struct vf_object *)(void *)(v)->t.objects.items)[i])
#define VF_THREAD_AT(v, i) (&((struct vf_thread *)(void *)(v)->t.threads.items)[i])
#define VF_HOLD(v, i) (&((struct vf_hold *)(void *)(v)->t.holds.items)[i])
#define VF_WAITER(v, i) (&((struct vf_waiter *)(void *)(v)->t.waits.items)[i])
#define VF_WAKEUP(v, i) (&((struct vf_wakeup *)(void *)(v)->t.wakeups.items)[i])
#define VF_PROCESS(v, i) (&((struct vf_process *)(void *)(v)->t.processes)[i])

/* ---- renewal.c ---- */

/* vf_renew - forgets the state of an object; the element is for a new object from now on. */
void vf_renew(struct ptt_verify *v, struct vf_object *o);
/* vf_object_gone - an object was destroyed: forgets its state. */
void vf_object_gone(struct ptt_verify *v, struct vf_object *o);
void vf_object_made(struct tracker *t, uint32_t object);
/* vf_drop_holds - ends all holds of a lock. */
void vf_drop_holds(struct ptt_verify *v, struct vf_object *o);

/* vf_number_of - the number of an object in the tracker. */
static inline uint32_t vf_number_of(const struct ptt_verify *v, const struct vf_object *o)
{
	return (uint32_t)(o - VF_OBJECT(v, 0));
}

static inline bool vf_is_there(const struct ptt_verify *v, const struct vf_object *o)
{
	return !(o->flags & PTT_OBJECT_ENDED) && o->epoch == VF_PROCESS(v, o->process)->epoch;
}

/* vf_object - the living object of a kind at an address. Adds the object if there is none. */
static inline struct vf_object *vf_object(struct ptt_verify *v, const struct tk_event *e, uint32_t kind, uint64_t address)
{
	struct vf_object *o = VF_OBJECT(v, tk_object(&v->t, e, kind, address));

	if (unlikely(!vf_is_there(v, o)))
		vf_renew(v, o);
	return o;
}

/* vf_same - the object of a call; NULL: a new object has its address by now. */
static inline struct vf_object *vf_same(const struct ptt_verify *v, const struct vf_call *call)
{
	struct vf_object *o = VF_OBJECT(v, call->object);

	return call->in.id && call->object && o->generation == call->generation && vf_is_there(v, o) ? o : NULL;
}

/* vf_mutex_of - the mutex of a condition wait; NULL: unknown, or a new object has its address by now. */
static inline struct vf_object *vf_mutex_of(const struct ptt_verify *v, const struct vf_waiter *w)
{
	struct vf_object *o = VF_OBJECT(v, w->mutex);

	return w->mutex && o->generation == w->mutex_generation ? o : NULL;
}

/* vf_hold_of - the hold of a lock by a thread, or NULL. */
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
	uint64_t detail; /* distinguishes violations that are equal otherwise */
};

/* vf_report - adds a violation. Events with id 0 are left out. Return: its row if it is the first of its kind, else NULL. */
struct ptt_verify_violation *vf_report(struct ptt_verify *v, const struct vf_claim *claim,
				     const struct ptt_event *const *events, uint32_t count);
#define VF_EVENTS(...)                                              \
	((const struct ptt_event *const[]){ __VA_ARGS__ }),  \
	(uint32_t)(sizeof((const struct ptt_event *const[]){ __VA_ARGS__ }) / sizeof(void *))
/* VF_NONE: no event, for parameters that need an event. */
#define VF_NONE (&(const struct ptt_event){ .id = 0 })
/* VF_TELL(v, VF_ONCE_TWICE, o, &first, &second): reports an error about an object. */
#define VF_TELL(v, which, o, ...)                                                                                   \
	vf_report(v, &(struct vf_claim){ .rule = which, .process = (o)->process, .kind = (o)->kind,                  \
				       .object = (o)->address },                                                    \
		VF_EVENTS(__VA_ARGS__))
/* vf_forget_recent - drops the violations of a process in the second before @ts: events were missing already. */
void vf_forget_recent(struct ptt_verify *v, uint32_t process, int64_t ts, enum vf_skip reason);
/* vf_not_woken - a thread could have continued at @since: reports it if this is long enough before the end. */
void vf_not_woken(struct ptt_verify *v, uint32_t process, const struct vf_object *o, int64_t since,
		  const struct ptt_event *wait, const struct ptt_event *due);
/* vf_private - whether an object is known from its initialization on, and used by one process only. Counts a skip if not. */
bool vf_private(struct ptt_verify *v, const struct vf_object *o);

/* ---- results.c ---- */

void vf_learn_calls(struct ptt_verify *v);
/* vf_result - reports a result that a routine must not return. @in: the beginning of the call; id 0 = unknown */
void vf_result(struct ptt_verify *v, const struct tk_event *e, const struct ptt_event *in);
/* vf_result_of - the same. @call: id of the _IN event of the routine */
void vf_result_of(struct ptt_verify *v, const struct tk_event *e, uint32_t call, int64_t result,
		  const struct ptt_event *in);

/* ---- settle.c ---- */

/* vf_touch - notes that a thread does something to a lock or semaphore. */
void vf_touch(struct ptt_verify *v, struct vf_object *o, const struct tk_event *e);
/* vf_settle - reports suspicions from before @ts, which events of the same moment could have explained until now. */
void vf_settle(struct ptt_verify *v, struct vf_object *o, int64_t ts);
/* vf_units - the number of units that a semaphore has had so far. */
uint64_t vf_units(const struct vf_object *o);

/* ---- cond_promises.c ---- */

void vf_cond_in(struct ptt_verify *v, const struct tk_event *e);
void vf_cond_out(struct ptt_verify *v, const struct tk_event *e);
void vf_cond_wake(struct ptt_verify *v, const struct tk_event *e);
void vf_cond_leave(struct ptt_verify *v, struct vf_thread *t);
/* vf_cond_mutex_freed, _taken - a thread in a condition wait releases or takes a mutex. */
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

/* vf_settle_bad_free - the first event after the release of a lock of another thread says whether the library refused it. */
void vf_settle_bad_free(struct ptt_verify *v, const struct tk_event *e);
/* vf_checks_owner - whether a mutex promises an error to a thread that unlocks it without owning it. */
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
/* vf_replaced - callback of the tracker: another thread begins with the kernel thread id of this thread. */
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
