/* SPDX-License-Identifier: MIT */
/* spawn.c - posix_spawn() and pidfd_spawn(): the child is traced, too, and its parent reports it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "process.h"
#include "platform/raw_syscall.h"

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
			   char *const *, char *const *);

static int spawn(spawn_function *real, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attr, char *const *argv, char *const *env, void *site)
{
	struct ptt_room room = {0};
	char **traced = WITH_TRACER(&room, env, false);
	pid_t own;
	int result;

	if (!pid)
		pid = &own;
	result = real(pid, path, actions, attr, argv, traced);
	ptt_room_unmap(&room);
	if (result == 0)
		REPORT_WITH(PROCESS, PROCESS_SPAWN, process_spawn, (uintptr_t)ptt_pid, site, .child = *pid);
	return result;
}

/* The present functions, and the functions of glibc before 2.15: these run a file of unknown format by the shell. */
#define SPAWN(function, name, real)                                                                                   \
	HOOK_AS(int, function, (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,             \
				const posix_spawnattr_t *attr, char *const argv[], char *const env[]),                \
		spawn(real, pid, path, actions, attr, argv, env, CALL_SITE))

SPAWN(ptt_posix_spawn, posix_spawn, ptt_real.posix_spawn)
SPAWN(ptt_posix_spawnp, posix_spawnp, ptt_real.posix_spawnp)
VERSION_X86(ptt_posix_spawn, posix_spawn, "@@GLIBC_2.15");
VERSION_X86(ptt_posix_spawnp, posix_spawnp, "@@GLIBC_2.15");
#if defined(__x86_64__)
SPAWN(ptt_old_posix_spawn, posix_spawn, ptt_old.posix_spawn)
SPAWN(ptt_old_posix_spawnp, posix_spawnp, ptt_old.posix_spawnp)
VERSION_X86(ptt_old_posix_spawn, posix_spawn, "@" PTT_OLD_VERSION);
VERSION_X86(ptt_old_posix_spawnp, posix_spawnp, "@" PTT_OLD_VERSION);
#endif

#if __GLIBC_PREREQ(2, 39)
/* The process id of a descriptor, from /proc; 0: unknown. By raw calls: no cancellation point, keeps errno. */
static pid_t pid_of(int pidfd)
{
	static const char key[] = "\nPid:\t";
	char path[40], text[512];
	const char *line;
	long fd, n;

	if (!ptt_proc_has_our_ids())
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	fd = ptt_raw_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return 0;
	n = ptt_raw_syscall(SYS_read, fd, (long)text, sizeof(text) - 1, 0, 0, 0);
	ptt_raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, key);
	return line ? (pid_t)strtol(line + strlen(key), NULL, 10) : 0;
}

static int spawn_pidfd(spawn_function *real, int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const *argv, char *const *env, void *site)
{
	struct ptt_room room = {0};
	char **traced = WITH_TRACER(&room, env, false);
	int result = real(pidfd, path, actions, attr, argv, traced);

	ptt_room_unmap(&room);
	if (result == 0 && must_trace(PROCESS, PROCESS_SPAWN))
		EMIT_WITH(PROCESS, PROCESS_SPAWN, process_spawn, (uintptr_t)ptt_pid, site,
			  .child = pidfd ? pid_of(*pidfd) : 0);
	return result;
}

EXPORT int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	return spawn_pidfd(ptt_real.pidfd_spawn, pidfd, path, actions, attr, argv, env, CALL_SITE);
}

EXPORT int pidfd_spawnp(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	return spawn_pidfd(ptt_real.pidfd_spawnp, pidfd, path, actions, attr, argv, env, CALL_SITE);
}
#endif
