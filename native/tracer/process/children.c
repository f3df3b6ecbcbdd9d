/* SPDX-License-Identifier: MIT */
/* children.c - functions that make a child inside the C library: forkpty(), popen(), system(), daemon(). */
/*
 * No hook sees the fork inside these functions, so some do not tell the child's process id. The kernel lists the
 * children of a thread, the newest last, if it was built to (proc(5), /proc/tid/children). 0: the id is unknown.
 */
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"
#include "platform/raw_syscall.h"

void ptt_report_fork(enum ptt_fork_kind kind, long child, void *site)
{
	REPORT_WITH(PROCESS, PROCESS_FORK, process_fork, (uintptr_t)ptt_pid, site, .kind = kind,
		    .child = (int32_t)child);
}

static void report_spawn(pid_t child, void *site)
{
	REPORT_WITH(PROCESS, PROCESS_SPAWN, process_spawn, (uintptr_t)ptt_pid, site, .child = child);
}

/* ------------------------------------------------------------ the newest child */

/* State while a list of process ids is read in pieces. */
struct children {
	pid_t number; /* the number that is being read */
	pid_t last;
	pid_t known;  /* the last one of an earlier list, or 0 */
	bool is_newer; /* the last id follows the known id, so that child is newer */
};

static void add_digit(struct children *c, char digit)
{
	if (digit >= '0' && digit <= '9') {
		c->number = c->number * 10 + (digit - '0');
	} else if (c->number) {
		c->is_newer = c->is_newer || c->last == c->known;
		c->last = c->number;
		c->number = 0;
	}
}

bool ptt_proc_has_our_ids(void)
{
	char self[16];
	long n;

	if (__nptl_trace_confined)
		return false;
	n = ptt_raw_syscall(SYS_readlinkat, AT_FDCWD, (long)"/proc/self", (long)self, sizeof(self) - 1, 0, 0);
	self[n > 0 ? n : 0] = '\0';
	return strtol(self, NULL, 10) == ptt_pid;
}

/* List the children of the calling thread, by raw calls: no cancellation point, keeps errno. */
static struct children list_children(pid_t known)
{
	struct children c = {.known = known};
	char text[512];
	long i, n, fd;

	if (!ptt_proc_has_our_ids())
		return c;
	fd = ptt_raw_syscall(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/children", O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return c;
	while ((n = ptt_raw_syscall(SYS_read, fd, (long)text, sizeof(text), 0, 0, 0)) > 0)
		for (i = 0; i < n; i++)
			add_digit(&c, text[i]);
	ptt_raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return c;
}

/* Return: the child made since @known was the last child; 0: uncertain. */
static pid_t newest_child(pid_t known)
{
	struct children c = list_children(known);

	return c.is_newer ? c.last : 0;
}

/* ------------------------------------------------------------ hooks */

EXPORT int forkpty(int *master, char *name, const struct termios *settings, const struct winsize *size)
{
	void *site = CALL_SITE;
	pid_t child = ptt_real.forkpty(master, name, settings, size);

	if (child > 0)
		ptt_report_fork(PTT_FORK, child, site);
	return child;
}

EXPORT FILE *popen(const char *command, const char *mode)
{
	void *site = CALL_SITE;
	pid_t known;
	FILE *pipe;

	if (!must_trace(PROCESS, PROCESS_SPAWN))
		return ptt_real.popen(command, mode);
	known = list_children(0).last;
	pipe = ptt_real.popen(command, mode);
	if (pipe)
		report_spawn(newest_child(known), site);
	return pipe;
}
ALIAS(_IO_popen, popen);

/* Reports before the call, which returns only after the child has ended. */
EXPORT int system(const char *command)
{
	report_spawn(0, CALL_SITE);
	return ptt_real.system(command);
}

/* A call of daemon() in progress. The parent ends inside it, right after the fork. */
static __thread struct {
	bool inside;
	pid_t known;
	void *site;
} leaving INITIAL_EXEC;

EXPORT int daemon(int stay, int keep)
{
	int result;

	leaving.inside = must_trace(PROCESS, PROCESS_FORK);
	leaving.site = CALL_SITE;
	if (leaving.inside)
		leaving.known = list_children(0).last;
	result = ptt_real.daemon(stay, keep);
	leaving.inside = false;
	return result;
}

void ptt_report_daemon(void)
{
	if (leaving.inside)
		ptt_report_fork(PTT_FORK, newest_child(leaving.known), leaving.site);
}

void ptt_leave_daemon(void)
{
	leaving.inside = false;
}
