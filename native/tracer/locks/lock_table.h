/* SPDX-License-Identifier: MIT */
/* lock_table.h - the functions of other libraries' locks: of the catalogue, in stubs.c, and of the user. */
#ifndef PTT_LOCK_TABLE_H
#define PTT_LOCK_TABLE_H

#include <stdbool.h>

#include "lock_function.h"
#include "tracer.h"

extern const struct ptt_lock_function ptt_lock_functions[] HIDDEN;
extern const uint32_t ptt_lock_count HIDDEN;

/* In the shared object of the user's functions, where there is one. */
extern const struct ptt_lock_function __nptl_trace_locks[] __attribute__((weak));

static inline const struct ptt_lock_function *ptt_lock_function(uint32_t number)
{
	if (likely(number < PTT_LOCK_GIVEN))
		return &ptt_lock_functions[number];
	return &__nptl_trace_locks[number % PTT_LOCK_GIVEN];
}

/* ptt_lock_beside - the number of function @other of the table that function @number is of. */
static inline uint32_t ptt_lock_beside(uint32_t number, uint32_t other)
{
	return number - number % PTT_LOCK_GIVEN + other;
}

#endif
