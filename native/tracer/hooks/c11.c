/* SPDX-License-Identifier: MIT */
/* c11.c - <threads.h>: in glibc these call the POSIX functions inside the library, where no hook sees it. */
/*
 * mtx_t and cnd_t are pthread_mutex_t and pthread_cond_t there, and so are their events; only the full call pairs are of
 * a domain of their own. Results in those pairs are thrd_*, in the others 0 or an error number.
 */
#include "mutex.h"
#include "once.h"
#include "thread.h"
#include "wait.h"

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t), "same objects");
_Static_assert(sizeof(once_flag) == sizeof(pthread_once_t) && sizeof(thrd_t) == sizeof(pthread_t), "same objects");

static int error_of(int result)
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

/* Level of the full call pairs. */
#define C11(name, object, site)                        \
	do {                                           \
		if (must_trace(C11, name))             \
			EMIT(C11, name, object, site); \
	} while (0)
#define C11_WITH(name, type, object, site, ...)                                \
	do {                                                                   \
		if (must_trace(C11, name))                                     \
			EMIT_WITH(C11, name, type, object, site, __VA_ARGS__); \
	} while (0)

/* Is anything of this call traced? */
static inline bool untraced(enum nptl_trace_domain domain)
{
	return !ptt_level(domain) && ptt_level(NPTL_DOMAIN_C11) < 3;
}

/* ------------------------------------------------------------ mutexes */

static void mutex_error(mtx_t *mutex, int routine, int result, void *site)
{
	if (must_trace(MUTEX, MUTEX_ERROR))
		EMIT_WITH(MUTEX, MUTEX_ERROR, mutex_error, mutex, site, .routine = (uint16_t)routine,
			  .result = error_of(result));
}

/* Under the skin it is a POSIX mutex. */
static const pthread_mutex_t *posix(const mtx_t *mutex)
{
	return (const pthread_mutex_t *)mutex;
}

static void mutex_taken(mtx_t *mutex, void *site)
{
	if (must_trace(MUTEX, MUTEX_TAKEN))
		EMIT(MUTEX, MUTEX_TAKEN, mutex, site);
}

/* Taken by a routine that would not have waited for ever. */
static void mutex_tried(mtx_t *mutex, void *site)
{
	if (must_trace(MUTEX, MUTEX_TAKEN_TRIED))
		EMIT(MUTEX, MUTEX_TAKEN_TRIED, mutex, site);
}

/* @deadline: NULL for mtx_lock */
static COLD int lock_contended(mtx_t *mutex, const struct timespec *deadline, void *site)
{
	uint64_t began, waited;
	int result;

	if (must_trace(MUTEX, MUTEX_WAIT))
		EMIT_WITH(MUTEX, MUTEX_WAIT, mutex_wait, mutex, site, .owner = ptt_mutex_owner(posix(mutex)),
			  .kind = ptt_mutex_kind(posix(mutex)), .timed = deadline != NULL);
	began = ptt_now_ns();
	result = deadline ? ptt_real.mtx_timedlock(mutex, deadline) : ptt_real.mtx_lock(mutex);
	waited = ptt_now_ns() - began;
	if (!must_trace(MUTEX, MUTEX_TAKEN_WAITED))
		return result;
	if (result == thrd_success)
		EMIT_WITH(MUTEX, MUTEX_TAKEN_WAITED, mutex_taken_waited, mutex, site, .wait_ns = waited);
	else
		EMIT_WITH(MUTEX, MUTEX_WAIT_END, mutex_wait_end, mutex, site, .result = error_of(result),
			  .wait_ns = waited);
	return result;
}

static int lock_mutex(mtx_t *mutex, const struct timespec *deadline, int routine, void *site)
{
	int result = ptt_real.mtx_trylock(mutex);

	if (result == thrd_busy)
		result = lock_contended(mutex, deadline, site);
	else if (result == thrd_success && deadline)
		mutex_tried(mutex, site);
	else if (result == thrd_success)
		mutex_taken(mutex, site);
	if (result != thrd_success && result != thrd_timedout)
		mutex_error(mutex, routine, result, site);
	return result;
}

