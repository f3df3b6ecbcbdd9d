/* SPDX-License-Identifier: MIT */
/* nptl-trace-futex.h - futex waits and wakes, reported around the macros of lowlevellock-futex.h, which an edit gave other names. */
#ifndef NPTL_TRACE_FUTEX_H
#define NPTL_TRACE_FUTEX_H

#ifdef NPTL_TRACE_HERE

#include <nptl_trace_points.h>

#define lll_futex_timed_wait(word, expected, timeout, private)                                                    \
	__extension__({                                                                                           \
		__typeof__(word) nptl_trace_word_ = (word);                                                       \
		long nptl_trace_error_;                                                                           \
		nptl_trace_point(futex_wait, nptl_trace_word_, expected, private);                                \
		nptl_trace_error_ = lll_futex_timed_wait_untraced(nptl_trace_word_, expected, timeout, private);  \
		nptl_trace_point(futex_woken, nptl_trace_word_, -nptl_trace_error_, 0);                           \
		nptl_trace_error_;                                                                                \
	})

#define lll_futex_wake(word, count, private)                                                                      \
	__extension__({                                                                                           \
		__typeof__(word) nptl_trace_word_ = (word);                                                       \
		nptl_trace_point(futex_wake, nptl_trace_word_, count, private);                                   \
		lll_futex_wake_untraced(nptl_trace_word_, count, private);                                        \
	})

#else

#define lll_futex_timed_wait(word, expected, timeout, private) \
	lll_futex_timed_wait_untraced(word, expected, timeout, private)
#define lll_futex_wake(word, count, private) lll_futex_wake_untraced(word, count, private)

#endif

#endif
