/* SPDX-License-Identifier: MIT */
/*
 * debug.c - traces a program from its first instruction: the stream exists before the program.
 *
 *     cc -o debug debug.c $(pkg-config --cflags --libs posixtrace)
 *     ./debug ./shop
 *
 * The child waits for its stream, then executes the program. The stream survives the exec. The names of event types do
 * not, and the program opens its own names. debug prints the events when the program has ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <trace.h>
#include <unistd.h>

static void must(const char *what, int error)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", what, strerror(error));
		exit(EXIT_FAILURE);
	}
}

static void become(char **command, int go)
{
	char c;

	if (read(go, &c, 1) == 1)
		execvp(command[0], command);
	perror(command[0]);
	_exit(127);
}

static void print_events(trace_id_t stream)
{
	char name[TRACE_EVENT_NAME_MAX + 1];
	struct posix_trace_event_info event;
	int none_left;
	size_t length;

	for (;;) {
		must("read", posix_trace_trygetnext_event(stream, &event, NULL, 0, &length, &none_left));
		if (none_left)
			return;
		must("name", posix_trace_eventid_get_name(stream, event.posix_event_id, name));
		printf("%s\n", name);
	}
}

int main(int argc, char **argv)
{
	trace_id_t stream;
	int go[2], status;
	pid_t pid;

	if (argc < 2 || pipe(go)) {
		fprintf(stderr, "usage: %s PROGRAM [ARG...]\n", argv[0]);
		return EXIT_FAILURE;
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		become(argv + 1, go[0]);
	}
	close(go[0]);
	must("create", posix_trace_create(pid, NULL, &stream));
	must("start", posix_trace_start(stream));
	if (write(go[1], "", 1) != 1 || waitpid(pid, &status, 0) != pid)
		return EXIT_FAILURE;
	print_events(stream);
	must("shutdown", posix_trace_shutdown(stream));
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
