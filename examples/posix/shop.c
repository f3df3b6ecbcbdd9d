/* SPDX-License-Identifier: MIT */
/*
 * shop.c - a program with trace points: every order is taken, then shipped.
 *
 *     cc -pthread -o shop shop.c $(pkg-config --cflags --libs posixtrace)
 *     ./shop
 *
 * It prints its process id and waits for a line on standard input before each ten orders, so that you can trace it. You
 * need not trace it: a trace point without a stream costs about as much as a test of a variable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <trace.h>
#include <unistd.h>

int main(void)
{
	trace_event_id_t taken, shipped;
	int order = 0;

	/* Once, before the first use. The names belong to the process, its libraries and all controllers that trace it. */
	if (posix_trace_eventid_open("order taken", &taken) || posix_trace_eventid_open("order shipped", &shipped))
		return EXIT_FAILURE;
	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (getchar() != EOF) {
		do {
			order++;
			posix_trace_event(taken, &order, sizeof(order));
			posix_trace_event(shipped, NULL, 0);
		} while (order % 10);
		printf("%d orders\n", order);
		fflush(stdout);
	}
	return EXIT_SUCCESS;
}
