/* SPDX-License-Identifier: MIT */
/* lock_state.c - the state that the tracer keeps of other libraries' locks. No function here blocks or allocates. */
#include "lock_state.h"

__thread uint32_t ptt_in_lock INITIAL_EXEC;

/* If a call is left by longjmp(), its word stays. */
__thread uint64_t ptt_lock_of_call INITIAL_EXEC;

enum ptt_other_lock ptt_find_other_lock(uint64_t object)
{
	if (PTT_IS_NUMBERED(object))
		return PTT_OTHER_UNKNOWN;
	return object == PTT_LOCK_WORD_OBJECT(ptt_lock_of_call) ? PTT_LOCK_WORD_IS(ptt_lock_of_call) : PTT_OTHER_NONE;
}

uint64_t ptt_lock_held[1u << PTT_HELD_BITS];
uint64_t ptt_lock_typed[1u << PTT_TYPED_BITS];
uint64_t ptt_lock_generation;

void ptt_forget_lock_types(void)
{
	ptt_lock_generation += UINT64_C(1) << 56;
}

void ptt_report_type_once(const struct ptt_lock_used *lock)
{
	ptt_tell_lock_type(lock);
}

void ptt_report_type_anew(const struct ptt_lock_used *lock)
{
	ptt_forget_lock_type(lock->object);
	ptt_tell_lock_type(lock);
}
