/* SPDX-License-Identifier: MIT */
/* environment.c - keeps LD_PRELOAD and PTHREAD_NPTL_TRACE in the environment of programs that are started from here. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "real_lock.h"
#include "process.h"
#include "platform/raw_syscall.h"

#define PRELOAD "LD_PRELOAD="
#define TRACE "PTHREAD_NPTL_TRACE="
#define LIBRARY "libnptltrace.so"

static char preload[sizeof(PRELOAD) + 2 * PATH_MAX];
static char trace[sizeof(TRACE) + 4096];
static bool ready, with_children;

/*
 * Where a module is, in a form that the dynamic linker takes: blanks and colons part the entries of LD_PRELOAD. A link is not
 * resolved, for it may have been made to avoid these.
 */
static bool find_module(const void *inside, char *path)
{
	Dl_info module;

	if (!dladdr(inside, &module) || !module.dli_fname)
		return false;
	if (module.dli_fname[0] != '/') {
		if (!realpath(module.dli_fname, path))
			return false;
	} else {
		if (strlen(module.dli_fname) >= PATH_MAX)
			return false;
		strcpy(path, module.dli_fname);
	}
	return !strpbrk(path, " :");
}

/* ready comes last: a signal handler of another thread may execute a program meanwhile. */
void ptt_start_environment(const char *variable, bool children)
{
	char path[PATH_MAX];

	if (strlen(variable) >= sizeof(trace) - sizeof(TRACE))
		return;
	strcpy(preload, PRELOAD);
	/* the user's functions come before us, so that we find the real ones behind us */
	if (__nptl_trace_locks && find_module(__nptl_trace_locks, path))
		strcat(strcat(preload, path), ":");
	if (!find_module(&ptt_real, path))
		return;
	strcat(preload, path);
	strcpy(trace, TRACE);
	strcat(trace, variable);
	with_children = children;
	if (!children)
		unsetenv("PTHREAD_NPTL_TRACE");
	/* release: pairs with the acquire where the variables are read */
	__atomic_store_n(&ready, true, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------ what there is */

struct found {
	size_t entries;
	const char *preload; /* its value, or NULL */
	bool library;	     /* we are in it */
	bool trace;
};

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static struct found look(char *const *env)
{
	struct found found = {0};

	for (; env && env[found.entries]; found.entries++) {
		const char *entry = env[found.entries];

		if (starts_with(entry, TRACE)) {
			found.trace = true;
		} else if (starts_with(entry, PRELOAD) && !found.preload) {
			found.preload = entry + strlen(PRELOAD);
			found.library = strstr(found.preload, LIBRARY) != NULL;
		}
	}
	return found;
}

/* ------------------------------------------------------------ what there shall be */

/* Is the program that is started now to be traced? */
static bool wanted(bool own)
{
	if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE) || !__nptl_trace_enabled)
		return false;
	return with_children || (own && ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) == ptt_pid);
}

size_t ptt_environment_size(char *const *env, bool own)
{
	struct found found;

	if (!wanted(own))
		return 0;
	found = look(env);
	if (found.library && found.trace)
		return 0;
	return (found.entries + 3) * sizeof(char *) + strlen(preload) + 1 +
	       (found.preload ? strlen(found.preload) : 0) + 1;
}

char **ptt_environment_fill(void *place, char *const *env)
{
	struct found found = look(env);
	char **filled = place;
	char *joined;
	size_t i, n = 0;

	if (!place)
		return (char **)env;
	joined = (char *)(filled + found.entries + 3);
	for (i = 0; i < found.entries; i++)
		/* the value that is there is joined to ours */
		if (found.library || !starts_with(env[i], PRELOAD))
			filled[n++] = env[i];
	if (!found.library) {
		strcpy(joined, preload);
		if (found.preload && *found.preload) {
			strcat(joined, ":");
			strcat(joined, found.preload);
		}
		filled[n++] = joined;
	}
	if (!found.trace)
		filled[n++] = trace;
	filled[n] = NULL;
	return filled;
}

/* ------------------------------------------------------------ room for large ones */

/* Of a child of vfork, which executed a program and so never unmapped it: the thread it was of does. */
static __thread struct ptt_room left INITIAL_EXEC;

void *ptt_room_map(struct ptt_room *room, size_t size)
{
	long at;

	ptt_room_unmap(&left);
	at = ptt_raw_syscall(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at < 0 && at > -4096)
		return NULL;
	*room = (struct ptt_room){.at = (char *)at, .size = size};
	if (!__nptl_trace_confined && ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) != ptt_pid)
		left = *room;
	return room->at;
}

void ptt_room_unmap(struct ptt_room *room)
{
	if (!room->at)
		return;
	ptt_raw_syscall(SYS_munmap, (long)room->at, (long)room->size, 0, 0, 0, 0);
	if (left.at == room->at)
		left.at = NULL;
	room->at = NULL;
}