EXPORT int mtx_lock(mtx_t *mutex)
{
	void *site = CALL_SITE;
	int result;

	if (untraced(NPTL_DOMAIN_MUTEX))
		return ptt_real.mtx_lock(mutex);
	C11(MTX_LOCK_IN, mutex, site);
	result = lock_mutex(mutex, NULL, NPTL_EV_MUTEX_LOCK_IN, site);
	C11_WITH(MTX_LOCK_OUT, mtx_lock_out, mutex, site, .result = result);
	return result;
}

EXPORT int mtx_timedlock(mtx_t *mutex, const struct timespec *deadline)
{
	void *site = CALL_SITE;
	int result;

	if (untraced(NPTL_DOMAIN_MUTEX) || !deadline)
		return ptt_real.mtx_timedlock(mutex, deadline);
	C11_WITH(MTX_TIMEDLOCK_IN, mtx_timedlock_in, mutex, site, .deadline_ns = ptt_ns(deadline));
	result = lock_mutex(mutex, deadline, NPTL_EV_MUTEX_TIMEDLOCK_IN, site);
	C11_WITH(MTX_TIMEDLOCK_OUT, mtx_timedlock_out, mutex, site, .result = result);
	return result;
}

EXPORT int mtx_trylock(mtx_t *mutex)
{
	void *site = CALL_SITE;
	int result;

	if (untraced(NPTL_DOMAIN_MUTEX))
		return ptt_real.mtx_trylock(mutex);
	C11(MTX_TRYLOCK_IN, mutex, site);
	result = ptt_real.mtx_trylock(mutex);
	if (result == thrd_success)
		mutex_tried(mutex, site);
	else if (result != thrd_busy)
		mutex_error(mutex, NPTL_EV_MUTEX_TRYLOCK_IN, result, site);
	C11_WITH(MTX_TRYLOCK_OUT, mtx_trylock_out, mutex, site, .result = result);
	return result;
}

EXPORT int mtx_unlock(mtx_t *mutex)
{
	void *site = CALL_SITE;
	bool expected;
	int result;

	if (untraced(NPTL_DOMAIN_MUTEX))
		return ptt_real.mtx_unlock(mutex);
	C11(MTX_UNLOCK_IN, mutex, site);
	expected = ptt_mutex_can_be_freed(posix(mutex));
	if (expected && must_trace(MUTEX, MUTEX_FREE))
		EMIT(MUTEX, MUTEX_FREE, mutex, site);
	result = ptt_real.mtx_unlock(mutex);
	if (result != thrd_success)
		mutex_error(mutex, NPTL_EV_MUTEX_UNLOCK_IN, result, site);
	else if (unlikely(!expected) && must_trace(MUTEX, MUTEX_FREE))
		EMIT(MUTEX, MUTEX_FREE, mutex, site); /* as in pthread_mutex_unlock() */
	C11_WITH(MTX_UNLOCK_OUT, mtx_unlock_out, mutex, site, .result = result);
	return result;
}

EXPORT int mtx_init(mtx_t *mutex, int type)
{
	void *site = CALL_SITE;
	int result;

	C11_WITH(MTX_INIT_IN, mtx_init_in, mutex, site, .type = (uint32_t)type);
	result = ptt_real.mtx_init(mutex, type);
	if (result != thrd_success)
		mutex_error(mutex, NPTL_EV_MUTEX_INIT_IN, result, site);
	else if (must_trace(MUTEX, MUTEX_INIT))
		EMIT_WITH(MUTEX, MUTEX_INIT, mutex_init, mutex, site,
			  .kind = type & mtx_recursive ? PTHREAD_MUTEX_RECURSIVE_NP : PTHREAD_MUTEX_TIMED_NP);
	C11_WITH(MTX_INIT_OUT, mtx_init_out, mutex, site, .result = result);
	return result;
}

