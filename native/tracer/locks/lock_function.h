/* SPDX-License-Identifier: MIT */
/* lock_function.h - what a function of another library's lock does, as catalog/locks.toml or a user's file says it. */
/*
 * The functions of a user's file are described, by structs of this layout, in a shared object that nptltrace/recording/lock_library.py
 * writes: it is preloaded before the tracer, and its stubs jump to the tracer's entry with a number in a register.
 */
#ifndef PTT_LOCK_FUNCTION_H
#define PTT_LOCK_FUNCTION_H

#include <stdint.h>

#define PTT_LOCK_NONE 255 /* no function, or no argument */

/* Numbers of functions: of those of the catalogue, of a user's that are linked, and of a user's that dlsym() found. */
#define PTT_LOCK_GIVEN 0x100
#define PTT_LOCK_ASKED 0x200

/* Types of objects of a user's file have numbers from here on. */
#define PTT_LOCK_TYPE_GIVEN 128

enum ptt_lock_does {
	PTT_LOCK_ACQUIRE,
	PTT_LOCK_ACQUIRE_SHARED,
	PTT_LOCK_TRY,
	PTT_LOCK_TRY_SHARED,
	PTT_LOCK_RELEASE,
	PTT_LOCK_INIT,
	PTT_LOCK_DESTROY,
	PTT_LOCK_WAIT, /* of a condition: releases the mutex, waits, and takes it back; of a barrier: waits for all others */
	PTT_LOCK_WAIT_APART, /* the same, and the wait itself is seen as that of a pthread condition */
	PTT_LOCK_WAKE,
	PTT_LOCK_WAKE_ALL,
	PTT_LOCK_TEAM, /* has a function run by several threads, which meet at the end */
};

/* When a call did what its function is for: always, or as its result says. */
enum ptt_lock_result { PTT_LOCK_ALWAYS, PTT_LOCK_ZERO, PTT_LOCK_NONZERO, PTT_LOCK_TRUE, PTT_LOCK_FALSE };

struct ptt_lock_function {
	const char *name; /* NULL ends those of a user */
	const void *only; /* where all calls are about one lock, what stands for it; else NULL */
	const void *stub; /* of a user's function: where one that dlsym() found is entered */
	uint8_t does;
	uint8_t domain; /* NPTL_DOMAIN_MUTEX, _RWLOCK, _COND or _BARRIER */
	uint8_t type;	/* of its objects, from 1 */
	uint8_t object; /* argument that is the object, or of a team its function, from 0 */
	uint8_t mutex;	/* argument that is the mutex of a wait */
	uint8_t result;
	uint8_t try_with; /* number, in its table, of the function that takes the lock if it is free */
	uint8_t limit;	  /* argument of a trying function that says for how long it may wait */
	uint8_t needs;	  /* number of a function without which calls are not reported: of an older version of the library */
};

#endif
