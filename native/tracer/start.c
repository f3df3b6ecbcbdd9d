/* SPDX-License-Identifier: MIT */
/* start.c - when the program begins and ends: all parts of the tracer in turn. */
#include <stdlib.h>
#include <unistd.h>

#include "handler.h"
#include "points.h"
#include "process.h"

static void start_tracing(void)
{
	const char *variable = getenv("PTHREAD_NPTL_TRACE");

	ptt_resolve();
	if (!variable || !*variable || !ptt_load_handler(variable))
		return;
	ptt_python_start();
	if (!ptt_begin_handler())
		return;
	ptt_start_process();
	ptt_start_environment(variable, ptt_traces_children());
	ptt_begin_levels();
	ptt_start_threads();
	ptt_report_start();
}

/* A program finds errno 0 when it begins. */
static __attribute__((constructor(101))) void start(void)
{
	int before = errno;

	start_tracing();
	errno = before;
}

static void end_tracing(void)
{
	if (!__nptl_trace_enabled || (!__nptl_trace_confined && ptt_pid != getpid()))
		return;
	ptt_report_lost();
	REPORT(PROCESS, PROCESS_EXIT, (void *)(uintptr_t)ptt_pid, NULL);
	if (!__nptl_trace_confined) {
		/* what we do ourselves in the library is no part of the program */
		ptt_mute_points(true);
		ptt_report_uncovered();
		ptt_drop_control();
		ptt_mute_points(false);
	}
	ptt_end_handler();
}

/* exit() is no cancellation point. */
static __attribute__((destructor(101))) void end(void)
{
	int before = ptt_hold_cancellation();

	end_tracing();
	ptt_allow_cancellation(before);
}
