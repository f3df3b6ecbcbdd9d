/* SPDX-License-Identifier: MIT */
/*
 * dump.c - the whole content of a log: its attributes and status, its event types, and each event with its data.
 *
 *     cc -o dump dump.c $(pkg-config --cflags --libs posixtrace)
 *     ./dump shop.log
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trace.h>
#include <unistd.h>

static trace_id_t log_id;

static void must(const char *what, int error)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", what, strerror(error));
		exit(EXIT_FAILURE);
	}
}

/* Prints the name, the writer and the time of the log; returns the maximum data size of an event. */
static size_t print_attributes(void)
{
	char text[TRACE_NAME_MAX + 1];
	struct timespec created;
	trace_attr_t attributes;
	size_t largest;

	must("attributes", posix_trace_attr_init(&attributes));
	must("attributes", posix_trace_get_attr(log_id, &attributes));
	must("name", posix_trace_attr_getname(&attributes, text));
	printf("log \"%s\"", text);
	must("version", posix_trace_attr_getgenversion(&attributes, text));
	must("time", posix_trace_attr_getcreatetime(&attributes, &created));
	printf(", by %s, of %s", text, ctime(&created.tv_sec));
	must("data size", posix_trace_attr_getmaxdatasize(&attributes, &largest));
	must("attributes", posix_trace_attr_destroy(&attributes));
	return largest;
}

static void print_types(void)
{
	char name[TRACE_EVENT_NAME_MAX + 1];
	trace_event_id_t type;
	int at_end;

	must("rewind", posix_trace_eventtypelist_rewind(log_id));
	for (;;) {
		must("type", posix_trace_eventtypelist_getnext_id(log_id, &type, &at_end));
		if (at_end)
			return;
		must("name", posix_trace_eventid_get_name(log_id, type, name));
		printf("type %s\n", name);
	}
}

static void print_event(const struct posix_trace_event_info *event, const unsigned char *data, size_t length)
{
	char name[TRACE_EVENT_NAME_MAX + 1];
	size_t i;

	must("name", posix_trace_eventid_get_name(log_id, event->posix_event_id, name));
	printf("%lld.%09ld process %d at %p: %s", (long long)event->posix_timestamp.tv_sec,
	       event->posix_timestamp.tv_nsec, (int)event->posix_pid, event->posix_prog_address, name);
	for (i = 0; i < length; i++)
		printf("%s%02x", i % 4 ? "" : " ", data[i]);
	if (event->posix_truncation_status != POSIX_TRACE_NOT_TRUNCATED)
		printf(" and more");
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct posix_trace_event_info event;
	size_t largest, length;
	unsigned char *data;
	int file, at_end;

	if (argc != 2) {
		fprintf(stderr, "usage: %s LOG\n", argv[0]);
		return EXIT_FAILURE;
	}
	file = open(argv[1], O_RDONLY);
	must(argv[1], posix_trace_open(file, &log_id));
	largest = print_attributes();
	print_types();
	data = malloc(largest ? largest : 1);
	for (;;) {
		must("event", posix_trace_getnext_event(log_id, &event, data, largest, &length, &at_end));
		if (at_end)
			break;
		print_event(&event, data, length);
	}
	free(data);
	must("close", posix_trace_close(log_id));
	close(file);
	return EXIT_SUCCESS;
}
