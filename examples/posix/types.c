/* SPDX-License-Identifier: MIT */
/*
 * types.c - the event types of a log, also types without an event.
 *
 *     cc -o types types.c $(pkg-config --cflags --libs posixtrace)
 *     ./types shop.log
 */
#include <fcntl.h>
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

int main(int argc, char **argv)
{
	char name[TRACE_EVENT_NAME_MAX + 1];
	trace_event_id_t type;
	trace_id_t log;
	int at_end = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s LOG\n", argv[0]);
		return EXIT_FAILURE;
	}
	must(argv[1], posix_trace_open(open(argv[1], O_RDONLY), &log));
	for (;;) {
		must("type", posix_trace_eventtypelist_getnext_id(log, &type, &at_end));
		if (at_end)
			break;
		must("name", posix_trace_eventid_get_name(log, type, name));
		puts(name);
	}
	must("close", posix_trace_close(log));
	return EXIT_SUCCESS;
}
