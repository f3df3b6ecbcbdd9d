/* SPDX-License-Identifier: MIT */
/* mlockall.c - mlockall(): locks the program's memory, and not the trace buffers. */
/*
 * The buffers are mapped whole, 67 MB of which little is in use. The kernel compares all that is mapped with
 * RLIMIT_MEMLOCK, so the call fails under the tracer where it succeeds without; and where there is no limit it makes all
 * buffers real. So the buffers are unlocked again. Where the call fails and the rest is within the limit, what is mapped
 * is locked piece by piece: for the future alone the kernel compares nothing.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "handler.h"
#include "platform/raw_syscall.h"
#include "tracer.h"

struct mapping {
	uintptr_t start, end;
	bool accessible;
	bool ours; /* a file of the session */
};

/* A line of /proc/self/maps: "start-end perms offset device inode   path". */
static struct mapping parse(const char *line, const char *session)
{
	struct mapping m = {0};
	const char *path = strchr(line, '/');
	char *rest;

	m.start = strtoull(line, &rest, 16);
	if (*rest != '-')
		return m;
	m.end = strtoull(rest + 1, &rest, 16);
	m.accessible = strncmp(rest, " ---", 4) != 0;
	m.ours = path && *session && strncmp(path, session, strlen(session)) == 0 && path[strlen(session)] == '/';
	return m;
}

/* Call @each for all mappings, with raw calls: this is no cancellation point. Return: false if they cannot be read. */
static bool visit_mappings(const char *session, void (*each)(const struct mapping *m, void *arg), void *arg)
{
	char text[PATH_MAX + 256], *line, *end;
	size_t used = 0;
	long n, fd = ptt_raw_syscall(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);

	if (fd < 0)
		return false;
	while ((n = ptt_raw_syscall(SYS_read, fd, (long)(text + used), (long)(sizeof(text) - 1 - used), 0, 0, 0)) > 0) {
		used += (size_t)n;
		text[used] = '\0';
		for (line = text; (end = strchr(line, '\n')); line = end + 1) {
			struct mapping m;

			*end = '\0';
			m = parse(line, session);
			each(&m, arg);
		}
		used -= (size_t)(line - text);
		memmove(text, line, used);
	}
	ptt_raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return n == 0;
}

static void add_size(const struct mapping *m, void *sum)
{
	if (!m->ours)
		*(uint64_t *)sum += m->end - m->start;
}

static void unlock_ours(const struct mapping *m, void *unused)
{
	(void)unused;
	if (m->ours)
		ptt_raw_syscall(SYS_munlock, (long)m->start, (long)(m->end - m->start), 0, 0, 0, 0);
}

/* As mlockall() does: what cannot be made real is locked all the same, and no failure. */
static void lock(const struct mapping *m, void *flags)
{
	bool on_fault = !m->accessible || *(const int *)flags & MCL_ONFAULT;

	if (!m->ours)
		ptt_raw_syscall(SYS_mlock2, (long)m->start, (long)(m->end - m->start), on_fault ? MLOCK_ONFAULT : 0, 0, 0, 0);
}

/* Is all that is mapped, but for the buffers, within what may be locked? */
static bool is_within_limit(const char *session)
{
	struct rlimit limit;
	uint64_t size = 0;

	return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && visit_mappings(session, add_size, &size) && size <= limit.rlim_cur;
}

EXPORT int mlockall(int flags)
{
	char session[PATH_MAX];
	int before = errno, result = ptt_real.mlockall(flags), error = errno;

	if (!(flags & MCL_CURRENT) || __nptl_trace_confined || !ptt_session_directory(session, sizeof(session)))
		return result;
	if (result == 0)
		visit_mappings(session, unlock_ours, NULL);
	else if (error == ENOMEM && is_within_limit(session) &&
		 (!(flags & MCL_FUTURE) || ptt_real.mlockall(flags & ~MCL_CURRENT) == 0) &&
		 visit_mappings(session, lock, &flags))
		result = 0;
	errno = result ? error : before;
	return result;
}
