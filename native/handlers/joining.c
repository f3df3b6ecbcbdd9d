/* SPDX-License-Identifier: MIT */
/* joining.c - refuses a process that cannot join the recording of its session directory. */
#define NPTL_TRACE_IMPLEMENTATION
#include "handler.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nptl_trace.h"
#include "platform/own_process.h"
#include "writer/unjoined.h"

/* Did this process get -EACCES (@err) for @path, as another user than the owner of @path? */
static bool is_of_another_user(const char *path, int err)
{
	struct stat st;

	return err == -EACCES && stat(path, &st) == 0 && st.st_uid != geteuid();
}

/*
 * @path is not there any more. Is the directory that had it still at its place? False if that is unknown.
 * @place: device and inode of that directory in hexadecimal, with a - between them
 */
static bool is_removed(const char *path, const char *place)
{
	const char *slash = strrchr(path, '/');
	unsigned long device, inode;
	char directory[256];
	struct stat st;

	if (!slash || slash == path || (size_t)(slash - path) >= sizeof(directory) ||
	    sscanf(place, "%lx-%lx", &device, &inode) != 2)
		return false;
	memcpy(directory, path, (size_t)(slash - path));
	directory[slash - path] = '\0';
	return stat(directory, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void ptt_refuse(const char *handler, char **args, const char *what, int err)
{
	const char *place = args[0] && args[1] ? args[2] : NULL, *trace = place ? args[3] : NULL;

	if (args[0] && args[0][0])
		ptt_ring_count_unjoined(args[0], trace);
	if (ptt_may_complain(place))
		fprintf(stderr, "ptt: %s: %s%s%s; the program runs untraced\n", handler, what, err ? ": " : "",
			err ? strerror(err) : "");
	__nptl_trace_enabled = 0;
}

void ptt_joined(const char *handler, char **args, int err)
{
	/* not found: removed when the recording ended, or this process sees other directories than the recorder */
	bool over = err == -ENOENT && args[0] && args[1] && is_removed(args[0], args[1]);

	/* -EAGAIN is counted in the segment; nobody knows to whom this standard error belongs */
	if (err == -EAGAIN || err == -ESHUTDOWN || over)
		__nptl_trace_enabled = 0;
	else if (is_of_another_user(args[0], err))
		ptt_refuse(handler, args, "it runs as another user than ptt record, and may not join the recording", 0);
	else if (err == -ENOENT)
		ptt_refuse(handler, args,
			   "cannot join the recording: its buffers are not in sight, as in a container with a /dev/shm of its own", 0);
	else if (err)
		ptt_refuse(handler, args, "cannot join the recording", -err);
}
