/* SPDX-License-Identifier: MIT */
/* calls.c - calls as such: what they may return, that time limits are kept, that a try fails only if it must. */
#include "internal.h"

/* ---- errors that routines may return ---- */

/*
 * What POSIX lists for the routine, and what is documented for the extensions of Linux; ECANCELED is how the trace says
 * that a call never returned. Ends with 0.
 */
struct listed {
	const char *name;
	int16_t errors[12];
};

static const struct listed listed[] = {
	{ "THREAD_CREATE", { EAGAIN, EINVAL, EPERM, ENOMEM } },
	{ "THREAD_JOIN", { EDEADLK, EINVAL, ESRCH, ECANCELED } },
	{ "THREAD_TRYJOIN", { EDEADLK, EINVAL, ESRCH, EBUSY } },
	{ "THREAD_TIMEDJOIN", { EDEADLK, EINVAL, ESRCH, ETIMEDOUT, EBUSY, ECANCELED } },
	{ "THREAD_CLOCKJOIN", { EDEADLK, EINVAL, ESRCH, ETIMEDOUT, EBUSY, ECANCELED } },
	{ "THREAD_DETACH", { EINVAL, ESRCH } },
	{ "THREAD_CANCEL", { ESRCH } },
	{ "THREAD_KILL", { EINVAL, ESRCH, EAGAIN, ENOTSUP, EPERM } },
	{ "MUTEX_INIT", { EAGAIN, ENOMEM, EPERM, EBUSY, EINVAL, ENOTSUP } },
	{ "MUTEX_DESTROY", { EBUSY, EINVAL } },
	{ "MUTEX_LOCK", { EAGAIN, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EDEADLK, EPERM, ENOTSUP } },
	{ "MUTEX_TRYLOCK", { EBUSY, EAGAIN, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EDEADLK, EPERM, ENOTSUP } },
	{ "MUTEX_TIMEDLOCK", { ETIMEDOUT, EAGAIN, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EDEADLK, EPERM, ENOTSUP } },
	{ "MUTEX_CLOCKLOCK", { ETIMEDOUT, EAGAIN, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EDEADLK, EPERM, ENOTSUP } },
	{ "MUTEX_UNLOCK", { EPERM, EINVAL, ENOTRECOVERABLE } },
	{ "MUTEX_CONSISTENT", { EINVAL } },
	{ "RWLOCK_INIT", { EAGAIN, ENOMEM, EPERM, EBUSY, EINVAL } },
	{ "RWLOCK_DESTROY", { EBUSY, EINVAL } },
	{ "RWLOCK_RDLOCK", { EAGAIN, EDEADLK, EINVAL } },
	{ "RWLOCK_WRLOCK", { EDEADLK, EINVAL } },
	{ "RWLOCK_TRYRDLOCK", { EBUSY, EAGAIN, EINVAL } },
	{ "RWLOCK_TRYWRLOCK", { EBUSY, EINVAL, EDEADLK } },
	{ "RWLOCK_TIMEDRDLOCK", { ETIMEDOUT, EAGAIN, EDEADLK, EINVAL } },
	{ "RWLOCK_TIMEDWRLOCK", { ETIMEDOUT, EDEADLK, EINVAL } },
	{ "RWLOCK_CLOCKRDLOCK", { ETIMEDOUT, EAGAIN, EDEADLK, EINVAL } },
	{ "RWLOCK_CLOCKWRLOCK", { ETIMEDOUT, EDEADLK, EINVAL } },
	{ "RWLOCK_UNLOCK", { EPERM, EINVAL } },
	{ "SPIN_INIT", { EAGAIN, ENOMEM, EINVAL, EBUSY } },
	{ "SPIN_DESTROY", { EBUSY, EINVAL } },
	{ "SPIN_LOCK", { EDEADLK, EINVAL } },
	{ "SPIN_TRYLOCK", { EBUSY, EINVAL } },
	{ "SPIN_UNLOCK", { EPERM, EINVAL } },
	{ "COND_INIT", { EAGAIN, ENOMEM, EBUSY, EINVAL } },
	{ "COND_DESTROY", { EBUSY, EINVAL } },
	{ "COND_WAIT", { EPERM, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, ECANCELED } },
	{ "COND_TIMEDWAIT", { ETIMEDOUT, EPERM, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, ECANCELED } },
	{ "COND_CLOCKWAIT", { ETIMEDOUT, EPERM, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, ECANCELED } },
	{ "COND_SIGNAL", { EINVAL } },
	{ "COND_BROADCAST", { EINVAL } },
	{ "BARRIER_INIT", { EAGAIN, ENOMEM, EBUSY, EINVAL } },
	{ "BARRIER_DESTROY", { EBUSY, EINVAL } },
	{ "BARRIER_WAIT", { PTHREAD_BARRIER_SERIAL_THREAD, EINVAL, ECANCELED } },
	{ "SEM_INIT", { EINVAL, ENOSPC, EPERM, ENOSYS } },
	{ "SEM_DESTROY", { EINVAL, EBUSY } },
	{ "SEM_POST", { EINVAL, EOVERFLOW } },
	{ "SEM_WAIT", { EDEADLK, EINTR, EINVAL, ECANCELED } },
	{ "SEM_TRYWAIT", { EAGAIN, EDEADLK, EINTR, EINVAL } },
	{ "SEM_TIMEDWAIT", { ETIMEDOUT, EDEADLK, EINTR, EINVAL, ECANCELED } },
	{ "SEM_CLOCKWAIT", { ETIMEDOUT, EDEADLK, EINTR, EINVAL, ECANCELED } },
	{ "ONCE", { EINVAL, ECANCELED } },
};

