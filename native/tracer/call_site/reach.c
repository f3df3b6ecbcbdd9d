/* SPDX-License-Identifier: MIT */
/* reach.c - finds out how far the stack of the calling thread reaches. */
#include "reach.h"

#include <errno.h>
#include <sys/syscall.h>

#include "platform/confined.h"
#include "platform/missing.h"
#include "platform/raw_syscall.h"
#include "tracer.h"

/* Where the kernel put the arguments: above all that the first thread calls. Of the dynamic linker. */
extern void *__libc_stack_end __attribute__((weak));

/* In a walk, so many pages of a thread's stack that no walk has come to before are looked at. */
#define NEW_PAGES_MAX 64

/* From here up to its top, the stack of the calling thread has been found to be there. */
static __thread uintptr_t found_low INITIAL_EXEC;

/* From here up, it is known to be there without a look; 0 if that is not known. */
static __thread uintptr_t given_low INITIAL_EXEC;

static uintptr_t page_of(uintptr_t address)
{
	return address & ~(PTT_REACH_PAGE - 1);
}

/*
 * A set of signals is copied from the program before the kernel looks at what to do with it, which is nothing that it knows:
 * EFAULT says that it could not be read, EINVAL that it could.
 */
static bool is_there(uintptr_t address)
{
	return !ptt_is_confined() && ptt_raw_syscall(SYS_rt_sigprocmask, -1, (long)address, 0, 8, 0, 0) == -EINVAL;
}

bool ptt_reach_page(struct ptt_reach *reach, uintptr_t address)
{
	if (!is_there(page_of(address)))
		return false;
	reach->page = page_of(address);
	return true;
}

bool ptt_can_read(const void *begin, size_t size)
{
	uintptr_t at = page_of((uintptr_t)begin), end = (uintptr_t)begin + size;

	if (ptt_is_confined())
		return true;
	while (at < end && is_there(at))
		at += PTT_REACH_PAGE;
	return at >= end;
}

/*
 * The top of the calling thread's own stack, 0 if it is not known: the C library has a thread's control block there, but not
 * that of the first thread, whose stack lies above all that is mapped. @inside: some address in it
 */
static uintptr_t top_above(uintptr_t inside)
{
	uintptr_t top = (uintptr_t)ptt_thread_pointer();

	if (inside < top)
		return top;
	top = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
	return inside < top ? top : 0;
}

/* The control block, of less than a page, is at the top of what was given; a guard is as large as some pages. */
void ptt_reach_begin(size_t room)
{
	uintptr_t top = (uintptr_t)ptt_thread_pointer();

	given_low = room < top ? page_of(top - room) + 3 * PTT_REACH_PAGE : 0;
}

struct ptt_reach ptt_reach_from(uintptr_t sp)
{
	uintptr_t low = found_low, top = top_above(low ? low : sp);
	int i;

	if (!top)
		return (struct ptt_reach){.page = 1};
	/* where @sp is in another stack that lies below, this ends at what is not there between them */
	low = low ? low : page_of(top);
	if (given_low && sp >= given_low && sp < low && ptt_is_confined())
		low = page_of(sp);
	for (i = 0; low > sp && i < NEW_PAGES_MAX && is_there(low - PTT_REACH_PAGE); i++)
		low -= PTT_REACH_PAGE;
	found_low = low;
	return (struct ptt_reach){.low = low, .high = top, .page = 1};
}
