/* SPDX-License-Identifier: MIT */
/* sem.c - semaphores: init and destroy, waits, posts; open and unlink of named semaphores. */
/*
 * The functions report errors in errno. Events have 0 or that number as result. The program finds errno as the real
 * function left it.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "bodies.h"
#include "parked.h"

/* ------------------------------------------------------------ init and destroy */

/*
 * A thread of CPython parks at a semaphore that lives for one wait. Then the object of the events is the mutex or
 * event that the thread waits for.
 */

EXPORT int sem_init(sem_t *sem, int shared, unsigned int value)
{
	void *site = CALL_SITE;
	int done, result;

	REPORT_WITH(SEM, SEM_INIT_IN, sem_init_in, sem, site, .shared = (uint16_t)shared, .value = value);
	done = ptt_real.sem_init(sem, shared, value);
	result = done < 0 ? errno : 0;
	if (result)
		REPORT_ERROR(SEM, sem, NPTL_EV_SEM_INIT_IN, result, site);
	else if (!ptt_parked_at(sem, site).kind)
		REPORT_WITH(SEM, SEM_INIT, sem_init, sem, site, .shared = (uint16_t)shared, .value = value);
	REPORT_RESULT(SEM, SEM_INIT_OUT, sem, result, site);
	return done;
}

EXPORT int sem_destroy(sem_t *sem)
{
	void *site = CALL_SITE;
	int done, result;

	REPORT(SEM, SEM_DESTROY_IN, sem, site);
	done = ptt_real.sem_destroy(sem);
	result = done < 0 ? errno : 0;
	if (result)
		REPORT_ERROR(SEM, sem, NPTL_EV_SEM_DESTROY_IN, result, site);
	else if (!ptt_parked_at(sem, site).kind)
		REPORT(SEM, SEM_DESTROY, sem, site);
	REPORT_RESULT(SEM, SEM_DESTROY_OUT, sem, result, site);
	return done;
}

/* ------------------------------------------------------------ waits */

/* A call in progress. Its end is reported however the scope is left, with ECANCELED unless it returned. */
struct call {
	const void *object; /* the semaphore, or the mutex or event behind it */
	void *site;
	const struct ptt_request *request;
	uint64_t began; /* when it blocked, or 0 */
	int result;
};

/* Not inlined, like the next two functions: a call without a wait saves their registers and stack. */
static COLD void report_wait(struct call *call, uint16_t lock)
{
	EMIT_WITH(SEM, SEM_WAIT, sem_wait, call->object, call->site, .timed = ptt_request_is_timed(call->request),
		  .lock = lock ? lock : ptt_site_futex(call->site));
	call->began = ptt_now_ns();
}

static COLD void report_wait_end(const struct call *call)
{
	uint64_t waited = ptt_now_ns() - call->began;

	if (call->result)
		REPORT_WITH(SEM, SEM_WAIT_END, sem_wait_end, call->object, call->site, .result = call->result,
			    .wait_ns = waited);
	else
		REPORT_WITH(SEM, SEM_TAKEN_WAITED, sem_taken_waited, call->object, call->site, .wait_ns = waited);
}

static COLD void report_out(const struct call *call)
{
	EMIT_PARAM(NPTL_DOMAIN_SEM, (char)(call->request->routine + 1), sem_wait_out, call->object, call->site,
		   .result = call->result);
}

static void end_call(struct call *call)
{
	int result = call->result;

	if (call->began)
		report_wait_end(call);
	else if (result == 0)
		REPORT(SEM, SEM_TAKEN, call->object, call->site);
	if (result && result != ETIMEDOUT && result != EINTR && result != ECANCELED)
		REPORT_ERROR(SEM, call->object, call->request->routine, result, call->site);
	if (must_trace(SEM, SEM_WAIT_OUT))
		report_out(call);
}

static int wait_real(sem_t *sem, const struct ptt_request *r)
{
	switch (r->clock) {
	case UNTIMED:
		return ptt_real.sem_wait(sem);
	case TIMED:
		return ptt_real.sem_timedwait(sem, r->deadline);
	default:
		return ptt_real.sem_clockwait(sem, r->clock, r->deadline);
	}
}

int ptt_sem_take(sem_t *sem, const struct ptt_request *r, void *site)
{
	struct ptt_parked parked = ptt_parked_at(sem, site);
	struct call call __attribute__((cleanup(end_call))) = {
		.object = parked.object,
		.site = site,
		.request = r,
		.result = ECANCELED,
	};
	int before = errno, value;

	if (ptt_request_is_valid(r)) {
		/* the real function acts on a cancellation even if it need not block; sem_clockwait() does not */
		if (r->clock == UNTIMED || r->clock == TIMED)
			pthread_testcancel();
		if (ptt_real.sem_trywait(sem) == 0) {
			call.result = 0;
			return 0;
		}
		if (errno == EAGAIN && !ptt_in_lock)
			report_wait(&call, parked.kind);
		errno = before;
	}
	value = wait_real(sem, r);
	call.result = value < 0 ? errno : 0;
	return value;
}