void vf_learn_calls(struct ptt_verify *v)
{
	char name[64];

	for (uint32_t id = 0; id < 1024; id++) {
		const struct ptt_event_type *type = v->type[id];
		size_t length = type ? strlen(type->name) : 0;

		if (length < 4 || length >= sizeof(name) || strcmp(type->name + length - 3, "_IN") != 0)
			continue;
		memcpy(name, type->name, length - 3);
		name[length - 3] = '\0';
		for (size_t i = 0; i < sizeof(listed) / sizeof(*listed); i++)
			if (strcmp(listed[i].name, name) == 0)
				v->errors[id] = listed[i].errors;
		v->tries[id] = strstr(name, "_TRY") != NULL;
		v->makes[id] = strstr(name, "_INIT") || strstr(name, "_DESTROY") || strstr(name, "_OPEN") ||
			       strstr(name, "_CLOSE") || strstr(name, "_UNLINK");
	}
}

/* ---- time limits ---- */

/* Calls, and the measuring of clocks, take time; the clock's speed is known to a two-thousandth at worst. */
#define MONOTONIC_SLACK_NS INT64_C(1000000)
#define REALTIME_SLACK_NS INT64_C(100000000)

static int64_t clock_of(struct ptt_verify *v, const struct vf_event *e, const struct ptt_verify_event *in)
{
	const struct vf_object *o;

	if (v->field_at[in->id][VF_F_CLOCK])
		return vf_number(v, in, VF_F_CLOCK, -1);
	if (in->id >> 6 != VF_COND || v->processes[e->process].known.incomplete)
		return CLOCK_REALTIME;
	o = vf_object(v, e, VF_COND, in->object);
	return o && o->flags & VF_INITED ? o->type : CLOCK_REALTIME;
}

static void timed_out(struct ptt_verify *v, const struct vf_event *e, const struct ptt_verify_event *in)
{
	const struct ptt_verify_process *known = &v->processes[e->process].known;
	int64_t deadline = vf_number(v, in, VF_F_DEADLINE, VF_NEVER), clock, base, now, early;
	struct ptt_verify_violation *row;
	bool monotonic;

	if (deadline == VF_NEVER)
		return;
	clock = clock_of(v, e, in);
	monotonic = clock == CLOCK_MONOTONIC;
	base = monotonic ? known->monotonic : clock == CLOCK_REALTIME ? known->realtime : VF_NEVER;
	if (base == VF_NEVER || __builtin_add_overflow(base, e->e.ts, &now) ||
	    __builtin_sub_overflow(deadline, now, &early)) {
		v->skips[VF_SKIP_CLOCK]++;
		return;
	}
	v->checks[VF_TIMEOUT_EARLY]++;
	if (early <= (monotonic ? MONOTONIC_SLACK_NS : REALTIME_SLACK_NS) + (e->e.ts > 0 ? e->e.ts / 2000 : 0))
		return;
	/* the time of day may have been set meanwhile */
	row = vf_tell(v,
		      &(struct vf_claim){
			      .rule = VF_TIMEOUT_EARLY,
			      .severity = monotonic ? PTT_VERIFY_ERROR : PTT_VERIFY_WARNING,
			      .process = e->process,
			      .kind = in->id >> 6,
			      .object = in->object,
		      },
		      VF_EVENTS(in, &e->e));
	if (row)
		row->number[0] = early;
}

/* ---- results ---- */

/* @call: id of the routine's _IN event */
static void result_of(struct ptt_verify *v, const struct vf_event *e, uint32_t call, int64_t result,
		      const struct ptt_verify_event *in)
{
	const int16_t *errors = call < 1024 ? v->errors[call] : NULL;
	struct ptt_verify_violation *row;
	bool never;

	if (!errors)
		return;
	v->checks[VF_RESULT]++;
	if (!result)
		return;
	for (; *errors; errors++)
		if (*errors == result)
			return;
	/* other errors than those listed may be returned, but for this one, and it must be an error at all */
	never = (result == EINTR && call >> 6 != VF_SEM) || result < 0 || result > 4095;
	row = vf_tell(v,
		      &(struct vf_claim){
			      .rule = VF_RESULT,
			      .severity = never ? PTT_VERIFY_ERROR : PTT_VERIFY_WARNING,
			      .process = e->process,
			      .kind = call >> 6,
			      .object = e->e.object,
			      .detail = (call & 0x3ff) | (uint64_t)(result & 0xffff) << 16,
		      },
		      VF_EVENTS(in, &e->e));
	if (row)
		row->number[0] = result;
}

