/* SPDX-License-Identifier: MIT */
/* environment.c - keeps LD_PRELOAD and PTHREAD_NPTL_TRACE in the environment of programs that are started from here. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"
#include "raw_syscall.h"

#define PRELOAD "LD_PRELOAD="
#define TRACE "PTHREAD_NPTL_TRACE="
#define LIBRARY "libnptltrace.so"

/* Larger environments than this are left alone rather than copied to a stack that may be small. */
#define ENTRIES_MAX 16384

static char preload[sizeof(PRELOAD) + PATH_MAX];
static char trace[sizeof(TRACE) + 4096];
static bool ready, with_children;

/* ready comes last: a signal handler of another thread may execute a program meanwhile. */
void ptt_start_environment(const char *variable, bool children)
{
	char path[PATH_MAX];
	Dl_info self;

	if (!dladdr(&ptt_real, &self) || !self.dli_fname || !realpath(self.dli_fname, path))
		return;
	if (strlen(variable) >= sizeof(trace) - sizeof(TRACE))
		return;
	strcpy(preload, PRELOAD);
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
	if ((found.library && found.trace) || found.entries > ENTRIES_MAX)
		return 0;
	return (found.entries + 3) * sizeof(char *) + strlen(preload) + 1 +
	       (found.preload ? strlen(found.preload) : 0) + 1;
}

char **ptt_environment_fill(void *room, char *const *env)
{
	struct found found = look(env);
	char **filled = room;
	char *joined = (char *)(filled + found.entries + 3);
	size_t i, n = 0;

	for (i = 0; i < found.entries; i++)
		/* what is there of it is joined to ours */
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
