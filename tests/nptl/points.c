/* points.c - passes every trace point, with other numbers the second time than the first time. */
#include <stdio.h>

#include "inside.h"

static long object[2];

int main(void)
{
	unsigned int point;

	for (point = 1; point < NPTL_POINT_COUNT; point++)
		if (point != NPTL_POINT_pthread_start && point != NPTL_POINT_thread_dead &&
		    &__nptl_trace_detail_level && __nptl_trace_detail_level >= 4)
			__nptl_trace_point(point, object, 0x1001, 0x2002, __builtin_return_address(0));
	/* a trace point that a newer library might have */
	if (&__nptl_trace_detail_level && __nptl_trace_detail_level >= 4)
		__nptl_trace_point(NPTL_POINT_COUNT + 5, object, 1, 2, NULL);
	puts("done");
	return 0;
}
