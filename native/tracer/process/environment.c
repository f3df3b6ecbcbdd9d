/* SPDX-License-Identifier: MIT */
/* environment.c - keeps LD_PRELOAD and PTHREAD_NPTL_TRACE in the environment of programs that the process starts. */
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
 * The path of a module for LD_PRELOAD. Blanks and colons separate the entries there, so a path with these is refused.
 * A symbolic link is not resolved, because it may serve to avoid these characters.
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

/* Sets ready last: a signal handler of another thread may execute a program meanwhile. */
void ptt_start_environment(const char *variable, bool children)
{
	char path[PATH_MAX];

	if (strlen(variable) >= sizeof(trace) - sizeof(TRACE))
		return;
	strcpy(preload, PRELOAD);
	/* the user's lock functions come before the tracer, which looks for real functions behind itself */
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
	/* release: pairs with the acquire in is_traced() */
	__atomic_store_n(&ready, true, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------ the program's environment */

struct environment {
	size_t entries;
	const char *preload; /* value of LD_PRELOAD, or NULL */
	bool has_library;    /* the tracer is in it */
	bool has_trace;
};

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static struct environment examine(char *const *env)
{
	struct environment e = {0};

	for (; env && env[e.entries]; e.entries++) {
		const char *entry = env[e.entries];

		if (starts_with(entry, TRACE)) {
			e.has_trace = true;
		} else if (starts_with(entry, PRELOAD) && !e.preload) {
			e.preload = entry + strlen(PRELOAD);
			e.has_library = strstr(e.preload, LIBRARY) != NULL;
		}
	}
	return e;
}

/* ------------------------------------------------------------ the new program's environment */

/* Shall the new program be traced? */
static bool is_traced(bool own)
{
	if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE) || !__nptl_trace_enabled)
		return false;
	return with_children || (own && ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) == ptt_pid);
}

size_t ptt_environment_size(char *const *env, bool own)
{
	struct environment e;

	if (!is_traced(own))
		return 0;
	e = examine(env);
	if (e.has_library && e.has_trace)
		return 0;
	return (e.entries + 3) * sizeof(char *) + strlen(preload) + 1 + (e.preload ? strlen(e.preload) : 0) + 1;
}

char **ptt_environment_fill(void *place, char *const *env)
{
	struct environment e = examine(env);
	char **filled = place;
	char *joined;
	size_t i, n = 0;

	if (!place)
		return (char **)env;
	joined = (char *)(filled + e.entries + 3);
	for (i = 0; i < e.entries; i++)
		/* the program's value is appended to the tracer's value */
		if (e.has_library || !starts_with(env[i], PRELOAD))
			filled[n++] = env[i];
	if (!e.has_library) {
		strcpy(joined, preload);
		if (e.preload && *e.preload) {
			strcat(joined, ":");
			strcat(joined, e.preload);
		}
		filled[n++] = joined;
	}
	if (!e.has_trace)
		filled[n++] = trace;
	filled[n] = NULL;
	return filled;
}

/* ------------------------------------------------------------ memory for large environments */

/* Memory of a child of vfork() that executed a program, and so did not unmap it: its parent thread unmaps it later. */
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
