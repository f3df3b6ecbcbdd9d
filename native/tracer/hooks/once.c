/* SPDX-License-Identifier: MIT */
/* once.c - pthread_once(): reports the thread that runs the routine, and the threads that wait for it. */
#include "bodies.h"

/* A call in progress, on the stack of its thread. */
struct call {
	pthread_once_t *control;
	void (*routine)(void);
	void *site;
	struct call *outer; /* a once routine may use another once */
	uint64_t began;
	bool wait_reported;
	bool ran; /* this thread ran the routine, or did not wait for it */
	bool returned;
};

/* The innermost call of this thread: a once routine has no argument that could refer to it. */
static __thread struct call *innermost INITIAL_EXEC;

static void report_wait(struct call *call)
{
	REPORT(ONCE, ONCE_WAIT, call->control, call->site);
	call->wait_reported = true;
}

static void report_wait_end(struct call *call, int result)
{
	if (call->wait_reported)
		REPORT_WITH(ONCE, ONCE_WAIT_END, once_wait_end, call->control, call->site, .result = result,
			    .wait_ns = ptt_now_ns() - call->began);
	call->wait_reported = false;
}

/* ------------------------------------------------------------ the routine */

struct run {
	struct call *call;
	bool returned;
};

/* The routine ended. If it did not return (cancellation, pthread_exit(), exception), the next caller runs it again. */
static void end_run(struct run *run)
{
	REPORT_WITH(ONCE, ONCE_END, once_end, run->call->control, run->call->site, .cancelled = !run->returned);
}

static void run_routine(void)
{
	struct run run __attribute__((cleanup(end_run))) = {.call = innermost};
	struct call *call = run.call;

	call->ran = true;
	/* the thread that ran the routine gave up, and now this thread runs it */
	report_wait_end(call, 0);
	REPORT_WITH(ONCE, ONCE_BEGIN, once_begin, call->control, call->site,
		    .routine = ptt_ptr48((void *)call->routine));
	call->routine();
	run.returned = true;
}

/* ------------------------------------------------------------ the call */

static void end_call(struct call *call)
{
	innermost = call->outer;
	if (call->ran)
		return;
	/* another thread began the routine between look_at() and the real function's check */
	if (!call->wait_reported)
		report_wait(call);
	report_wait_end(call, call->returned ? 0 : ECANCELED);
}

static int look_at(const pthread_once_t *control)
{
	/* acquire: pairs with the library's release after the routine; the real function checks again */
	return __atomic_load_n(control, __ATOMIC_ACQUIRE);
}

static COLD int call_real(ptt_once_function *real, pthread_once_t *control, void (*routine)(void), void *site)
{
	struct call call __attribute__((cleanup(end_call))) = {
		.control = control,
		.routine = routine,
		.site = site,
		.outer = innermost,
		.began = ptt_now_ns(),
	};
	int state = look_at(control), result;

	if (state & PTT_ONCE_RUNNING) {
		report_wait(&call);
		call.began = ptt_now_ns();
	} else if (state & PTT_ONCE_DONE) {
		call.ran = true;
	}
	innermost = &call;
	result = real(control, run_routine);
	call.returned = true;
	return result;
}

int ptt_once(ptt_once_function *real, pthread_once_t *control, void (*routine)(void), void *site)
{
	if (likely(look_at(control) & PTT_ONCE_DONE))
		return real(control, routine);
	return call_real(real, control, routine, site);
}

struct full_call {
	pthread_once_t *control;
	void *site;
	int result;
};

static void end_full_call(struct full_call *call)
{
	EMIT_WITH(ONCE, ONCE_OUT, once_out, call->control, call->site, .result = call->result);
}

static COLD int once_in_full(pthread_once_t *control, void (*routine)(void), void *site)
{
	struct full_call call __attribute__((cleanup(end_full_call))) = {control, site, ECANCELED};

	EMIT_WITH(ONCE, ONCE_IN, once_in, control, site, .routine = ptt_ptr48((void *)routine));
	return call.result = ptt_once(ptt_real.pthread_once, control, routine, site);
}

EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
	uint32_t level = ptt_level(NPTL_DOMAIN_ONCE);

	if (!level)
		return ptt_real.pthread_once(control, routine);
	if (unlikely(level >= NPTL_LEVEL_ONCE_IN))
		return once_in_full(control, routine, CALL_SITE);
	return ptt_once(ptt_real.pthread_once, control, routine, CALL_SITE);
}
ALIAS(__pthread_once, pthread_once);