EXPORT void mtx_destroy(mtx_t *mutex)
{
	void *site = CALL_SITE;

	C11(MTX_DESTROY_IN, mutex, site);
	ptt_real.mtx_destroy(mutex);
	if (must_trace(MUTEX, MUTEX_DESTROY))
		EMIT(MUTEX, MUTEX_DESTROY, mutex, site);
	C11(MTX_DESTROY_OUT, mutex, site);
}

/* ------------------------------------------------------------ conditions */

static struct ptt_wait begin_wait(cnd_t *cond, mtx_t *mutex, char out, void *site)
{
	struct ptt_wait wait = ptt_begin_wait(NPTL_DOMAIN_COND, out, cond, site);

	wait.mutex = ptt_mutex_can_be_freed(posix(mutex)) ? (pthread_mutex_t *)mutex : NULL;
	if (wait.mutex && must_trace(MUTEX, MUTEX_FREE))
		EMIT(MUTEX, MUTEX_FREE, mutex, site);
	return wait;
}

/*
 * thrd_error is all that a C11 wait says of a mutex that the caller has not, and of a deadline that is none, with which the
 * library does not even look at the mutex.
 */
static int error_of_wait(int result, const struct timespec *deadline)
{
	if (result != thrd_error)
		return error_of(result);
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

/* Reports the end of a C11 call that is a cancellation point, with thrd_error unless it returned. */
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

	C11_WITH(CND_WAIT_IN, cnd_wait_in, cond, call.site, .mutex = ptt_ptr48(mutex));
	if (!ptt_wait_is_traced())
		return call.result = ptt_real.cnd_wait(cond, mutex);
	if (must_trace(COND, COND_WAIT_IN))
		EMIT_WITH(COND, COND_WAIT_IN, cond_wait_in, cond, call.site, .mutex = ptt_ptr48(mutex));
	return call.result = wait_on(cond, mutex, call.site);
}

EXPORT int cnd_timedwait(cnd_t *cond, mtx_t *mutex, const struct timespec *deadline)
{
	struct c11_call call C11_GUARD = {cond, CALL_SITE, thrd_error, NPTL_EV_CND_TIMEDWAIT_OUT};

	C11_WITH(CND_TIMEDWAIT_IN, cnd_timedwait_in, cond, call.site, .mutex = ptt_ptr48(mutex),
		 .deadline_ns = ptt_ns(deadline));
	if (!ptt_wait_is_traced())
		return call.result = ptt_real.cnd_timedwait(cond, mutex, deadline);
	if (must_trace(COND, COND_TIMEDWAIT_IN))
		EMIT_WITH(COND, COND_TIMEDWAIT_IN, cond_timedwait_in, cond, call.site, .mutex = ptt_ptr48(mutex),
			  .deadline_ns = ptt_ns(deadline));
	return call.result = wait_until(cond, mutex, deadline, call.site);
}

EXPORT int cnd_signal(cnd_t *cond)
{
	void *site = CALL_SITE;
	int result;

	C11(CND_SIGNAL_IN, cond, site);
	/* before the wake-up that it causes */
	if (must_trace(COND, COND_SIGNAL))
		EMIT(COND, COND_SIGNAL, cond, site);
	result = ptt_real.cnd_signal(cond);
	C11_WITH(CND_SIGNAL_OUT, cnd_signal_out, cond, site, .result = result);
	return result;
}

EXPORT int cnd_broadcast(cnd_t *cond)
{
	void *site = CALL_SITE;
	int result;

	C11(CND_BROADCAST_IN, cond, site);
	if (must_trace(COND, COND_BROADCAST))
		EMIT(COND, COND_BROADCAST, cond, site);
	result = ptt_real.cnd_broadcast(cond);
	C11_WITH(CND_BROADCAST_OUT, cnd_broadcast_out, cond, site, .result = result);
	return result;
}

