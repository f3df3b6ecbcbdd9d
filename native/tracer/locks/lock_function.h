/* SPDX-License-Identifier: MIT */
/* lock_function.h - the description of a lock function of another library, from catalog/locks.toml or from a user's file. */
/*
 * For a user's file, nptltrace/recording/lock_library.py writes a shared object with structs of this layout. The
 * object is preloaded before the tracer. Its stubs jump to the tracer's entry with the function's number in a
 * register.
 */
#ifndef PTT_LOCK_FUNCTION_H
#define PTT_LOCK_FUNCTION_H

#include <stdint.h>

#define PTT_LOCK_NONE 255 /* no function, or no argument */

/*
 * Numbers of functions: from 0 the catalogue's, from GIVEN the user's, called by linked code, from ASKED the user's,
 * found by dlsym().
 */
#define PTT_LOCK_GIVEN 0x100
#define PTT_LOCK_ASKED 0x200

/* The first type of objects of a user's file. */
#define PTT_LOCK_TYPE_GIVEN 128

enum ptt_lock_does {
	PTT_LOCK_ACQUIRE,
	PTT_LOCK_ACQUIRE_SHARED,
	PTT_LOCK_TRY,
	PTT_LOCK_TRY_SHARED,
	PTT_LOCK_RELEASE,
	PTT_LOCK_INIT,
	PTT_LOCK_DESTROY,
	PTT_LOCK_WAIT, /* condition: releases the mutex, waits, takes the mutex again; barrier: waits for all others */
	PTT_LOCK_WAIT_APART, /* the same, with a wait for a pthread condition, which has a hook */
	PTT_LOCK_WAKE,
	PTT_LOCK_WAKE_ALL,
	PTT_LOCK_TEAM, /* has several threads run a function; they meet at its end */
};

/* When a call has succeeded: always, or for these results. */
enum ptt_lock_result { PTT_LOCK_ALWAYS, PTT_LOCK_ZERO, PTT_LOCK_NONZERO, PTT_LOCK_TRUE, PTT_LOCK_FALSE };

struct ptt_lock_function {
	const char *name; /* NULL ends a user's table */
	const void *only; /* if all calls use the same lock: an address that stands for the lock; else NULL */
	const void *stub; /* of a user's function: the stub for a function that dlsym() found */
	uint8_t does;	/* enum ptt_lock_does */
	uint8_t domain; /* NPTL_DOMAIN_MUTEX, _RWLOCK, _COND or _BARRIER */
	uint8_t type;	/* of the objects, from 1 */
	uint8_t object; /* index of the argument with the object; for a team, with the function to run */
	uint8_t mutex;	/* index of the argument with the mutex of a wait */
	uint8_t result; /* enum ptt_lock_result */
	uint8_t try_with; /* number, in the same table, of the function that takes the lock if it is free */
	uint8_t limit;	  /* index of the argument of a try function with its timeout */
	uint8_t needs;	  /* number of a function; if the library lacks it, the version is too old and calls are not reported */
};

#endif
