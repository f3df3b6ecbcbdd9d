/* SPDX-License-Identifier: MIT */
/* sem.c - sem_*: posts, takes and waits of semaphores, unnamed and named. */
/*
 * These functions report errors through errno. Events carry 0 or that number as their result; what the program finds in
 * errno is what the real function left there.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "deadline.h"
#include "tracer.h"

static void report_error(sem_t *sem, int routine, int result, void *site)
{
	if (must_trace(SEM, SEM_ERROR))
		EMIT_WITH(SEM, SEM_ERROR, sem_error, sem, site, .routine = (uint16_t)routine, .result = result);
}

/* 0 or the error of a function that returned @value. */
static inline int error_of(int value)
{
	return value < 0 ? errno : 0;
}

/* ------------------------------------------------------------ waits */

/* What a routine asks for. */
struct request {
	clockid_t clock; /* or UNTIMED, TIMED */
	const struct timespec *deadline;
	int routine; /* number of its _IN event; _OUT is the next */
};

/* A call in progress: its end is reported however the scope is left, with ECANCELED unless it returned. */
struct call {
	sem_t *sem;
	void *site;
	const struct request *request;
	uint64_t began; /* when it blocked, or 0 */
	int result;
};

static void report_wait_end(struct call *call)
{
	uint64_t waited = ptt_now_ns() - call->began;

	if (!must_trace(SEM, SEM_WAIT_END))
		return;
	if (call->result)
		EMIT_WITH(SEM, SEM_WAIT_END, sem_wait_end, call->sem, call->site, .result = call->result,
			  .wait_ns = waited);
	else
		EMIT_WITH(SEM, SEM_TAKEN_WAITED, sem_taken_waited, call->sem, call->site, .wait_ns = waited);
}

static void end_call(struct call *call)
{
	int result = call->result;

	if (call->began)
		report_wait_end(call);
	else if (result == 0 && must_trace(SEM, SEM_TAKEN))
		EMIT(SEM, SEM_TAKEN, call->sem, call->site);
	if (result && result != ETIMEDOUT && result != EINTR && result != ECANCELED)
		report_error(call->sem, call->request->routine, result, call->site);
	if (must_trace(SEM, SEM_WAIT_OUT)) {
		struct nptl_trace_sem_wait_out param = {.object = call->sem, .site = call->site, .result = result};

		ptt_send(NPTL_DOMAIN_SEM, (char)(call->request->routine + 1), &param, sizeof(param));
	}
}

static int wait_real(sem_t *sem, const struct request *r)
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

static int take(sem_t *sem, const struct request *r, void *site)
{
	struct call call __attribute__((cleanup(end_call))) = {
		.sem = sem,
		.site = site,
		.request = r,
		.result = ECANCELED,
	};
	int before = errno, value;

	if (r->clock == UNTIMED || ptt_deadline_valid(r->clock, r->deadline)) {
		/* the real function acts on a cancellation even where it need not block; sem_clockwait does not */
		if (r->clock == UNTIMED || r->clock == TIMED)
			pthread_testcancel();
		if (ptt_real.sem_trywait(sem) == 0) {
			call.result = 0;
			return 0;
		}
		if (errno == EAGAIN) {
			EMIT_WITH(SEM, SEM_WAIT, sem_wait, sem, site, .timed = r->clock != UNTIMED);
			call.began = ptt_now_ns();
		}
		errno = before;
	}
	value = wait_real(sem, r);
	call.result = error_of(value);
	return value;
}

EXPORT int sem_wait(sem_t *sem)
{
	static const struct request r = {.clock = UNTIMED, .routine = NPTL_EV_SEM_WAIT_IN};

	if (!ptt_level(NPTL_DOMAIN_SEM))
		return ptt_real.sem_wait(sem);
	if (must_trace(SEM, SEM_WAIT_IN))
		EMIT(SEM, SEM_WAIT_IN, sem, CALL_SITE);
	return take(sem, &r, CALL_SITE);
}

EXPORT int sem_timedwait(sem_t *sem, const struct timespec *deadline)
{
	struct request r = {.clock = TIMED, .deadline = deadline, .routine = NPTL_EV_SEM_TIMEDWAIT_IN};

	if (!ptt_level(NPTL_DOMAIN_SEM))
		return ptt_real.sem_timedwait(sem, deadline);
	if (must_trace(SEM, SEM_TIMEDWAIT_IN))
		EMIT_WITH(SEM, SEM_TIMEDWAIT_IN, sem_timedwait_in, sem, CALL_SITE, .deadline_ns = ptt_ns(deadline));
	return take(sem, &r, CALL_SITE);
}

EXPORT int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *deadline)
{
	struct request r = {.clock = clock, .deadline = deadline, .routine = NPTL_EV_SEM_CLOCKWAIT_IN};

	/* a clock it does not take: the real function says so, whatever the state of the semaphore */
	if (!ptt_level(NPTL_DOMAIN_SEM) || !ptt_clock_valid(clock))
		return ptt_real.sem_clockwait(sem, clock, deadline);
	if (must_trace(SEM, SEM_CLOCKWAIT_IN))
		EMIT_WITH(SEM, SEM_CLOCKWAIT_IN, sem_clockwait_in, sem, CALL_SITE, .clock = (uint16_t)clock,
			  .deadline_ns = ptt_ns(deadline));
	return take(sem, &r, CALL_SITE);
}

