/* SPDX-License-Identifier: MIT */
/* c11.c - <threads.h>: glibc's functions call the POSIX functions inside the library, where no hook sees the calls. */
/*
 * In glibc, mtx_t and cnd_t are pthread_mutex_t and pthread_cond_t, so the events are the same. Only the _IN and _OUT
 * events belong to the domain c11; their results are thrd_*. The results of the other events are 0 or an error
 * number.
 */
#include "bodies.h"
#include "mutex.h"
#include "thread.h"
#include "wait.h"

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t), "same objects");
_Static_assert(sizeof(once_flag) == sizeof(pthread_once_t) && sizeof(thrd_t) == sizeof(pthread_t), "same objects");
_Static_assert(thrd_success == 0, "generated hooks take 0 for success");

int ptt_error_of_thrd(int result)
{
	switch (result) {
	case thrd_success:
		return 0;
	case thrd_busy:
		return EBUSY;
	case thrd_timedout:
		return ETIMEDOUT;
	case thrd_nomem:
		return ENOMEM;
	}
	return EINVAL;
}

/* ------------------------------------------------------------ mutexes */

static const pthread_mutex_t *posix(const mtx_t *mutex)
{
	return (const pthread_mutex_t *)mutex;
}

static COLD int lock_contended(mtx_t *mutex, const struct ptt_request *r, void *site)
{
	uint64_t began, waited;
	int result;

	REPORT_WITH(MUTEX, MUTEX_WAIT, mutex_wait, mutex, site, .owner = ptt_mutex_owner(posix(mutex)),
		    .kind = ptt_mutex_kind(posix(mutex)), .timed = ptt_request_is_timed(r));
	began = ptt_now_ns();
	result = ptt_request_is_timed(r) ? ptt_real.mtx_timedlock(mutex, r->deadline) : ptt_real.mtx_lock(mutex);
	waited = ptt_now_ns() - began;
	if (result == thrd_success)
		REPORT_WITH(MUTEX, MUTEX_TAKEN_WAITED, mutex_taken_waited, mutex, site, .wait_ns = waited);
	else
		REPORT_WITH(MUTEX, MUTEX_WAIT_END, mutex_wait_end, mutex, site, .result = ptt_error_of_thrd(result),
			    .wait_ns = waited);
	return result;
}

int ptt_mtx_take(mtx_t *mutex, const struct ptt_request *r, void *site)
{
	int result;

	if (must_trace(MUTEX, MUTEX_TAKEN))
		ptt_before_lock(mutex, site);
	result = ptt_real.mtx_trylock(mutex);
	if (result == thrd_busy)
		result = lock_contended(mutex, r, site);
	else if (result == thrd_success && ptt_request_is_timed(r))
		REPORT(MUTEX, MUTEX_TAKEN_TRIED, mutex, site);
	else if (result == thrd_success)
		REPORT(MUTEX, MUTEX_TAKEN, mutex, site);
	if (result != thrd_success && result != thrd_timedout)
		REPORT_ERROR(MUTEX, mutex, r->routine, ptt_error_of_thrd(result), site);
	return result;
}

EXPORT int mtx_unlock(mtx_t *mutex)
{
	void *site = CALL_SITE;
	bool expected = ptt_mutex_can_be_freed(posix(mutex));
	int result;

	REPORT(C11, MTX_UNLOCK_IN, mutex, site);
	if (expected && must_trace(MUTEX, MUTEX_FREE))
		EMIT(MUTEX, MUTEX_FREE, mutex, site);
	else if (expected)
		ptt_mutex_report_awaited(posix(mutex), site);
	result = ptt_real.mtx_unlock(mutex);
	if (result != thrd_success)
		REPORT_ERROR(MUTEX, mutex, NPTL_EV_MUTEX_UNLOCK_IN, ptt_error_of_thrd(result), site);
	else if (unlikely(!expected))
		REPORT(MUTEX, MUTEX_FREE, mutex, site); /* as in pthread_mutex_unlock() */
	REPORT_RESULT(C11, MTX_UNLOCK_OUT, mutex, result, site);
	return result;
}

/* ------------------------------------------------------------ conditions */

static struct ptt_wait begin_wait(cnd_t *cond, mtx_t *mutex, char out, void *site)
{
	struct ptt_wait wait = ptt_begin_wait(NPTL_DOMAIN_COND, out, cond, site);

	wait.mutex = ptt_mutex_can_be_freed(posix(mutex)) ? (pthread_mutex_t *)mutex : NULL;
	if (wait.mutex && must_trace(MUTEX, MUTEX_FREE))
		EMIT(MUTEX, MUTEX_FREE, mutex, site);
	else if (wait.mutex)
		ptt_mutex_report_awaited(wait.mutex, site);
	return wait;
}

/*
 * A C11 wait returns thrd_error if the caller does not hold the mutex, and if the deadline is invalid. With an
 * invalid deadline the library does not use the mutex.
 */
static int error_of_wait(int result, const struct timespec *deadline)
{
	if (result != thrd_error)
		return ptt_error_of_thrd(result);
	return deadline && (deadline->tv_nsec < 0 || deadline->tv_nsec >= 1000000000) ? EINVAL : EPERM;
}

static int wait_on(cnd_t *cond, mtx_t *mutex, void *site)
{
	struct ptt_wait wait WAIT_GUARD = begin_wait(cond, mutex, NPTL_EV_COND_WAIT_OUT, site);
	int result = ptt_real.cnd_wait(cond, mutex);

	wait.result = error_of_wait(result, NULL);
	return result;
}

