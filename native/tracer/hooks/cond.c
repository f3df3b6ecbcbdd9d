/* SPDX-License-Identifier: MIT */
/* cond.c - the waits of pthread_cond_*(). Inside the library they release the mutex and take it again. */
/*
 * Programs linked since glibc 2.3.2 use pthread_cond_*@GLIBC_2.3.2. Only x86-64 still has the older functions; their
 * conditions have another layout. Events have only the address of a condition. So each routine has one body, with the
 * real function as its parameter. The hooks of both versions are at the end of the file.
 */
#include "mutex.h"
#include "wait.h"

typedef int wait_routine(pthread_cond_t *cond, pthread_mutex_t *mutex);
typedef int timedwait_routine(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline);

/* Just before the real wait, which releases the mutex: stamp the release first. */
static struct ptt_wait begin(pthread_cond_t *cond, pthread_mutex_t *mutex, char out, void *site)
{
	struct ptt_wait wait = ptt_begin_wait(NPTL_DOMAIN_COND, out, cond, site);

	/* if the mutex checks its owner and the caller is not the owner, the wait fails at once */
	wait.mutex = ptt_mutex_can_be_freed(mutex) ? mutex : NULL;
	if (wait.mutex && must_trace(MUTEX, MUTEX_FREE)) {
		/* the handler takes the stack now, so that it need not when the mutex is taken again */
		ptt_before_lock(mutex, site);
		EMIT(MUTEX, MUTEX_FREE, mutex, site);
	} else if (wait.mutex) {
		ptt_mutex_report_awaited(mutex, site);
	}
	return wait;
}

static int wait_by(wait_routine *real, pthread_cond_t *cond, pthread_mutex_t *mutex, void *site)
{
	if (!ptt_wait_is_traced())
		return real(cond, mutex);
	if (!ptt_in_lock)
		REPORT_WITH(COND, COND_WAIT_IN, cond_wait_in, cond, site, .mutex = ptt_ptr48(mutex));
	{
		struct ptt_wait wait WAIT_GUARD = begin(cond, mutex, NPTL_EV_COND_WAIT_OUT, site);

		return wait.result = real(cond, mutex);
	}
}

static int timedwait_by(timedwait_routine *real, pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline, void *site)
{
	if (!ptt_wait_is_traced())
		return real(cond, mutex, deadline);
	if (!ptt_in_lock)
		REPORT_WITH(COND, COND_TIMEDWAIT_IN, cond_timedwait_in, cond, site, .mutex = ptt_ptr48(mutex),
			    .deadline_ns = ptt_ns(deadline));
	{
		struct ptt_wait wait WAIT_GUARD = begin(cond, mutex, NPTL_EV_COND_TIMEDWAIT_OUT, site);

		return wait.result = real(cond, mutex, deadline);
	}
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *deadline)
{
	void *site = CALL_SITE;

	if (!ptt_wait_is_traced())
		return ptt_real.pthread_cond_clockwait(cond, mutex, clock, deadline);
	if (!ptt_in_lock)
		REPORT_WITH(COND, COND_CLOCKWAIT_IN, cond_clockwait_in, cond, site, .mutex = ptt_ptr48(mutex),
			    .deadline_ns = ptt_ns(deadline), .clock = (uint16_t)clock);
	{
		struct ptt_wait wait WAIT_GUARD = begin(cond, mutex, NPTL_EV_COND_CLOCKWAIT_OUT, site);

		return wait.result = ptt_real.pthread_cond_clockwait(cond, mutex, clock, deadline);
	}
}

#define HOOKS(prefix, real, version)                                                                                      \
	HOOK_AS(int, prefix##wait, (pthread_cond_t * cond, pthread_mutex_t * mutex),                                      \
		wait_by(real.pthread_cond_wait, cond, mutex, CALL_SITE))                                                  \
	VERSION_X86(prefix##wait, pthread_cond_wait, version);                                                            \
	HOOK_AS(int, prefix##timedwait, (pthread_cond_t * cond, pthread_mutex_t * mutex, const struct timespec *deadline), \
		timedwait_by(real.pthread_cond_timedwait, cond, mutex, deadline, CALL_SITE))                              \
	VERSION_X86(prefix##timedwait, pthread_cond_timedwait, version)

HOOKS(ptt_cond_, ptt_real, "@@GLIBC_2.3.2");
#if defined(__x86_64__)
HOOKS(ptt_old_cond_, ptt_old, "@" PTT_OLD_VERSION);
#endif
