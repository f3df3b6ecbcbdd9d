/* SPDX-License-Identifier: MIT */
/*
 * orders.c - a C program that adds events of its own to the trace.
 *
 *     cc -pthread -o orders orders.c
 *     ptt record -o run.ptt -- ./orders && ptt view run.ptt
 *
 * It links to nothing of the tracer. Run without one, the calls do nothing.
 */
#include <pthread.h>
#include <stdio.h>

#include <nptl_trace.h>

/* Domain and number are the program's own choice, from 0 to 127. */
enum { SHOP = 1 };
enum { ORDER_TAKEN = 1, ORDER_SHIPPED = 2 };

/* The data of an event is any piece of memory; the call copies the data before it returns. */
static void report(char event, int order)
{
	char text[32];
	struct nptl_trace_event e = {
		.source = NPTL_TRACE_SOURCE_PROGRAM,
		.domain = SHOP,
		.event = event,
		.param_size = (size_t)snprintf(text, sizeof(text), "order %d", order),
		.param = text,
	};

	nptl_trace_send_user_event(e);
}

static void *ship(void *first)
{
	for (int order = *(int *)first; order < 100; order += 2) {
		report(ORDER_TAKEN, order);
		report(ORDER_SHIPPED, order);
	}
	return NULL;
}

int main(void)
{
	int even = 0, odd = 1;
	pthread_t one, two;

	nptl_trace_say("the shop opens");
	pthread_create(&one, NULL, ship, &even);
	pthread_create(&two, NULL, ship, &odd);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	nptl_trace_say("the shop closes");
	puts("100 orders shipped");
	return 0;
}
