/* SPDX-License-Identifier: MIT */
/* upcalls.c - the functions of the ring's upcalls while there is no tracer. */
#include "upcalls.h"

static const int not_confined;
static const uint64_t nothing_closing;
static const bool no_python;
static ptt_before_lock_t *before_lock;
static void (*before_exit)(void), (*before_rseq)(void);

static void *no_outer_site(void *site)
{
	(void)site;
	return NULL;
}

static uint32_t no_stack(void *site, const struct ptt_stack_wanted *wanted)
{
	(void)site, (void)wanted;
	return 0;
}

static bool of_calling_thread(void)
{
	return false;
}

static void *no_user_site(void)
{
	return NULL;
}

static enum ptt_other_lock no_other_lock(uint64_t object)
{
	(void)object;
	return PTT_OTHER_NONE;
}

static void report_nothing(void)
{
}

static int32_t none_held(void)
{
	return 0;
}

struct ptt_upcalls ptt_upcalls = {
	.confined = &not_confined,
	.closing = &nothing_closing,
	.python = &no_python,
	.before_lock = &before_lock,
	.before_exit = &before_exit,
	.before_rseq = &before_rseq,
	.outer_site = no_outer_site,
	.stack = no_stack,
	.is_of_other_thread = of_calling_thread,
	.user_site = no_user_site,
	.other_lock = no_other_lock,
	.thread_enters = report_nothing,
	.held = none_held,
};
