/* SPDX-License-Identifier: MIT */
/* lock_hook.h - hooks of functions that take or release locks, with a known number of arguments. */
/*
 * These functions are called most. So each has its own hook for the usual call, and the compiler knows the function's
 * description. Unusual calls go to ptt_lock_call(), as the calls of all other functions do. stubs.c, which is
 * generated, has the table `functions` before the hooks.
 */
#ifndef PTT_LOCK_HOOK_H
#define PTT_LOCK_HOOK_H

#include "lock_state.h"
#include "real_lock.h"

/* The arguments of a call in integer registers. */
struct ptt_lock_arguments {
	long at[6];
};

/*
 * ptt_lock_call - call a lock function of another library, and report the call
 * @number: of the function
 * @site: the return address of the call
 *
 * A program that tests for a library by a weak reference finds the stub. Without the library, the call does nothing.
 * Return: the result of the real function; 0 if there is none.
 */
long ptt_lock_call(struct ptt_lock_arguments *with, uint32_t number, void *site) HIDDEN;

/*
 * A lock function that another lock function calls is a part of the outer call, and is not traced. For a call from a
 * signal handler that interrupted a lock function, see ptt_lock_is_plain().
 */
static inline bool ptt_lock_is_traced(const struct ptt_lock_function *function)
{
	return likely(ptt_level((enum nptl_trace_domain)function->domain)) && likely(!ptt_in_lock);
}

static inline __attribute__((always_inline)) bool ptt_lock_is_plain(const struct ptt_lock_used *lock)
{
	return likely(!ptt_lock_of_call) && likely(ptt_lock_type_is_told(lock));
}

static inline __attribute__((always_inline)) void ptt_lock_taken(const struct ptt_lock_used *lock)
{
	ptt_lock_of_call = PTT_LOCK_WORD(lock->object, PTT_OTHER_PRIVATE);
	if (ptt_lock_is_rwlock(lock))
		ptt_report_lock_taken(lock);
	else if (likely(ptt_level(NPTL_DOMAIN_MUTEX) >= NPTL_LEVEL_MUTEX_TAKEN))
		EMIT(MUTEX, MUTEX_TAKEN, lock->object, lock->site);
	ptt_lock_of_call = 0;
}

static inline __attribute__((always_inline)) void ptt_lock_free(const struct ptt_lock_used *lock)
{
	ptt_lock_of_call = PTT_LOCK_WORD(lock->object, PTT_OTHER_PRIVATE);
	if (ptt_lock_is_rwlock(lock))
		ptt_report_lock_free(lock);
	else if (likely(ptt_level(NPTL_DOMAIN_MUTEX) >= NPTL_LEVEL_MUTEX_FREE))
		EMIT(MUTEX, MUTEX_FREE, lock->object, lock->site);
	ptt_lock_of_call = 0;
}

#define PTT_BARE(...) __VA_ARGS__

/* @number: of the function; @params, @arguments: in parentheses; @of: the argument with the object */
#define PTT_LOCK_HOOK(number, name, params, arguments, of, ...)                                                     \
	EXPORT long ptt_lock_hook_##number params __asm__(#name);                                                   \
	EXPORT long ptt_lock_hook_##number params                                                                   \
	{                                                                                                           \
		typedef long real_fn params;                                                                        \
		const struct ptt_lock_function *function = &functions[number];                             \
		struct ptt_lock_used lock = {                                                                       \
			.function = function,                                                                       \
			.object = (const void *)(of),                                                               \
			.site = CALL_SITE,                                                                          \
			.shared = ptt_lock_is_for_reading(function),                                                \
		};                                                                                                  \
		real_fn *real;                                                                                      \
		__VA_ARGS__                                                                                         \
		return ptt_lock_call(&(struct ptt_lock_arguments){.at = {PTT_BARE arguments}}, number, lock.site);  \
	}

#define PTT_LOCK_KNOWN(number) ((real_fn *)(void (*)(void))ptt_lock_known(number, lock.site))

/* Takes the lock. @tries: the function that takes the lock if it is free; @try_arguments: its arguments, of the same types */
#define LOCK_TAKES_TRYING(number, name, params, arguments, of, tries, try_params, try_arguments)                    \
	PTT_LOCK_HOOK(number, name, params, arguments, of,                                                          \
		if (ptt_lock_is_traced(function)) {                                                                 \
			long(*try_real) try_params =                                                                \
				(long(*) try_params)(void (*)(void))ptt_lock_known(tries, lock.site);               \
                                                                                                                    \
			if (likely(try_real) && ptt_lock_is_plain(&lock) &&                                         \
			    likely(ptt_lock_has_done(&functions[tries], try_real try_arguments))) {        \
				ptt_lock_taken(&lock);                                                              \
				if (ptt_lock_is_rwlock(&lock))                                                      \
					ptt_lock_note_held(&lock);                                                  \
				return 0;                                                                           \
			}                                                                                           \
		} else {                                                                                            \
			real = PTT_LOCK_KNOWN(number);                                                              \
			if (likely(real))                                                                           \
				return real arguments;                                                              \
		})

/* The same without a try function: expect a wait if another thread seems to have the lock. */
#define LOCK_TAKES(number, name, params, arguments, of)                                                             \
	PTT_LOCK_HOOK(number, name, params, arguments, of,                                                          \
		real = PTT_LOCK_KNOWN(number);                                                                      \
		if (likely(real)) {                                                                                 \
			if (!ptt_lock_is_traced(function))                                                          \
				return real arguments;                                                              \
			if (ptt_lock_is_plain(&lock) && likely(!ptt_lock_seems_held(lock.object))) {                \
				long result;                                                                        \
                                                                                                                    \
				{                                                                                   \
					IN_LOCK;                                                                    \
					result = real arguments;                                                    \
				}                                                                                   \
				ptt_lock_taken(&lock);                                                              \
				ptt_lock_note_held(&lock);                                                          \
				return result;                                                                      \
			}                                                                                           \
		})

/*
 * Releases the lock. The event is stamped before the release, so that the next holder's time is later. @noted: the
 * lock is in ptt_lock_held
 */
#define LOCK_GIVES(number, name, params, arguments, of, noted)                                                      \
	PTT_LOCK_HOOK(number, name, params, arguments, of,                                                          \
		real = PTT_LOCK_KNOWN(number);                                                                      \
		if (likely(real)) {                                                                                 \
			if (!ptt_lock_is_traced(function))                                                          \
				return real arguments;                                                              \
			if (likely(!ptt_lock_of_call) &&                                                            \
			    (function->needs == PTT_LOCK_NONE || likely(PTT_LOCK_KNOWN(function->needs) != NULL))) { \
				IN_LOCK;                                                                            \
				ptt_lock_free(&lock);                                                               \
				if (noted)                                                                          \
					ptt_lock_note_free(lock.object);                                            \
				return real arguments;                                                              \
			}                                                                                           \
		})

#endif
