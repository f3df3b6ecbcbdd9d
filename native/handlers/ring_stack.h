/* SPDX-License-Identifier: MIT */
/* ring_stack.h - which events get their stack recorded, and the slot that it goes into. */
#ifndef PTT_RING_STACK_H
#define PTT_RING_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/ptt_abi.h"
#include "writer/contended.h"

/* When an event has its stack recorded. */
enum ptt_stack_when {
	PTT_STACK_NEVER,
	PTT_STACK_ALWAYS,
	PTT_STACK_WAITS,    /* always; it begins a wait for a lock */
	PTT_STACK_WAITED,   /* never: the event ends a wait, whose stack is the same */
	PTT_STACK_TAKES,    /* if others have waited for the lock lately */
	PTT_STACK_RELEASES, /* if somebody waits for it */
	PTT_STACK_WAKES,    /* the same, of a mutex */
};

/* ptt_stack_choose - decide by what the session wants; once it is joined. */
void ptt_stack_choose(void) __attribute__((visibility("hidden")));

/* ptt_stack_needs_look - must every event of this id, also one without fields, come to ptt_stack_slot()? */
bool ptt_stack_needs_look(uint32_t id) __attribute__((visibility("hidden")));

/* By event id: an enum ptt_stack_when. */
extern uint8_t ptt_stack_when[1024] __attribute__((visibility("hidden")));

/* ptt_stack_may_follow - false if ptt_stack_slot() would find none and has no account to keep. */
static inline bool ptt_stack_may_follow(uint32_t id, uint64_t object)
{
	uint8_t when = ptt_stack_when[id];

	return when && (when < PTT_STACK_TAKES || ptt_contended_knows(object));
}

/* ptt_stack_find - the same as ptt_stack_slot(), of an event that may have one. */
uint32_t ptt_stack_find(uint32_t id, uint64_t object, void *site, struct ptt_slot *slot)
	__attribute__((visibility("hidden"), noinline));

/*
 * ptt_stack_slot - the stack of an event that is about to be recorded
 * @site: where the hook returns to
 *
 * To be called after the object's taker was noted. Not from a function with a large frame.
 * Return: 1 if @slot is to follow the event's others, 0 if there is none.
 */
static inline uint32_t ptt_stack_slot(uint32_t id, uint64_t object, void *site, struct ptt_slot *slot)
{
	return ptt_stack_may_follow(id, object) ? ptt_stack_find(id, object, site, slot) : 0;
}

#endif