EXPORT int cnd_init(cnd_t *cond)
{
	void *site = CALL_SITE;
	int result;

	C11(CND_INIT_IN, cond, site);
	result = ptt_real.cnd_init(cond);
	if (result == thrd_success && must_trace(COND, COND_INIT))
		EMIT_WITH(COND, COND_INIT, cond_init, cond, site, .clock = CLOCK_REALTIME);
	C11_WITH(CND_INIT_OUT, cnd_init_out, cond, site, .result = result);
	return result;
}

EXPORT void cnd_destroy(cnd_t *cond)
{
	void *site = CALL_SITE;

	C11(CND_DESTROY_IN, cond, site);
	/* before the real one, which waits until the last waiter has left */
	if (must_trace(COND, COND_DESTROY))
		EMIT(COND, COND_DESTROY, cond, site);
	ptt_real.cnd_destroy(cond);
	C11(CND_DESTROY_OUT, cond, site);
}

/* ------------------------------------------------------------ threads */

EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *arg)
{
	void *site = CALL_SITE;
	int result;

	if (!__nptl_trace_enabled)
		return ptt_real.thrd_create(thread, routine, arg);
	C11_WITH(THRD_CREATE_IN, thrd_create_in, 0, site, .start_routine = ptt_ptr48((void *)routine));
	result = ptt_create_c11(thread, routine, arg, site);
	C11_WITH(THRD_CREATE_OUT, thrd_create_out, 0, site, .result = result);
	return result;
}

EXPORT int thrd_join(thrd_t thread, int *value)
{
	struct c11_call call C11_GUARD = {(void *)thread, CALL_SITE, thrd_error, NPTL_EV_THRD_JOIN_OUT};

	C11(THRD_JOIN_IN, call.object, call.site);
	if (!must_trace(THREAD, THREAD_JOIN_IN))
		return call.result = ptt_real.thrd_join(thread, value);
	EMIT(THREAD, THREAD_JOIN_IN, call.object, call.site);
	{
		struct ptt_wait wait WAIT_GUARD =
			ptt_begin_wait(NPTL_DOMAIN_THREAD, NPTL_EV_THREAD_JOIN_OUT, call.object, call.site);

		call.result = ptt_real.thrd_join(thread, value);
		wait.result = error_of(call.result);
	}
	return call.result;
}

EXPORT int thrd_detach(thrd_t thread)
{
	void *site = CALL_SITE;
	int result;

	C11(THRD_DETACH_IN, (void *)thread, site);
	if (must_trace(THREAD, THREAD_DETACH))
		EMIT_WITH(THREAD, THREAD_DETACH, thread_detach, thread, site, .result = 0);
	result = ptt_real.thrd_detach(thread);
	if (result != thrd_success && must_trace(THREAD, THREAD_ERROR))
		EMIT_WITH(THREAD, THREAD_ERROR, thread_error, thread, site, .routine = NPTL_EV_THREAD_DETACH_IN,
			  .result = error_of(result));
	C11_WITH(THRD_DETACH_OUT, thrd_detach_out, thread, site, .result = result);
	return result;
}

EXPORT void thrd_exit(int value)
{
	ptt_thread_leaves((void *)(intptr_t)value);
	C11_WITH(THRD_EXIT_IN, thrd_exit_in, pthread_self(), CALL_SITE, .result = value);
	ptt_real.thrd_exit(value);
	__builtin_unreachable();
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
	C11(CALL_ONCE_OUT, call->flag, call->site);
}

EXPORT void call_once(once_flag *flag, void (*routine)(void))
{
	struct once_call call __attribute__((cleanup(end_once_call))) = {flag, CALL_SITE};

	C11_WITH(CALL_ONCE_IN, call_once_in, flag, call.site, .routine = ptt_ptr48((void *)routine));
	if (ptt_level(NPTL_DOMAIN_ONCE))
		ptt_once(call_real_once, (pthread_once_t *)flag, routine, call.site);
	else
		ptt_real.call_once(flag, routine);
}
