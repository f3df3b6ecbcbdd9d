/* SPDX-License-Identifier: MIT */
/* ring_stack.h - the events that have their stack recorded, and the slot of the stack. */
#ifndef PTT_RING_STACK_H
#define PTT_RING_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/ptt_abi.h"
#include "writer/contended.h"

/* When does an event have its stack recorded? */
enum ptt_stack_when {
	PTT_STACK_NEVER,
	PTT_STACK_ALWAYS,
	PTT_STACK_WAITS,    /* always: the event begins a wait for a lock */
	PTT_STACK_WAITED,   /* never: the event ends a wait, and the beginning of the wait has the same stack */
	PTT_STACK_TAKES,    /* if others have waited for the lock lately */
	PTT_STACK_RELEASES, /* if another thread waits for the lock */
	PTT_STACK_WAKES,    /* the same for a mutex */
};

/* ptt_stack_choose - decide by the options of the session, once the process has joined it. */
void ptt_stack_choose(void) __attribute__((visibility("hidden")));

/* ptt_stack_needs_look - must every event with this id, even without fields, come to ptt_stack_slot()? */
bool ptt_stack_needs_look(uint32_t id) __attribute__((visibility("hidden")));

/* By event id: an enum ptt_stack_when. */
extern uint8_t ptt_stack_when[1024] __attribute__((visibility("hidden")));

/* ptt_stack_may_follow - false if ptt_stack_slot() would find no stack and has no state to update. */
static inline bool ptt_stack_may_follow(uint32_t id, uint64_t object)
{
	uint8_t when = ptt_stack_when[id];

	return when && (when < PTT_STACK_TAKES || ptt_contended_knows(object));
}

/* ptt_stack_find - ptt_stack_slot() for an event that may have a stack. */
uint32_t ptt_stack_find(uint32_t id, uint64_t object, void *site, struct ptt_slot *slot)
	__attribute__((visibility("hidden"), noinline));

/*
 * ptt_stack_slot - find the stack of an event that is about to be recorded
 * @site: return address of the call of the hook
 * Call it after ptt_taker_mark(), from a function with a small frame.
 * Return: 1 if @slot is to follow the other slots of the event, 0 if there is no stack.
 */
static inline uint32_t ptt_stack_slot(uint32_t id, uint64_t object, void *site, struct ptt_slot *slot)
{
	return ptt_stack_may_follow(id, object) ? ptt_stack_find(id, object, site, slot) : 0;
}

#endif
