/* SPDX-License-Identifier: MIT */
/* reach.c - finds out how far the stack of the calling thread reaches. */
#include "reach.h"

#include <errno.h>
#include <sys/syscall.h>

#include "platform/confined.h"
#include "platform/missing.h"
#include "platform/raw_syscall.h"
#include "tracer.h"

/* The end of the first thread's stack, where the kernel put the arguments. A variable of the dynamic linker. */
extern void *__libc_stack_end __attribute__((weak));

/* New pages of a thread's stack that a walk asks the kernel about, at most. */
#define NEW_PAGES_MAX 64

/* From here up to its top, the stack of the calling thread is known to be mapped. */
static __thread uintptr_t mapped_low INITIAL_EXEC;

/* From here up, the thread was created with a stack; 0: unknown. */
static __thread uintptr_t created_low INITIAL_EXEC;

static uintptr_t page_of(uintptr_t address)
{
	return address & ~(PTT_REACH_PAGE - 1);
}

/*
 * Is the page mapped? rt_sigprocmask(2) with an invalid operation: the kernel copies the set of signals before it
 * checks the operation. EFAULT: it cannot read the set. EINVAL: it can.
 */
static bool is_mapped(uintptr_t address)
{
	return !ptt_is_confined() && ptt_raw_syscall(SYS_rt_sigprocmask, -1, (long)address, 0, 8, 0, 0) == -EINVAL;
}

bool ptt_reach_page(struct ptt_reach *reach, uintptr_t address)
{
	if (!is_mapped(page_of(address)))
		return false;
	reach->page = page_of(address);
	return true;
}

bool ptt_can_read(const void *begin, size_t size)
{
	uintptr_t at = page_of((uintptr_t)begin), end = (uintptr_t)begin + size;

	if (ptt_is_confined())
		return true;
	while (at < end && is_mapped(at))
		at += PTT_REACH_PAGE;
	return at >= end;
}

/*
 * The top of the calling thread's own stack; 0: unknown. The C library puts the thread's control block there, except
 * for the first thread: the stack of the first thread lies above all other mappings. @inside: an address in the stack
 */
static uintptr_t top_above(uintptr_t inside)
{
	uintptr_t top = (uintptr_t)ptt_thread_pointer();

	if (inside < top)
		return top;
	top = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
	return inside < top ? top : 0;
}

/*
 * The control block takes less than a page at the top of the created stack; the guard takes up to some pages at the
 * bottom.
 */
void ptt_reach_begin(size_t room)
{
	uintptr_t top = (uintptr_t)ptt_thread_pointer();

	created_low = room < top ? page_of(top - room) + 3 * PTT_REACH_PAGE : 0;
}

struct ptt_reach ptt_reach_from(uintptr_t sp)
{
	uintptr_t low = mapped_low, top = top_above(low ? low : sp);
	int i;

	if (!top)
		return (struct ptt_reach){.page = 1};
	/* if @sp is in another stack below, the loop ends at the gap between them */
	low = low ? low : page_of(top);
	if (created_low && sp >= created_low && sp < low && ptt_is_confined())
		low = page_of(sp);
	for (i = 0; low > sp && i < NEW_PAGES_MAX && is_mapped(low - PTT_REACH_PAGE); i++)
		low -= PTT_REACH_PAGE;
	mapped_low = low;
	return (struct ptt_reach){.low = low, .high = top, .page = 1};
}