EXPORT int sem_trywait(sem_t *sem)
{
	void *site = CALL_SITE;
	int value;

	if (!ptt_level(NPTL_DOMAIN_SEM))
		return ptt_real.sem_trywait(sem);
	if (must_trace(SEM, SEM_TRYWAIT_IN))
		EMIT(SEM, SEM_TRYWAIT_IN, sem, site);
	value = ptt_real.sem_trywait(sem);
	if (value == 0 && must_trace(SEM, SEM_TAKEN))
		EMIT(SEM, SEM_TAKEN, sem, site);
	else if (value && errno != EAGAIN && errno != EINTR)
		report_error(sem, NPTL_EV_SEM_TRYWAIT_IN, errno, site);
	if (must_trace(SEM, SEM_TRYWAIT_OUT))
		EMIT_WITH(SEM, SEM_TRYWAIT_OUT, sem_trywait_out, sem, site, .result = error_of(value));
	return value;
}

/* ------------------------------------------------------------ post */

EXPORT int sem_post(sem_t *sem)
{
	void *site = CALL_SITE;
	int value;

	if (ptt_level(NPTL_DOMAIN_SEM) < NPTL_LEVEL_SEM_POST)
		return ptt_real.sem_post(sem);
	if (must_trace(SEM, SEM_POST_IN))
		EMIT(SEM, SEM_POST_IN, sem, site);
	/* before the wake-up that it causes; afterwards the semaphore may be gone */
	EMIT(SEM, SEM_POST, sem, site);
	value = ptt_real.sem_post(sem);
	if (value)
		report_error(sem, NPTL_EV_SEM_POST_IN, errno, site);
	if (must_trace(SEM, SEM_POST_OUT))
		EMIT_WITH(SEM, SEM_POST_OUT, sem_post_out, sem, site, .result = error_of(value));
	return value;
}

/* ------------------------------------------------------------ init, destroy */

EXPORT int sem_init(sem_t *sem, int shared, unsigned int value)
{
	void *site = CALL_SITE;
	int done;

	if (must_trace(SEM, SEM_INIT_IN))
		EMIT_WITH(SEM, SEM_INIT_IN, sem_init_in, sem, site, .shared = (uint16_t)shared, .value = value);
	done = ptt_real.sem_init(sem, shared, value);
	if (done)
		report_error(sem, NPTL_EV_SEM_INIT_IN, errno, site);
	else if (must_trace(SEM, SEM_INIT))
		EMIT_WITH(SEM, SEM_INIT, sem_init, sem, site, .shared = (uint16_t)shared, .value = value);
	if (must_trace(SEM, SEM_INIT_OUT))
		EMIT_WITH(SEM, SEM_INIT_OUT, sem_init_out, sem, site, .result = error_of(done));
	return done;
}

EXPORT int sem_destroy(sem_t *sem)
{
	void *site = CALL_SITE;
	int done;

	if (must_trace(SEM, SEM_DESTROY_IN))
		EMIT(SEM, SEM_DESTROY_IN, sem, site);
	done = ptt_real.sem_destroy(sem);
	if (done)
		report_error(sem, NPTL_EV_SEM_DESTROY_IN, errno, site);
	else if (must_trace(SEM, SEM_DESTROY))
		EMIT(SEM, SEM_DESTROY, sem, site);
	if (must_trace(SEM, SEM_DESTROY_OUT))
		EMIT_WITH(SEM, SEM_DESTROY_OUT, sem_destroy_out, sem, site, .result = error_of(done));
	return done;
}

/* ------------------------------------------------------------ named semaphores */

/* Return: length of the text put behind an event's fixed part. */
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
	if (must_trace(SEM, SEM_OPEN_IN))
		EMIT_WITH(SEM, SEM_OPEN_IN, sem_open_in, 0, site, .flags = (uint32_t)flags);
	sem = ptt_real.sem_open(name, flags, mode, value);
	if (sem == SEM_FAILED)
		report_error(NULL, NPTL_EV_SEM_OPEN_IN, errno, site);
	else if (must_trace(SEM, SEM_OPEN))
		report_open(sem, name, flags, value, site);
	if (must_trace(SEM, SEM_OPEN_OUT))
		EMIT_WITH(SEM, SEM_OPEN_OUT, sem_open_out, sem, site, .result = sem == SEM_FAILED ? errno : 0);
	return sem;
}

EXPORT int sem_close(sem_t *sem)
{
	void *site = CALL_SITE;
	int done;

	if (must_trace(SEM, SEM_CLOSE_IN))
		EMIT(SEM, SEM_CLOSE_IN, sem, site);
	/* before its address is free for another thread's semaphore */
	if (must_trace(SEM, SEM_CLOSE))
		EMIT(SEM, SEM_CLOSE, sem, site);
	done = ptt_real.sem_close(sem);
	if (done)
		report_error(sem, NPTL_EV_SEM_CLOSE_IN, errno, site);
	if (must_trace(SEM, SEM_CLOSE_OUT))
		EMIT_WITH(SEM, SEM_CLOSE_OUT, sem_close_out, sem, site, .result = error_of(done));
	return done;
}

EXPORT int sem_unlink(const char *name)
{
	void *site = CALL_SITE;
	int done;

	if (must_trace(SEM, SEM_UNLINK_IN))
		EMIT(SEM, SEM_UNLINK_IN, NULL, site);
	done = ptt_real.sem_unlink(name);
	if (done)
		report_error(NULL, NPTL_EV_SEM_UNLINK_IN, errno, site);
	else if (must_trace(SEM, SEM_UNLINK))
		report_unlink(name, site);
	if (must_trace(SEM, SEM_UNLINK_OUT))
		EMIT_WITH(SEM, SEM_UNLINK_OUT, sem_unlink_out, NULL, site, .result = error_of(done));
	return done;
}
