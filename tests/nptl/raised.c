/* raised.c - prints its pid, waits until the level is 4, and then passes a trace point. */
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "inside.h"

static int object;

int main(void)
{
	time_t end = time(NULL) + 60;

	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (__nptl_trace_detail_level < 4 && time(NULL) < end)
		sched_yield();
	POINT(mutex_entry, &object, 0, 0);
	return 0;
}
