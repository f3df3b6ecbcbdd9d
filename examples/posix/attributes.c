/* SPDX-License-Identifier: MIT */
/*
 * attributes.c - an attributes object: its defaults, and the changes for a flight recorder with a small log.
 *
 *     cc -o attributes attributes.c $(pkg-config --cflags --libs posixtrace)
 *     ./attributes
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

static void print(const trace_attr_t *attributes)
{
	char name[TRACE_NAME_MAX + 1];
	size_t data, stream, log;
	int policy;

	must("name", posix_trace_attr_getname(attributes, name));
	must("data", posix_trace_attr_getmaxdatasize(attributes, &data));
	must("stream", posix_trace_attr_getstreamsize(attributes, &stream));
	must("log", posix_trace_attr_getlogsize(attributes, &log));
	must("policy", posix_trace_attr_getlogfullpolicy(attributes, &policy));
	printf("\"%s\": data %zu, stream %zu, log %zu, which %s\n", name, data, stream, log,
	       policy == POSIX_TRACE_LOOP ? "keeps the newest events" : "keeps the oldest events or all");
}

int main(void)
{
	trace_attr_t attributes;
	struct timespec resolution;

	must("init", posix_trace_attr_init(&attributes));
	print(&attributes);
	must("clock", posix_trace_attr_getclockres(&attributes, &resolution));
	printf("time stamps are %ld ns apart or more\n", resolution.tv_nsec);

	must("name", posix_trace_attr_setname(&attributes, "my_trace"));
	must("policy", posix_trace_attr_setstreamfullpolicy(&attributes, POSIX_TRACE_LOOP));
	must("log", posix_trace_attr_setlogsize(&attributes, 100000));
	print(&attributes);
	must("destroy", posix_trace_attr_destroy(&attributes));
	return EXIT_SUCCESS;
}
