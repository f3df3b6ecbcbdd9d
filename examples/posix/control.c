/* SPDX-License-Identifier: MIT */
/*
 * control.c - more abilities of a controller: attributes, a pause, a filter that changes, the status of the stream.
 *
 *     cc -o control control.c $(pkg-config --cflags --libs posixtrace)
 *     ./control $(pidof shop) shop.log
 *
 * Commands on standard input: stop, start, quiet (no more shipments), all, flush, status; the end shuts down.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trace.h>

static trace_id_t stream;

static void must(const char *what, int error)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", what, strerror(error));
		exit(EXIT_FAILURE);
	}
}

static void create(pid_t pid, const char *path)
{
	trace_attr_t attributes;
	size_t size;
	int log = open(path, O_WRONLY | O_CREAT, 0600);

	must("attributes", posix_trace_attr_init(&attributes));
	must("name", posix_trace_attr_setname(&attributes, "orders"));
	must("data size", posix_trace_attr_setmaxdatasize(&attributes, 64));
	/* Room for a thousand events of that size: even on a slow disk, no event of a thousand is lost. */
	must("event size", posix_trace_attr_getmaxusereventsize(&attributes, 64, &size));
	must("stream size", posix_trace_attr_setstreamsize(&attributes, 1000 * size));
	must("log policy", posix_trace_attr_setlogfullpolicy(&attributes, POSIX_TRACE_APPEND));
	must(path, posix_trace_create_withlog(pid, &attributes, log, &stream));
	/* You can also fill an attributes object with the attributes of a stream. */
	must("attributes", posix_trace_get_attr(stream, &attributes));
	must("stream size", posix_trace_attr_getstreamsize(&attributes, &size));
	printf("a stream of %s\n", size >= 64000 ? "64000 bytes or more" : "too few bytes");
	must("attributes", posix_trace_attr_destroy(&attributes));
}

static void filter_shipments(int how)
{
	trace_event_set_t set;
	trace_event_id_t shipped;

	must("empty", posix_trace_eventset_empty(&set));
	/* You may open the name before or after the program opens it: the event type is the same. */
	must("open", posix_trace_trid_eventid_open(stream, "order shipped", &shipped));
	must("add", posix_trace_eventset_add(shipped, &set));
	must("filter", posix_trace_set_filter(stream, &set, how));
}

static void print_status(void)
{
	struct posix_trace_status_info status;

	must("status", posix_trace_get_status(stream, &status));
	printf("%s, %s, %s\n", status.posix_stream_status == POSIX_TRACE_RUNNING ? "running" : "suspended",
	       status.posix_stream_full_status == POSIX_TRACE_FULL ? "full" : "not full",
	       status.posix_stream_overrun_status == POSIX_TRACE_OVERRUN ? "events were lost" : "no event was lost");
}

static void obey(const char *command)
{
	if (strcmp(command, "stop") == 0)
		must(command, posix_trace_stop(stream));
	else if (strcmp(command, "start") == 0)
		must(command, posix_trace_start(stream));
	else if (strcmp(command, "quiet") == 0)
		filter_shipments(POSIX_TRACE_ADD_EVENTSET);
	else if (strcmp(command, "all") == 0)
		filter_shipments(POSIX_TRACE_SUB_EVENTSET);
	else if (strcmp(command, "flush") == 0)
		must(command, posix_trace_flush(stream));
	else if (strcmp(command, "status") == 0)
		print_status();
	else
		fprintf(stderr, "%s: no such command\n", command);
	printf("%s: done\n", command);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char command[32];

	if (argc != 3) {
		fprintf(stderr, "usage: %s PID LOG\n", argv[0]);
		return EXIT_FAILURE;
	}
	create((pid_t)atoi(argv[1]), argv[2]);
	must("start", posix_trace_start(stream));
	puts("tracing");
	fflush(stdout);
	while (scanf("%31s", command) == 1)
		obey(command);
	must("stop", posix_trace_stop(stream));
	must("shutdown", posix_trace_shutdown(stream));
	return EXIT_SUCCESS;
}
