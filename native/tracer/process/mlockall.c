/* SPDX-License-Identifier: MIT */
/* mlockall.c - mlockall(): locks the program's memory, but not the trace buffers. */
/*
 * All buffers are mapped: 67 MB, mostly unused. The kernel compares the size of all mappings with RLIMIT_MEMLOCK. So
 * with the tracer the call may fail although it succeeds without; and without a limit the call allocates all buffers.
 * So the hook unlocks the buffers again, and the handler's large tables, too. If the call fails and the rest is
 * within the limit, the hook locks the mappings one by one. For MCL_FUTURE alone the kernel compares nothing.
 */
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler.h"
#include "platform/raw_syscall.h"
#include "real_lock.h"
#include "tracer.h"

struct mapping {
	uintptr_t start, end;
	bool accessible;
	bool ours;
};

/*
 * The tracer's memory: files of the session, and the handler's anonymous memory. The handler's code and constants
 * stay locked.
 */
struct ours {
	char session[PATH_MAX];
	uintptr_t address;    /* of a function of the handler */
	uintptr_t start, end; /* of the handler, in whole pages */
};

static bool is_in(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return length && strncmp(path, directory, length) == 0 && path[length] == '/';
}

/* A line of /proc/self/maps: "start-end perms offset device inode   path". */
static struct mapping parse(const char *line, const struct ours *ours)
{
	struct mapping m = {0};
	const char *path = strchr(line, '/');
	char *rest;

	m.start = strtoull(line, &rest, 16);
	if (*rest != '-')
		return m;
	m.end = strtoull(rest + 1, &rest, 16);
	m.accessible = strncmp(rest, " ---", 4) != 0;
	m.ours = path ? is_in(path, ours->session) : m.start >= ours->start && m.end <= ours->end;
	return m;
}

/* A callback of dl_iterate_phdr(): sets the bounds if the module is the handler. */
static int find_handler(struct dl_phdr_info *module, size_t size, void *arg)
{
	uintptr_t start, end, page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct ours *ours = arg;

	(void)size;
	if (!ptt_module_range(module, ours->address, &start, &end))
		return 0;
	ours->start = start / page * page;
	ours->end = (end + page - 1) / page * page;
	return 1;
}

/* Call @each for all mappings, by raw calls: no cancellation point. Return: false if the file cannot be read. */
static bool visit_mappings(const struct ours *ours, void (*each)(const struct mapping *m, void *arg), void *arg)
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
			m = parse(line, ours);
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

/* As mlockall(): memory that cannot be allocated is locked on fault, and is no error. */
static void lock(const struct mapping *m, void *flags)
{
	bool on_fault = !m->accessible || *(const int *)flags & MCL_ONFAULT;

	if (!m->ours)
		ptt_raw_syscall(SYS_mlock2, (long)m->start, (long)(m->end - m->start), on_fault ? MLOCK_ONFAULT : 0, 0, 0, 0);
}

/* Are all mappings except the tracer's within the limit? */
static bool is_within_limit(const struct ours *ours)
{
	struct rlimit limit;
	uint64_t size = 0;

	return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && visit_mappings(ours, add_size, &size) && size <= limit.rlim_cur;
}

EXPORT int mlockall(int flags)
{
	int before = errno, result = ptt_real.mlockall(flags), error = errno;
	struct ours ours = {.address = ptt_handler_address()};

	if (!(flags & MCL_CURRENT) || __nptl_trace_confined || !ptt_session_directory(ours.session, sizeof(ours.session)))
		return result;
	dl_iterate_phdr(find_handler, &ours);
	if (result == 0)
		visit_mappings(&ours, unlock_ours, NULL);
	else if (error == ENOMEM && is_within_limit(&ours) &&
		 (!(flags & MCL_FUTURE) || ptt_real.mlockall(flags & ~MCL_CURRENT) == 0) &&
		 visit_mappings(&ours, lock, &flags))
		result = 0;
	errno = result ? error : before;
	return result;
}