/* ------------------------------------------------------------ posts */

static void report_post(const sem_t *sem, void *site)
{
	const void *object = ptt_unparked_by(sem, site).object;

	/*
	 * glibc counts the waiting threads of all processes in the upper half of the semaphore's first word. relaxed:
	 * a thread that is just beginning to wait may be missed
	 */
	if (__atomic_load_n((const uint64_t *)(const void *)sem, __ATOMIC_RELAXED) >> 32)
		EMIT(SEM, SEM_POST_AWAITED, object, site);
	else
		EMIT(SEM, SEM_POST, object, site);
}

EXPORT int sem_post(sem_t *sem)
{
	void *site = CALL_SITE;
	int done, result;

	if (ptt_level(NPTL_DOMAIN_SEM) < NPTL_LEVEL_SEM_POST)
		return ptt_real.sem_post(sem);
	REPORT(SEM, SEM_POST_IN, sem, site);
	report_post(sem, site);
	done = ptt_real.sem_post(sem);
	result = done < 0 ? errno : 0;
	if (result)
		REPORT_ERROR(SEM, sem, NPTL_EV_SEM_POST_IN, result, site);
	REPORT_RESULT(SEM, SEM_POST_OUT, sem, result, site);
	return done;
}

/* ------------------------------------------------------------ named semaphores */

/* Copy a name behind the fixed part of an event. Return: its length. */
static size_t put_name(char *to, uint32_t *pieces, const char *name)
{
	size_t length = strnlen(name, PTT_NAME_MAX);

	memcpy(to, name, length);
	*pieces = (uint32_t)PTT_PIECES(length);
	return length;
}

static void report_open(sem_t *sem, const char *name, int flags, unsigned int value, void *site)
{
	union {
		struct nptl_trace_sem_open event;
		char bytes[sizeof(struct nptl_trace_sem_open) + PTT_NAME_MAX + 1];
	} param;
	size_t length;

	memset(&param, 0, sizeof(param));
	param.event.object = sem;
	param.event.site = site;
	param.event.flags = (uint32_t)flags;
	param.event.value = value;
	length = put_name(param.event.name, &param.event.name_pieces, name);
	ptt_send(NPTL_DOMAIN_SEM, NPTL_EV_SEM_OPEN, &param, sizeof(param.event) + length);
}

static void report_unlink(const char *name, void *site)
{
	union {
		struct nptl_trace_sem_unlink event;
		char bytes[sizeof(struct nptl_trace_sem_unlink) + PTT_NAME_MAX + 1];
	} param;
	size_t length;

	memset(&param, 0, sizeof(param));
	param.event.site = site;
	length = put_name(param.event.name, &param.event.name_pieces, name);
	ptt_send(NPTL_DOMAIN_SEM, NPTL_EV_SEM_UNLINK, &param, sizeof(param.event) + length);
}

EXPORT sem_t *sem_open(const char *name, int flags, ...)
{
	void *site = CALL_SITE;
	unsigned int value = 0;
	mode_t mode = 0;
	sem_t *sem;

	if (flags & O_CREAT) {
		va_list more;

		va_start(more, flags);
		mode = va_arg(more, mode_t);
		value = va_arg(more, unsigned int);
		va_end(more);
	}
	REPORT_WITH(SEM, SEM_OPEN_IN, sem_open_in, 0, site, .flags = (uint32_t)flags);
	sem = ptt_real.sem_open(name, flags, mode, value);
	if (sem == SEM_FAILED)
		REPORT_ERROR(SEM, NULL, NPTL_EV_SEM_OPEN_IN, errno, site);
	else if (must_trace(SEM, SEM_OPEN))
		report_open(sem, name, flags, value, site);
	REPORT_RESULT(SEM, SEM_OPEN_OUT, sem, sem == SEM_FAILED ? errno : 0, site);
	return sem;
}

EXPORT int sem_unlink(const char *name)
{
	void *site = CALL_SITE;
	int done, result;

	REPORT(SEM, SEM_UNLINK_IN, NULL, site);
	done = ptt_real.sem_unlink(name);
	result = done < 0 ? errno : 0;
	if (result)
		REPORT_ERROR(SEM, NULL, NPTL_EV_SEM_UNLINK_IN, result, site);
	else if (must_trace(SEM, SEM_UNLINK))
		report_unlink(name, site);
	REPORT_RESULT(SEM, SEM_UNLINK_OUT, NULL, result, site);
	return done;
}
