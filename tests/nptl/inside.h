/* inside.h - reports the events of a trace-enabled thread library, for tests without such a library. */
#ifndef INSIDE_H
#define INSIDE_H

#include <stddef.h>

#include "nptl_trace_points.h"

extern int __nptl_trace_detail_level __attribute__((weak));
extern void __nptl_trace_point(unsigned int point, const void *object, unsigned long a, unsigned long b,
			       const void *site) __attribute__((weak));

#define POINT_AT(least, name, object, a, b)                                                                       \
	do {                                                                                                      \
		if (&__nptl_trace_detail_level && __nptl_trace_detail_level >= (least))                           \
			__nptl_trace_point(NPTL_POINT_##name, object, (unsigned long)(a), (unsigned long)(b),     \
					   __builtin_return_address(0));                                          \
	} while (0)
#define POINT(name, object, a, b) POINT_AT(4, name, object, a, b)

#endif