void vf_result(struct ptt_verify *v, const struct vf_event *e, const struct ptt_verify_event *in)
{
	int64_t result = vf_number(v, &e->e, VF_F_RESULT, 0);

	result_of(v, e, e->e.id - 1, result, in);
	if (result == ETIMEDOUT && in->id)
		timed_out(v, e, in);
}

void vf_failed(struct ptt_verify *v, const struct vf_event *e)
{
	uint32_t call = (e->e.id & ~63u) | ((uint32_t)vf_number(v, &e->e, VF_F_ROUTINE, 0) & 63);
	const struct ptt_verify_event none = { .id = 0 };
	int64_t result = vf_number(v, &e->e, VF_F_RESULT, 0);
	const char *name = v->type[call] ? v->type[call]->name : "";
	struct vf_object *o;
	struct vf_hold *h;

	result_of(v, e, call, result, &none);
	if (v->processes[e->process].known.incomplete || strcmp(name, "MUTEX_UNLOCK_IN") != 0 || result != EPERM)
		return;
	o = vf_object(v, e, VF_MUTEX, e->e.object);
	h = o ? vf_hold_of(v, o, e->thread) : NULL;
	if (!h || !vf_checks_owner(o) || !vf_private(v, o))
		return;
	v->checks[VF_MUTEX_OWNER]++;
	VF_TELL(v, VF_MUTEX_OWNER, o, &h->taken, &e->e);
	vf_drop_holds(v, o);
}

/* ---- tries ---- */

static bool is_lock(uint32_t kind)
{
	return kind == VF_MUTEX || kind == VF_RWLOCK || kind == VF_SPIN;
}

/* Nobody holds it, waits for it or is inside of a call that may take it, and nobody has been for a while. */
static bool free_for_all(struct ptt_verify *v, const struct vf_object *o, const struct vf_event *e)
{
	int64_t other = o->last_thread == e->thread ? o->other_ts : o->last_ts;

	if (o->calls || (other != VF_NEVER && other + VF_SLACK_NS >= e->e.ts) || !vf_private(v, o))
		return false;
	if (o->kind == VF_SEM)
		return !o->sem.below.id && o->sem.takes < o->sem.value + o->sem.posts;
	return !o->lock.holds && !o->lock.writers;
}

void vf_call_in(struct ptt_verify *v, const struct vf_event *e)
{
	uint32_t kind = e->e.id >> 6;
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	struct vf_object *o;
	bool counted = is_lock(kind) || kind == VF_SEM;

	t->call = (struct vf_call){ .in = e->e };
	if ((!counted && kind != VF_ONCE) || v->makes[e->e.id])
		return;
	o = vf_object(v, e, kind, e->e.object);
	if (!o)
		return;
	t->call.object = o->number;
	t->call.serial = o->serial;
	if (!counted)
		return;
	t->call.quiet = v->tries[e->e.id] && free_for_all(v, o, e);
	vf_touch(v, o, e);
	o->calls++;
	t->call.events = o->events;
}

static void tried(struct ptt_verify *v, const struct vf_event *e, struct vf_object *o, const struct vf_call *call)
{
	int64_t result = vf_number(v, &e->e, VF_F_RESULT, 0);

	v->checks[VF_TRY_BUSY]++;
	if (o->refused.id || result != (o->kind == VF_SEM ? EAGAIN : EBUSY) || call->events != o->events)
		return;
	o->tried = call->in;
	o->refused = e->e;
}

void vf_settle_refusal(struct ptt_verify *v, struct vf_object *o, int64_t ts, bool by_other)
{
	bool late = ts > o->refused.ts + VF_SLACK_NS;

	if (late)
		VF_TELL(v, VF_TRY_BUSY, o, &o->init, &o->tried, &o->refused);
	if (late || by_other)
		o->refused.id = 0;
}

static void unlocked(struct ptt_verify *v, const struct vf_event *e, const struct vf_object *o, const struct vf_call *call)
{
	if (!vf_checks_owner(o) || strcmp(v->type[e->e.id]->name, "MUTEX_UNLOCK_OUT") != 0)
		return;
	v->checks[VF_MUTEX_OWNER]++;
	/* the mutex itself did not say that it was the caller's, and yet let it go */
	if (!call->freed && vf_number(v, &e->e, VF_F_RESULT, 0) == 0)
		VF_TELL(v, VF_MUTEX_OWNER, o, &o->init, &call->in, &e->e);
}

void vf_call_out(struct ptt_verify *v, const struct vf_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	const struct ptt_verify_event none = { .id = 0 };
	struct vf_call call = t->call;
	struct vf_object *o;

	if (call.in.id + 1 != e->e.id) {
		vf_result(v, e, &none);
		return;
	}
	t->call.in.id = 0;
	vf_result(v, e, &call.in);
	o = vf_same(v, &call);
	if (!o)
		return;
	if (o->kind == VF_ONCE) {
		vf_once_returned(v, e, &call);
		return;
	}
	if (call.quiet)
		tried(v, e, o, &call);
	unlocked(v, e, o, &call);
	if (o->calls)
		o->calls--;
	vf_touch(v, o, e);
}
