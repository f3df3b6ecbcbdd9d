/* SPDX-License-Identifier: MIT */
/* results.c - results of calls: errors that a routine must not return, and timeouts before the time limit. */
#include "promises.h"

/* ---- errors that routines may return ---- */

/*
 * The errors that POSIX lists for a routine, or that the manual lists for an extension of Linux. ECANCELED in a trace means that
 * the call was cancelled and did not return. Ends with 0.
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
	{ "THREAD_SIGQUEUE", { EINVAL, ESRCH, EAGAIN, ENOSYS, EPERM } },
	{ "MUTEX_INIT", { EAGAIN, ENOMEM, EPERM, EBUSY, EINVAL, ENOTSUP } },
	{ "MUTEX_DESTROY", { EBUSY, EINVAL } },
	{ "MUTEX_LOCK", { EAGAIN, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EDEADLK, EPERM, ENOTSUP } },
	{ "MUTEX_TRYLOCK", { EBUSY, EAGAIN, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EDEADLK, EPERM, ENOTSUP } },
	{ "MUTEX_TIMEDLOCK", { ETIMEDOUT, EAGAIN, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EDEADLK, EPERM, ENOTSUP } },
	{ "MUTEX_CLOCKLOCK", { ETIMEDOUT, EAGAIN, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EDEADLK, EPERM, ENOTSUP } },
	{ "MUTEX_UNLOCK", { EPERM, EINVAL, ENOTRECOVERABLE } },
	{ "MUTEX_CONSISTENT", { EINVAL } },
	{ "MUTEX_SETPRIOCEILING", { EAGAIN, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EDEADLK, EPERM, ENOTSUP } },
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
		const struct ptt_event_type *type = tk_meanings[id].type;
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

/* Calls, and the measurement of clocks, take time. The rate of the clock is known to within 1/2000 or better. */
#define MONOTONIC_SLACK_NS INT64_C(1000000)
#define REALTIME_SLACK_NS INT64_C(100000000)

static int64_t clock_of(struct ptt_verify *v, const struct tk_event *e, const struct ptt_event *in)
{
	const struct vf_object *o;

	if (tk_has(in->id, TK_CLOCK))
		return tk_number(in, TK_CLOCK, -1);
	if (in->id >> 6 != PTT_KIND_COND || VF_PROCESS(v, e->process)->known.incomplete)
		return CLOCK_REALTIME;
	o = vf_object(v, e, PTT_KIND_COND, in->object);
	return o->flags & PTT_OBJECT_MADE ? o->type : CLOCK_REALTIME;
}

static void timed_out(struct ptt_verify *v, const struct tk_event *e, const struct ptt_event *in)
{
	const struct ptt_verify_process *known = &VF_PROCESS(v, e->process)->known;
	int64_t deadline = tk_number(in, TK_DEADLINE, TK_NEVER), clock, base, now, early;
	struct ptt_verify_violation *row;
	bool monotonic;

	if (deadline == TK_NEVER)
		return;
	clock = clock_of(v, e, in);
	monotonic = clock == CLOCK_MONOTONIC;
	base = monotonic ? known->monotonic : clock == CLOCK_REALTIME ? known->realtime : TK_NEVER;
	if (base == TK_NEVER || __builtin_add_overflow(base, e->ts, &now) ||
	    __builtin_sub_overflow(deadline, now, &early)) {
		v->skips[VF_SKIP_CLOCK]++;
		return;
	}
	v->checks[VF_TIMEOUT_EARLY]++;
	if (early <= (monotonic ? MONOTONIC_SLACK_NS : REALTIME_SLACK_NS) + (e->ts > 0 ? e->ts / 2000 : 0))
		return;
	/* the time of day may have been set during the call */
	row = vf_report(v, &(struct vf_claim){
		.rule = VF_TIMEOUT_EARLY,
		.severity = monotonic ? PTT_VERIFY_ERROR : PTT_VERIFY_WARNING,
		.process = e->process, .kind = in->id >> 6, .object = in->object,
	}, VF_EVENTS(in, &e->e));
	if (row)
		row->number[0] = early;
}

/* ---- results ---- */

void vf_result_of(struct ptt_verify *v, const struct tk_event *e, uint32_t call, int64_t result,
		      const struct ptt_event *in)
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
	/* POSIX allows errors that it does not list, except EINTR. The result must be an error number. */
	never = (result == EINTR && call >> 6 != PTT_KIND_SEM) || result < 0 || result > 4095;
	row = vf_report(v, &(struct vf_claim){
		.rule = VF_RESULT, .severity = never ? PTT_VERIFY_ERROR : PTT_VERIFY_WARNING,
		.process = e->process, .kind = call >> 6, .object = e->object,
		.detail = (call & 0x3ff) | (uint64_t)(result & 0xffff) << 16,
	}, VF_EVENTS(in, &e->e));
	if (row)
		row->number[0] = result;
}

void vf_result(struct ptt_verify *v, const struct tk_event *e, const struct ptt_event *in)
{
	int64_t result = tk_number(&e->e, TK_RESULT, 0);

	vf_result_of(v, e, e->id - 1, result, in);
	if (result == ETIMEDOUT && in->id)
		timed_out(v, e, in);
}
