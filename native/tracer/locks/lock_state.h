/* SPDX-License-Identifier: MIT */
/* lock_state.h - the state that the tracer keeps of other libraries' locks, and the meaning of their functions' results. */
/*
 * The state is in tables of words, by a hash of the lock's address. No other data depends on a word, so all accesses
 * are relaxed. If another lock with the same hash takes the word, the cost is a superfluous event, or a wrong guess.
 */
#ifndef PTT_LOCK_STATE_H
#define PTT_LOCK_STATE_H

#include "lock_events.h"
#include "layout/ptt_abi.h"
#include "platform/upcalls.h"

#define PTT_LOCK_HASH(object, bits) ((uint64_t)(uintptr_t)(object) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - (bits)))

/* ------------------------------------------------------------ types */

#define PTT_TYPED_BITS 10
extern uint64_t ptt_lock_typed[1u << PTT_TYPED_BITS] HIDDEN;
extern uint64_t ptt_lock_generation HIDDEN; /* differs between a process and its parent */

static inline uint64_t *ptt_lock_typed_at(const void *object)
{
	return &ptt_lock_typed[PTT_LOCK_HASH(object, PTT_TYPED_BITS)];
}

static inline uint64_t ptt_lock_type_key(const struct ptt_lock_used *lock)
{
	return (uint64_t)(uintptr_t)lock->object ^ (uint64_t)lock->function->type << 48 ^ ptt_lock_generation;
}

/* ptt_lock_type_is_told - was the type of the lock reported, by this table? */
static inline bool ptt_lock_type_is_told(const struct ptt_lock_used *lock)
{
	return __atomic_load_n(ptt_lock_typed_at(lock->object), __ATOMIC_RELAXED) == ptt_lock_type_key(lock);
}

static inline void ptt_forget_lock_type(const void *object)
{
	__atomic_store_n(ptt_lock_typed_at(object), 0, __ATOMIC_RELAXED);
}

/* ptt_tell_lock_type - report the type of a lock, unless it was reported. A second report does no harm. */
static inline __attribute__((always_inline)) void ptt_tell_lock_type(const struct ptt_lock_used *lock)
{
	if (likely(ptt_lock_type_is_told(lock)))
		return;
	__atomic_store_n(ptt_lock_typed_at(lock->object), ptt_lock_type_key(lock), __ATOMIC_RELAXED);
	ptt_report_lock_type(lock);
}

/* ptt_report_type_once - the same, not inlined. ptt_report_type_anew - for a new object: report the type in any case. */
void ptt_report_type_once(const struct ptt_lock_used *lock) HIDDEN;
void ptt_report_type_anew(const struct ptt_lock_used *lock) HIDDEN;

/* ------------------------------------------------------------ the holder */

/*
 * The locks that seem to be held by a single thread: a word is the address of a held lock. For a mutex without a try
 * function, it tells whether to expect a wait. For a read-write lock, it tells whether the lock was taken for
 * writing. It is a guess: another lock may have taken the word, or a thread the lock.
 */
#define PTT_HELD_BITS 8
extern uint64_t ptt_lock_held[1u << PTT_HELD_BITS] HIDDEN;

static inline uint64_t *ptt_lock_held_at(const void *object)
{
	return &ptt_lock_held[PTT_LOCK_HASH(object, PTT_HELD_BITS)];
}

static inline bool ptt_lock_seems_held(const void *object)
{
	return __atomic_load_n(ptt_lock_held_at(object), __ATOMIC_RELAXED) == (uintptr_t)object;
}

static inline void ptt_lock_note_held(const struct ptt_lock_used *lock)
{
	if (!lock->shared)
		__atomic_store_n(ptt_lock_held_at(lock->object), (uintptr_t)lock->object, __ATOMIC_RELAXED);
}

static inline void ptt_lock_note_free(const void *object)
{
	if (unlikely(ptt_lock_seems_held(object)))
		__atomic_store_n(ptt_lock_held_at(object), 0, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ the call */

/*
 * The lock of the thread's present call, or the lock that its wait releases; in the low bits, an enum ptt_other_lock.
 * 0: no call.
 */
extern __thread uint64_t ptt_lock_of_call INITIAL_EXEC HIDDEN;

#define PTT_LOCK_WORD(object, is) ((uint64_t)(uintptr_t)(object) << 2 | (is))
#define PTT_LOCK_WORD_OBJECT(word) ((word) >> 2 & PTT_OBJECT_MASK)
#define PTT_LOCK_WORD_IS(word) ((enum ptt_other_lock)((word) & 3))

/* ptt_find_other_lock - see other_lock() in platform/upcalls.h. */
enum ptt_other_lock ptt_find_other_lock(uint64_t object) HIDDEN;

/* Runs however the scope is left: by return, by cancellation or by an exception. */
static inline void ptt_leave_lock(const uint32_t *entered)
{
	ptt_in_lock = *entered;
}

/* Until the end of the scope, the thread is in a function of a lock. */
#define IN_LOCK uint32_t entered_ __attribute__((cleanup(ptt_leave_lock), unused)) = ptt_in_lock++

/* ptt_lock_has_done - did the call succeed, by its result? */
static inline bool ptt_lock_has_done(const struct ptt_lock_function *function, long result)
{
	switch (function->result) {
	case PTT_LOCK_ZERO:
		return (int)result == 0;
	case PTT_LOCK_NONZERO:
		return (int)result != 0;
	/* a bool is one byte; the bits above it are undefined */
	case PTT_LOCK_TRUE:
		return (bool)(char)result;
	case PTT_LOCK_FALSE:
		return !(bool)(char)result;
	}
	return true;
}

static inline bool ptt_lock_is_for_reading(const struct ptt_lock_function *function)
{
	return function->does == PTT_LOCK_ACQUIRE_SHARED || function->does == PTT_LOCK_TRY_SHARED;
}

#endif
