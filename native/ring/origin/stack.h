/* SPDX-License-Identifier: MIT */
/* stack.h - the stack of calls that led to an event, as a number. */
#ifndef PTT_STACK_H
#define PTT_STACK_H

#include <stdint.h>

/*
 * ptt_ring_stack - the stack that the calling thread has now, from the call of a hook on
 * @site: where that call returns to
 *
 * To be called by a handler before it takes the time, not from a function with a large frame. Async-signal-safe, takes no
 * lock, allocates nothing; may wait as ptt_ring_insert().
 * Return: PTT_STACK_NONE if none is wanted or found, or too many are known; in the latter cases it is counted. None is
 *	   wanted of a call that another thread has made.
 */
uint32_t ptt_ring_stack(void *site) __attribute__((visibility("hidden")));

#endif
