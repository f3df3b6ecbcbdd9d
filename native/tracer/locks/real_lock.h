/* SPDX-License-Identifier: MIT */
/* real_lock.h - the lock functions of other libraries, and the real functions behind their stubs. */
#ifndef PTT_REAL_LOCK_H
#define PTT_REAL_LOCK_H

#include <stdbool.h>

#include "lock_function.h"
#include "tracer.h"

/* ------------------------------------------------------------ descriptions: of the catalogue (lock_table.c), and of the user */

extern const struct ptt_lock_function ptt_lock_functions[] HIDDEN;
extern const uint32_t ptt_lock_count HIDDEN;

/* In the shared object of the user's functions, if there is one. */
extern const struct ptt_lock_function __nptl_trace_locks[] __attribute__((weak));

static inline const struct ptt_lock_function *ptt_lock_function(uint32_t number)
{
	if (likely(number < PTT_LOCK_GIVEN))
		return &ptt_lock_functions[number];
	return &__nptl_trace_locks[number % PTT_LOCK_GIVEN];
}

/* ptt_lock_beside - the number of the function with index @other in the table of function @number. */
static inline uint32_t ptt_lock_beside(uint32_t number, uint32_t other)
{
	return number - number % PTT_LOCK_GIVEN + other;
}

/* ------------------------------------------------------------ real functions */

typedef long ptt_lock_fn(long a, long b, long c, long d, long e, long f);

#define PTT_LOCK_CALLERS 256u

/* A module that calls lock functions. */
struct ptt_lock_caller {
	uintptr_t begin; /* PTT_LOCK_CLOSED: the module was closed, and the entry is free */
	uintptr_t size;
	/* by the place of the function (for the catalogue, its number); NULL: not looked up yet */
	ptt_lock_fn **real;
};
#define PTT_LOCK_CLOSED UINTPTR_MAX

extern struct ptt_lock_caller ptt_lock_callers[PTT_LOCK_CALLERS] HIDDEN;

/*
 * A cache from call sites to callers, by the low bits of the site: the site, and above it the index of the caller. It
 * is emptied when a module is closed.
 */
#define PTT_LOCK_SITES 1024u
#define PTT_LOCK_SITE_BITS 48
extern uint64_t ptt_lock_sites[PTT_LOCK_SITES] HIDDEN;

/*
 * ptt_lock_known - the real function for a cached call site. @number: of the catalogue.
 * Return: NULL if ptt_real_lock() has to look. Takes no lock and calls nothing.
 */
static inline ptt_lock_fn *ptt_lock_known(uint32_t number, const void *site)
{
	uint64_t at = (uint64_t)(uintptr_t)site;
	/* acquire: pairs with the release in keep_site(); the caller's array of functions exists */
	uint64_t word = __atomic_load_n(&ptt_lock_sites[at % PTT_LOCK_SITES], __ATOMIC_ACQUIRE);

	if (unlikely((word ^ at) << (64 - PTT_LOCK_SITE_BITS)))
		return NULL;
	/* relaxed: no other data depends on the address */
	return __atomic_load_n(&ptt_lock_callers[word >> PTT_LOCK_SITE_BITS].real[number], __ATOMIC_RELAXED);
}

/*
 * ptt_real_lock - the real function for a call. Modules may use different versions of a library.
 * @site: of the call; its module decides
 *
 * Takes the dynamic linker's lock at the first call of a function from a module, as lazy binding does.
 * Return: NULL if there is no such function, as behind a weak reference.
 */
ptt_lock_fn *ptt_real_lock(uint32_t number, const void *site) HIDDEN;

/* ptt_linked_module - begin of the module at an address, and its @map; NULL: no module. Takes the dynamic linker's lock. */
struct link_map;
const void *ptt_linked_module(const void *address, struct link_map **map) HIDDEN;

struct dl_phdr_info;
/*
 * ptt_module_range - first and last address of the segments of a module, from a callback of dl_iterate_phdr()
 * Return: false if @inside lies in none of the segments.
 */
bool ptt_module_range(const struct dl_phdr_info *info, uintptr_t inside, uintptr_t *begin, uintptr_t *end) HIDDEN;

/* ptt_lock_is_stub - is a function a stub of the tracer or of the user's object? Takes the dynamic linker's lock. */
bool ptt_lock_is_stub(const void *function) HIDDEN;

/* ptt_lock_found_beside - the function called @name in the module of @function, or NULL. Takes the dynamic linker's lock. */
void *ptt_lock_found_beside(const void *function, const char *name) HIDDEN;

/* ptt_dlsym - the C library's dlsym(), with the tracer as caller; see lock_by_name.c. */
void *ptt_dlsym(void *handle, const char *name) HIDDEN;

/* ptt_asked_lock - the real function of a number from PTT_LOCK_ASKED on; NULL if its library was closed. */
ptt_lock_fn *ptt_asked_lock(uint32_t number) HIDDEN;
void ptt_forget_asked_locks(void) HIDDEN; /* forget functions of closed libraries */

void ptt_forget_real_locks(void) HIDDEN; /* a module was closed: another module may be loaded at its addresses */

#endif
