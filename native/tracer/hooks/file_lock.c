/* SPDX-License-Identifier: MIT */
/* file_lock.c - file locks of flock(), lockf() and fcntl(): reports waits and releases. */
/*
 * The object of the events is an odd number made of device and inode of the file, which are the same in all
 * processes. No futex has an odd address, so readers know that the object is shared by all processes. A wait is
 * reported as a wait for a futex, because nothing says which thread holds the lock. Reports take the thread that
 * releases the lock for its holder. A lock taken without a wait is not reported.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lock_types.h"
#include "platform/raw_syscall.h"
#include "sleep.h"
#include "wait.h"

enum function { FLOCK, LOCKF, LOCKF64, FCNTL, FCNTL64 };

struct request {
	enum function function;
	int fd;
	int command;
	long arg;
};

static int call(const struct request *r)
{
	switch (r->function) {
	case FLOCK:
		return ptt_real.flock(r->fd, r->command);
	case LOCKF:
		return ptt_real.lockf(r->fd, r->command, r->arg);
	case LOCKF64:
		return ptt_real.lockf64(r->fd, r->command, r->arg);
	case FCNTL:
		return ptt_real.fcntl(r->fd, r->command, r->arg);
	default:
		return ptt_real.fcntl64(r->fd, r->command, r->arg);
	}
}

/* In a confined program the tracer makes no system calls of its own. */
static bool is_traced(void)
{
	return ptt_level(NPTL_DOMAIN_FUTEX) && !__nptl_trace_confined;
}

/* The object for the file, or NULL. */
static const void *file_of(int fd)
{
	struct stat file;
	uint64_t word;

	if (ptt_raw_syscall(SYS_fstat, fd, (long)&file, 0, 0, 0, 0) < 0)
		return NULL;
	word = (uint64_t)file.st_ino * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)file.st_dev;
	word = (word ^ word >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	return (const void *)(uintptr_t)((word >> 16 & PTT_OBJECT_MASK) | 1);
}

static int wait_for(const void *file, const struct request *request, void *site)
{
	EMIT_WITH(FUTEX, FUTEX_WAIT_IN, futex_wait_in, file, site, .op = 0, .lock = PTT_FUTEX_KIND_FILE_LOCK, .expected = 0,
		  .timeout_ns = -1);
	{
		struct ptt_wait wait WAIT_GUARD = ptt_begin_wait(NPTL_DOMAIN_FUTEX, NPTL_EV_FUTEX_WAIT_OUT, file, site);
		int result = call(request);

		wait.result = result < 0 ? errno : 0;
		return result;
	}
}

/* @trial: the command that takes the lock only if it is free */
static int take(const struct request *request, int trial, void *site)
{
	struct request trying = *request;
	int before = errno, result;
	const void *file;

	if (!is_traced())
		return call(request);
	/* as the function does first; flock() is no cancellation point */
	if (request->function != FLOCK)
		pthread_testcancel();
	trying.command = trial;
	result = call(&trying);
	if (result == 0 || (errno != EWOULDBLOCK && errno != EACCES))
		return result;
	file = file_of(request->fd);
	errno = before;
	return file ? wait_for(file, request, site) : call(request);
}

/* Reported before the release, so that the waiting thread continues later. */
static int give_back(const struct request *request, void *site)
{
	int before = errno;
	const void *file = is_traced() && must_trace(FUTEX, FUTEX_WAKE) ? file_of(request->fd) : NULL;

	if (file)
		EMIT_WITH(FUTEX, FUTEX_WAKE, futex_wake, file, site, .op = 0, .count = INT_MAX);
	errno = before;
	return call(request);
}

int ptt_flock(int fd, int operation, void *site)
{
	const struct request request = {FLOCK, fd, operation, 0};

	if (operation & LOCK_UN)
		return give_back(&request, site);
	if (operation & LOCK_NB)
		return call(&request);
	return take(&request, operation | LOCK_NB, site);
}

static int by_lockf(enum function function, int fd, int command, long length, void *site)
{
	const struct request request = {function, fd, command, length};

	if (command == F_ULOCK)
		return give_back(&request, site);
	if (command == F_LOCK)
		return take(&request, F_TLOCK, site);
	return call(&request);
}

EXPORT int lockf(int fd, int command, off_t length)
{
	return by_lockf(LOCKF, fd, command, length, CALL_SITE);
}

EXPORT int lockf64(int fd, int command, off64_t length)
{
	return by_lockf(LOCKF64, fd, command, length, CALL_SITE);
}

/* Do not read a pointer into the first page: the kernel returns EFAULT. */
static bool gives_back(int command, long arg)
{
	if (command != F_SETLK && command != F_SETLKW && command != F_OFD_SETLK && command != F_OFD_SETLKW)
		return false;
	return arg >= 4096 && ((const struct flock *)arg)->l_type == F_UNLCK;
}

static int by_fcntl(enum function function, int fd, int command, long arg, void *site)
{
	const struct request request = {function, fd, command, arg};

	if (gives_back(command, arg))
		return give_back(&request, site);
	if (command == F_SETLKW)
		return take(&request, F_SETLK, site);
	if (command == F_OFD_SETLKW)
		return take(&request, F_OFD_SETLK, site);
	return call(&request);
}

EXPORT int fcntl(int fd, int command, ...)
{
	va_list more;
	long arg;

	va_start(more, command);
	arg = va_arg(more, long);
	va_end(more);
	return by_fcntl(FCNTL, fd, command, arg, CALL_SITE);
}

EXPORT int fcntl64(int fd, int command, ...)
{
	va_list more;
	long arg;

	va_start(more, command);
	arg = va_arg(more, long);
	va_end(more);
	return by_fcntl(FCNTL64, fd, command, arg, CALL_SITE);
}
