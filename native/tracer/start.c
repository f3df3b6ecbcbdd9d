/* SPDX-License-Identifier: MIT */
/* start.c - begin and end of the program: starts and ends all parts of the tracer, in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler.h"
#include "layout/ptt_abi.h"
#include "lock_state.h"
#include "modules.h"
#include "platform/upcalls.h"
#include "points.h"
#include "process.h"
#include "python.h"
#include "steer.h"
#include "team.h"
#include "thread.h"

static int32_t held_now(void)
{
	return ptt_held;
}

/* Functions and data of the tracer for native/ring, here and in the loaded handler. */
static void fill_upcalls(void)
{
	ptt_upcalls.confined = &__nptl_trace_confined;
	ptt_upcalls.before_lock = &ptt_before_lock_is_tried;
	ptt_upcalls.before_exit = &ptt_before_exit;
	ptt_upcalls.before_rseq = &ptt_before_rseq_is_called;
	ptt_upcalls.is_of_other_thread = ptt_is_of_other_thread;
	ptt_upcalls.user_site = ptt_user_site;
	ptt_upcalls.other_lock = ptt_find_other_lock;
	ptt_upcalls.thread_enters = ptt_thread_enters;
	ptt_upcalls.held = held_now;
#if PTT_UNWINDS
	ptt_upcalls.closing = &ptt_closing_count;
	ptt_upcalls.python = &ptt_has_python;
	ptt_upcalls.outer_site = ptt_find_outer_site;
	ptt_upcalls.stack = __nptl_trace_stack;
#endif
}

/*
 * What PTHREAD_NPTL_TRACE would say for a black box. PTT_BLACK_BOX is 1, or options such as events=1024,memory=64M. Return:
 * NULL if no box is wanted.
 */
static const char *black_box(void)
{
	static char variable[256];
	const char *wanted = getenv("PTT_BLACK_BOX");
	bool plain;

	if (!wanted || !*wanted || strcmp(wanted, "0") == 0)
		return NULL;
	plain = strcmp(wanted, "1") == 0;
	if ((size_t)snprintf(variable, sizeof(variable), "ring:" PTT_BOX_NAME "%s%s:2", plain ? "" : ",", plain ? "" : wanted) >=
		    sizeof(variable) ||
	    strchr(wanted, ':')) {
		fprintf(stderr, "ptt: black box: PTT_BLACK_BOX has no such options; the program runs untraced\n");
		return NULL;
	}
	return variable;
}

static void start_tracing(void)
{
	const char *variable = getenv("PTHREAD_NPTL_TRACE");
	bool steered;

	/* a recorder has all that a black box has */
	if (!variable || !*variable)
		variable = black_box();

	ptt_resolve();
	fill_upcalls();
	if (!variable)
		return;
	steered = ptt_steer_open();
	if (!ptt_load_handler(variable))
		return;
	if (steered)
		ptt_steer_begin();
	ptt_python_start();
	if (!ptt_begin_handler())
		return;
	ptt_start_process();
	ptt_start_environment(variable, ptt_traces_children());
	ptt_begin_levels();
	ptt_start_threads();
	ptt_report_start();
}

/* errno must be 0 when the program begins. */
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
		/* the tracer's own calls of the library are no part of the program */
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
