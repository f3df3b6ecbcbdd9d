/* SPDX-License-Identifier: MIT */
/* real_lock.h - the functions of other libraries' locks, and behind their stubs the functions that the caller would have called without us. */
#ifndef PTT_REAL_LOCK_H
#define PTT_REAL_LOCK_H

#include <stdbool.h>

#include "lock_function.h"
#include "tracer.h"

/* ------------------------------------------------------------ the functions: of the catalogue, in lock_table.c, and of the user */

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

/* ------------------------------------------------------------ the functions behind the stubs */

typedef long ptt_lock_fn(long a, long b, long c, long d, long e, long f);

#define PTT_LOCK_CALLERS 256u

/* A module that calls such functions. */
struct ptt_lock_caller {
	uintptr_t begin; /* PTT_LOCK_CLOSED: there is none any more, and the entry may be another's */
	uintptr_t size;
	/* by the place of the function, which in the catalogue is its number; NULL where the function was not asked for */
	ptt_lock_fn **real;
};
#define PTT_LOCK_CLOSED UINTPTR_MAX

extern struct ptt_lock_caller ptt_lock_callers[PTT_LOCK_CALLERS] HIDDEN;

/*
 * Which module a call comes from, by the low bits of its address: the address, and above it the place of the module among the
 * callers. A module that is closed takes its calls with it.
 */
#define PTT_LOCK_SITES 1024u
#define PTT_LOCK_SITE_BITS 48
extern uint64_t ptt_lock_sites[PTT_LOCK_SITES] HIDDEN;

/*
 * ptt_lock_known - the function of the catalogue's number for a call that was seen before
 *
 * Return: NULL where ptt_real_lock() has to look. Takes no lock and calls nothing.
 */
static inline ptt_lock_fn *ptt_lock_known(uint32_t number, const void *site)
{
	uint64_t at = (uint64_t)(uintptr_t)site;
	/* acquire: pairs with the release in real_lock.c, before which the caller's functions are there */
	uint64_t word = __atomic_load_n(&ptt_lock_sites[at % PTT_LOCK_SITES], __ATOMIC_ACQUIRE);

	if (unlikely((word ^ at) << (64 - PTT_LOCK_SITE_BITS)))
		return NULL;
	/* relaxed: the word is all there is */
	return __atomic_load_n(&ptt_lock_callers[word >> PTT_LOCK_SITE_BITS].real[number], __ATOMIC_RELAXED);
}

/*
 * ptt_real_lock - the function of a number for calls from a module, which may have another version of the library than
 * others have
 * @site: of the call
 *
 * Takes the dynamic linker's lock when a module calls a function first, as binding it at once does.
 * Return: NULL if there is none, as where a program asked for one that need not be there.
 */
ptt_lock_fn *ptt_real_lock(uint32_t number, const void *site) HIDDEN;

/* ptt_linked_module - where the module of an address begins, and its @map; NULL if there is none. Takes the dynamic linker's lock. */
struct link_map;
const void *ptt_linked_module(const void *address, struct link_map **map) HIDDEN;

/* ptt_lock_is_stub - is this a function that stands before one of a lock? Takes the dynamic linker's lock. */
bool ptt_lock_is_stub(const void *function) HIDDEN;

/* ptt_lock_found_beside - a function of the module that @function is in, or NULL. Takes the dynamic linker's lock. */
void *ptt_lock_found_beside(const void *function, const char *name) HIDDEN;

/* ptt_dlsym - the C library's dlsym(), as if called from here; see lock_by_name.c. */
void *ptt_dlsym(void *handle, const char *name) HIDDEN;

/* ptt_asked_lock - the function of a number from PTT_LOCK_ASKED on, or NULL if its library was closed. */
ptt_lock_fn *ptt_asked_lock(uint32_t number) HIDDEN;
void ptt_forget_asked_locks(void) HIDDEN; /* functions of libraries that were closed */

void ptt_forget_real_locks(void) HIDDEN; /* a module was closed: another one may come to lie at its addresses */

#endif
