/* SPDX-License-Identifier: MIT */
/*
 * nptl-trace-lll.h - low-level locks, reported around the macros of lowlevellock.h, which an edit gave other names.
 *
 * What a lock guards is known by the file that uses it, and for streams by the macro. Words that belong to a mutex or a
 * condition are not reported here: those have points of their own.
 */
#ifndef NPTL_TRACE_LLL_H
#define NPTL_TRACE_LLL_H

#ifdef NPTL_TRACE_HERE

#include <nptl_trace_points.h>

/* All of these are constants to the compiler. */
#define NPTL_TRACE_FILE_BEGINS(text) (__builtin_strncmp(__BASE_FILE__, text, sizeof(text) - 1) == 0)
#define NPTL_TRACE_LLL_IS_TOLD (!NPTL_TRACE_FILE_BEGINS("pthread_mutex_") && !NPTL_TRACE_FILE_BEGINS("pthread_cond_"))
#define NPTL_TRACE_LLL_KIND                                                                                  \
	(NPTL_TRACE_FILE_BEGINS("malloc.c")					     ? NPTL_TRACE_LLL_MALLOC \
	 : NPTL_TRACE_FILE_BEGINS("pthread_") || NPTL_TRACE_FILE_BEGINS("nptl")      ? NPTL_TRACE_LLL_THREAD \
	 : NPTL_TRACE_FILE_BEGINS("dl-")					     ? NPTL_TRACE_LLL_LOADER \
										     : NPTL_TRACE_LLL_OTHER)

/* Defined in lowlevellock.c: the lock while it is traced. */
extern void __nptl_trace_lll_lock(int *futex, int private, int kind, const void *site)
	__attribute__((visibility("hidden"), cold));

#define NPTL_TRACE_LLL_FUNCTIONS                                                                                  \
	void __nptl_trace_lll_lock(int *futex, int private, int kind, const void *site)                           \
	{                                                                                                         \
		if (lll_trylock_untraced(*futex) == 0) {                                                          \
			nptl_trace_call(NPTL_POINT_lll_taken, futex, (unsigned long)kind, 0, site);               \
			return;                                                                                   \
		}                                                                                                 \
		nptl_trace_call(NPTL_POINT_lll_wait, futex, (unsigned long)kind, 0, site);                        \
		lll_lock_untraced(*futex, private);                                                               \
		nptl_trace_call(NPTL_POINT_lll_waited, futex, (unsigned long)kind, 0, site);                      \
	}

#define nptl_trace_lll_lock_of(kind, futex, private)                                                              \
	((void)__extension__({                                                                                    \
		int *nptl_trace_futex_ = (int *)&(futex);                                                         \
		if (NPTL_TRACE_LLL_IS_TOLD && NPTL_TRACE_WANTED(NPTL_POINT_lll_taken))                            \
			__nptl_trace_lll_lock(nptl_trace_futex_, private, kind, NPTL_TRACE_SITE);                 \
		else                                                                                              \
			lll_lock_untraced(*nptl_trace_futex_, private);                                           \
	}))

#define nptl_trace_lll_trylock_of(kind, futex)                                                                    \
	__extension__({                                                                                           \
		int *nptl_trace_futex_ = (int *)&(futex);                                                         \
		int nptl_trace_failed_ = lll_trylock_untraced(*nptl_trace_futex_);                                \
		if (NPTL_TRACE_LLL_IS_TOLD && !nptl_trace_failed_)                                                \
			nptl_trace_point(lll_tried, nptl_trace_futex_, kind, 0);                                  \
		nptl_trace_failed_;                                                                               \
	})

#define nptl_trace_lll_unlock_of(kind, futex, private)                                                            \
	((void)__extension__({                                                                                    \
		int *nptl_trace_futex_ = (int *)&(futex);                                                         \
		if (NPTL_TRACE_LLL_IS_TOLD)                                                                       \
			nptl_trace_point(lll_free, nptl_trace_futex_, kind, 0);                                   \
		lll_unlock_untraced(*nptl_trace_futex_, private);                                                 \
	}))

#define lll_lock(futex, private) nptl_trace_lll_lock_of(NPTL_TRACE_LLL_KIND, futex, private)
#define lll_trylock(futex) nptl_trace_lll_trylock_of(NPTL_TRACE_LLL_KIND, futex)
#define lll_unlock(futex, private) nptl_trace_lll_unlock_of(NPTL_TRACE_LLL_KIND, futex, private)

/* The locks of streams. */
#define nptl_trace_stdio_lock(futex, private) nptl_trace_lll_lock_of(NPTL_TRACE_LLL_STDIO, futex, private)
#define nptl_trace_stdio_trylock(futex) nptl_trace_lll_trylock_of(NPTL_TRACE_LLL_STDIO, futex)
#define nptl_trace_stdio_unlock(futex, private) nptl_trace_lll_unlock_of(NPTL_TRACE_LLL_STDIO, futex, private)

#else

#define NPTL_TRACE_LLL_FUNCTIONS
#define lll_lock(futex, private) lll_lock_untraced(futex, private)
#define lll_trylock(futex) lll_trylock_untraced(futex)
#define lll_unlock(futex, private) lll_unlock_untraced(futex, private)
#define nptl_trace_stdio_lock(futex, private) lll_lock_untraced(futex, private)
#define nptl_trace_stdio_trylock(futex) lll_trylock_untraced(futex)
#define nptl_trace_stdio_unlock(futex, private) lll_unlock_untraced(futex, private)

#endif

#endif
