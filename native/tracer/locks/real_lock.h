/* SPDX-License-Identifier: MIT */
/* real_lock.h - the functions behind the stubs: those that the caller would have called without us. */
#ifndef PTT_REAL_LOCK_H
#define PTT_REAL_LOCK_H

#include "tracer.h"
#include "lock_table.h"

typedef long ptt_lock_fn(long a, long b, long c, long d, long e, long f);

/*
 * ptt_real_lock - the function of a number for calls from a module, which may have another version of the library than
 * others have
 * @site: of the call
 *
 * Takes the dynamic linker's lock when a module calls a function first, as binding it at once does.
 * Return: NULL if there is none, as where a program asked for one that need not be there.
 */
ptt_lock_fn *ptt_real_lock(uint32_t number, const void *site) HIDDEN;

/* ptt_lock_is_stub - is this a function that stands before one of a lock? Takes the dynamic linker's lock. */
bool ptt_lock_is_stub(const void *function) HIDDEN;

/* ptt_dlsym - the C library's dlsym(), as if called from here; see lock_by_name.c. */
void *ptt_dlsym(void *handle, const char *name) HIDDEN;

/* ptt_asked_lock - the function of a number from PTT_LOCK_ASKED on, or NULL if its library was closed. */
ptt_lock_fn *ptt_asked_lock(uint32_t number) HIDDEN;
void ptt_forget_asked_locks(void) HIDDEN; /* those of libraries that were closed */

void ptt_forget_real_locks(void) HIDDEN; /* a module was closed: another one may come to lie at its addresses */

#endif
