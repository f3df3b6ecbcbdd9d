/* SPDX-License-Identifier: MIT */
/*
 * list.c - a minimal analyzer: prints the name of every event in a log.
 *
 *     cc -o list list.c $(pkg-config --cflags --libs posixtrace)
 *     ./list shop.log
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trace.h>
#include <unistd.h>

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
	struct posix_trace_event_info event;
	int file, at_end = 0;
	size_t length;
	trace_id_t log;

	if (argc != 2) {
		fprintf(stderr, "usage: %s LOG\n", argv[0]);
		return EXIT_FAILURE;
	}
	file = open(argv[1], O_RDONLY);
	must(argv[1], posix_trace_open(file, &log));
	for (;;) {
		must("event", posix_trace_getnext_event(log, &event, NULL, 0, &length, &at_end));
		if (at_end)
			break;
		must("name", posix_trace_eventid_get_name(log, event.posix_event_id, name));
		puts(name);
	}
	must("close", posix_trace_close(log));
	close(file); /* the program still owns the descriptor */
	return EXIT_SUCCESS;
}
