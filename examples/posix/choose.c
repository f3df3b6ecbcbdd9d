/* SPDX-License-Identifier: MIT */
/*
 * choose.c - controller, traced process and analyzer in one: a filter leaves out unwanted events.
 *
 *     cc -o choose choose.c $(pkg-config --cflags --libs posixtrace)
 *     ./choose
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trace.h>

static void must(const char *what, int error)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", what, strerror(error));
		exit(EXIT_FAILURE);
	}
}

/* The stream drops the events of the types in its filter. */
static void leave_out(trace_id_t stream, const char *first, const char *second)
{
	trace_event_set_t set;
	trace_event_id_t type;

	must("empty", posix_trace_eventset_empty(&set));
	must("fill", posix_trace_eventset_fill(&set, POSIX_TRACE_WOPID_EVENTS)); /* events of no process */
	must("open", posix_trace_trid_eventid_open(stream, first, &type));
	must("add", posix_trace_eventset_add(type, &set));
	must("open", posix_trace_trid_eventid_open(stream, second, &type));
	must("add", posix_trace_eventset_add(type, &set));
	must("del", posix_trace_eventset_del(POSIX_TRACE_ERROR, &set)); /* errors are always of interest */
	must("filter", posix_trace_set_filter(stream, &set, POSIX_TRACE_SET_EVENTSET));
}

static void say(const char *name)
{
	trace_event_id_t type;

	must("open", posix_trace_eventid_open(name, &type));
	posix_trace_event(type, NULL, 0);
}

int main(void)
{
	char name[TRACE_EVENT_NAME_MAX + 1];
	struct posix_trace_event_info event;
	int none_left = 0;
	trace_id_t stream;
	size_t length;

	must("create", posix_trace_create(0, NULL, &stream)); /* 0: this process; NULL: all defaults */
	leave_out(stream, "tick", "tock");
	must("start", posix_trace_start(stream));
	say("tick");
	say("cuckoo");
	say("tock");
	for (;;) {
		must("read", posix_trace_trygetnext_event(stream, &event, NULL, 0, &length, &none_left));
		if (none_left)
			break;
		must("name", posix_trace_eventid_get_name(stream, event.posix_event_id, name));
		puts(name);
	}
	must("shutdown", posix_trace_shutdown(stream));
	return EXIT_SUCCESS;
}
