/* SPDX-License-Identifier: MIT */
/*
 * about.c - the facts of a log about itself: whether events are missing, who wrote it, how large the data can be.
 *
 *     cc -o about about.c $(pkg-config --cflags --libs posixtrace)
 *     ./about shop.log
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
	struct posix_trace_status_info status;
	char version[TRACE_NAME_MAX + 1];
	trace_attr_t attributes;
	size_t largest;
	trace_id_t log;

	if (argc != 2) {
		fprintf(stderr, "usage: %s LOG\n", argv[0]);
		return EXIT_FAILURE;
	}
	must(argv[1], posix_trace_open(open(argv[1], O_RDONLY), &log));
	must("status", posix_trace_get_status(log, &status));
	puts(status.posix_stream_overrun_status == POSIX_TRACE_OVERRUN || status.posix_log_overrun_status == POSIX_TRACE_OVERRUN ?
		     "events were lost" :
		     "no event was lost");
	must("attributes", posix_trace_attr_init(&attributes));
	must("attributes", posix_trace_get_attr(log, &attributes));
	must("version", posix_trace_attr_getgenversion(&attributes, version));
	must("data size", posix_trace_attr_getmaxdatasize(&attributes, &largest));
	printf("written by %s, at most %zu bytes an event\n", version, largest);
	must("attributes", posix_trace_attr_destroy(&attributes));
	must("close", posix_trace_close(log));
	return EXIT_SUCCESS;
}