static int wait_until(cnd_t *cond, mtx_t *mutex, const struct timespec *deadline, void *site)
{
	struct ptt_wait wait WAIT_GUARD = begin_wait(cond, mutex, NPTL_EV_COND_TIMEDWAIT_OUT, site);
	int result = ptt_real.cnd_timedwait(cond, mutex, deadline);

	wait.result = error_of_wait(result, deadline);
	return result;
}

/* A C11 call that is a cancellation point. Its end is reported however it is left, with thrd_error unless it returned. */
struct c11_call {
	const void *object;
	void *site;
	int result;
	char out;
};

static void end_c11_call(struct c11_call *call)
{
	struct nptl_trace_cnd_wait_out param = {
		.object = (void *)call->object,
		.site = call->site,
		.result = call->result,
	};

	if (must_trace(C11, CND_WAIT_OUT))
		ptt_send(NPTL_DOMAIN_C11, call->out, &param, sizeof(param));
}

#define C11_GUARD __attribute__((cleanup(end_c11_call)))

EXPORT int cnd_wait(cnd_t *cond, mtx_t *mutex)
{
	struct c11_call call C11_GUARD = {cond, CALL_SITE, thrd_error, NPTL_EV_CND_WAIT_OUT};

	REPORT_WITH(C11, CND_WAIT_IN, cnd_wait_in, cond, call.site, .mutex = ptt_ptr48(mutex));
	if (!ptt_wait_is_traced())
		return call.result = ptt_real.cnd_wait(cond, mutex);
	if (!ptt_in_lock)
		REPORT_WITH(COND, COND_WAIT_IN, cond_wait_in, cond, call.site, .mutex = ptt_ptr48(mutex));
	return call.result = wait_on(cond, mutex, call.site);
}

EXPORT int cnd_timedwait(cnd_t *cond, mtx_t *mutex, const struct timespec *deadline)
{
	struct c11_call call C11_GUARD = {cond, CALL_SITE, thrd_error, NPTL_EV_CND_TIMEDWAIT_OUT};

	REPORT_WITH(C11, CND_TIMEDWAIT_IN, cnd_timedwait_in, cond, call.site, .mutex = ptt_ptr48(mutex),
		    .deadline_ns = ptt_ns(deadline));
	if (!ptt_wait_is_traced())
		return call.result = ptt_real.cnd_timedwait(cond, mutex, deadline);
	if (!ptt_in_lock)
		REPORT_WITH(COND, COND_TIMEDWAIT_IN, cond_timedwait_in, cond, call.site, .mutex = ptt_ptr48(mutex),
			    .deadline_ns = ptt_ns(deadline));
	return call.result = wait_until(cond, mutex, deadline, call.site);
}

/* ------------------------------------------------------------ threads */

EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *arg)
{
	void *site = CALL_SITE;
	int result;

	if (!__nptl_trace_enabled)
		return ptt_real.thrd_create(thread, routine, arg);
	REPORT_WITH(C11, THRD_CREATE_IN, thrd_create_in, 0, site, .start_routine = ptt_ptr48((void *)routine));
	result = ptt_create_c11(thread, routine, arg, site);
	REPORT_RESULT(C11, THRD_CREATE_OUT, 0, result, site);
	return result;
}

EXPORT int thrd_join(thrd_t thread, int *value)
{
	struct c11_call call C11_GUARD = {(void *)thread, CALL_SITE, thrd_error, NPTL_EV_THRD_JOIN_OUT};

	REPORT(C11, THRD_JOIN_IN, call.object, call.site);
	if (!must_trace(THREAD, THREAD_JOIN_IN))
		return call.result = ptt_real.thrd_join(thread, value);
	EMIT(THREAD, THREAD_JOIN_IN, call.object, call.site);
	{
		struct ptt_wait wait WAIT_GUARD =
			ptt_begin_wait(NPTL_DOMAIN_THREAD, NPTL_EV_THREAD_JOIN_OUT, call.object, call.site);

		call.result = ptt_real.thrd_join(thread, value);
		wait.result = ptt_error_of_thrd(call.result);
	}
	return call.result;
}

EXPORT void thrd_exit(int value)
{
	/* as in pthread_exit() */
	void (*leave)(int) __attribute__((noreturn));

	ptt_thread_leaves((void *)(intptr_t)value);
	REPORT_WITH(C11, THRD_EXIT_IN, thrd_exit_in, pthread_self(), CALL_SITE, .result = value);
	leave = (__typeof__(leave))ptt_real.thrd_exit;
	leave(value);
}

/* ------------------------------------------------------------ once */

static int call_real_once(pthread_once_t *control, void (*routine)(void))
{
	ptt_real.call_once((once_flag *)control, routine);
	return 0;
}

struct once_call {
	once_flag *flag;
	void *site;
};

static void end_once_call(struct once_call *call)
{
	REPORT(C11, CALL_ONCE_OUT, call->flag, call->site);
}

EXPORT void call_once(once_flag *flag, void (*routine)(void))
{
	struct once_call call __attribute__((cleanup(end_once_call))) = {flag, CALL_SITE};

	REPORT_WITH(C11, CALL_ONCE_IN, call_once_in, flag, call.site, .routine = ptt_ptr48((void *)routine));
	if (ptt_level(NPTL_DOMAIN_ONCE))
		ptt_once(call_real_once, (pthread_once_t *)flag, routine, call.site);
	else
		ptt_real.call_once(flag, routine);
}
