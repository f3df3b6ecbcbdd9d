/* SPDX-License-Identifier: MIT */
/*
 * watch.c - a minimal controller: traces a process into a log until its own input ends.
 *
 *     cc -o watch watch.c $(pkg-config --cflags --libs posixtrace)
 *     ./watch $(pidof shop) shop.log
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trace.h>

/* The functions return an error number, and do not set errno. */
static void must(const char *what, int error)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", what, strerror(error));
		exit(EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	trace_attr_t attributes;
	trace_id_t stream;
	int log;

	if (argc != 3) {
		fprintf(stderr, "usage: %s PID LOG\n", argv[0]);
		return EXIT_FAILURE;
	}
	log = open(argv[2], O_WRONLY | O_CREAT, 0600);
	if (log < 0) {
		perror(argv[2]);
		return EXIT_FAILURE;
	}
	must("attributes", posix_trace_attr_init(&attributes));
	must(argv[1], posix_trace_create_withlog((pid_t)atoi(argv[1]), &attributes, log, &stream));
	posix_trace_attr_destroy(&attributes); /* the stream has a copy */
	must("start", posix_trace_start(stream));
	puts("tracing");
	fflush(stdout);
	while (getchar() != EOF)
		;
	/* Stops the stream, writes the rest of the stream to the log, and closes the log. */
	must("shutdown", posix_trace_shutdown(stream));
	return EXIT_SUCCESS;
}
