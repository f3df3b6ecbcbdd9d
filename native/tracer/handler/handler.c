/* SPDX-License-Identifier: MIT */
/* handler.c - the handler that PTHREAD_NPTL_TRACE names: its arguments, load, begin and end. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/own_process.h"
#include "platform/confined.h"
#include "handler.h"
#include "mapping/private_segment.h"
#include "writer/identity.h"
#include "platform/signals.h"
#include "platform/upcalls.h"
#include "writer/unjoined.h"

#define ARGS_MAX 63
#define FILTER_MAX 512 /* bytes of a filter with every domain and all bits */

static struct {
	char text[4096]; /* the value of the variable, cut at its separators */
	char *name;
	char *verbosity;
	char *tracing_arg;
	char *args[ARGS_MAX + 1];
	void (*init)(char **args);
	ptt_getevent_t *getevent;
	void (*fini)(void);
} handler;

static __thread volatile bool in_handler INITIAL_EXEC;

/*
 * For handlers that may call traced functions: these calls are not traced. Signals are blocked meanwhile. Events of a
 * signal handler would be lost, and a siglongjmp() from it would leave in_handler set.
 */
static void guarded_getevent(struct nptl_trace_event event)
{
	bool may_block = !ptt_is_confined();
	ptt_signal_set before;

	if (in_handler)
		return;
	if (may_block)
		ptt_block_signals(&before);
	in_handler = true;
	handler.getevent(event);
	in_handler = false;
	if (may_block)
		ptt_restore_signals(&before);
}

static void complain(const char *what, const char *detail)
{
	fprintf(stderr, "ptt: %s%s%s; the program runs untraced\n", what, detail ? ": " : "", detail ? detail : "");
}

/*
 * The arguments of ptt record's handlers tell a child whether to print the message, and where to count itself: see
 * refuse() there.
 */
static void complain_of_library(const char *reason)
{
	/* a black box has no session to count in */
	bool recorded = (strcmp(handler.name, "ring") == 0 && !ptt_box_is_wanted(handler.args)) ||
			strcmp(handler.name, "shared") == 0;
	const char *const *args = (const char *const *)handler.args;
	bool described = recorded && args[0] && args[1] && args[2];

	if (recorded && args[0] && args[0][0])
		ptt_ring_count_unjoined(args[0], described ? args[3] : NULL);
	if (ptt_may_complain(described ? args[2] : NULL))
		complain("cannot load the trace handler", reason);
}

/* Cut the next field, up to @separator, off *@rest; NULL: there is none. */
static char *next_field(char **rest, char separator)
{
	char *field = *rest, *end;

	if (!field)
		return NULL;
	end = strchr(field, separator);
	if (end)
		*end++ = '\0';
	*rest = end;
	return field;
}

/* Return: the error in the value, or NULL. */
static const char *parse(const char *value)
{
	char *rest = handler.text, *args;
	int n = 0;

	if (strlen(value) >= sizeof(handler.text))
		return "PTHREAD_NPTL_TRACE is too long";
	strcpy(handler.text, value);
	handler.name = next_field(&rest, ':');
	args = next_field(&rest, ':');
	handler.verbosity = next_field(&rest, ':');
	handler.tracing_arg = rest;
	if (args && *args)
		while (args && n < ARGS_MAX)
			handler.args[n++] = next_field(&args, ',');
	handler.args[n] = NULL;
	if (!*handler.name)
		return "PTHREAD_NPTL_TRACE names no handler";
	if (args && *args)
		return "PTHREAD_NPTL_TRACE has too many handler arguments";
	/* a level is a number without an upper limit */
	if (handler.verbosity && (handler.verbosity[strspn(handler.verbosity, "0123456789")] || strlen(handler.verbosity) >= 10))
		return "the verbosity in PTHREAD_NPTL_TRACE is not a number";
	return NULL;
}

bool ptt_path_beside_us(const char *file, char *path, size_t size)
{
	Dl_info self;
	const char *slash;
	int n;

	if (!dladdr(&__nptl_trace_enabled, &self) || !self.dli_fname)
		return false;
	slash = strrchr(self.dli_fname, '/');
	if (!slash)
		return false;
	n = snprintf(path, size, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, file);
	return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

/*
 * Open a handler from the directory beside this library, or else by the dynamic linker's search path. @file: without
 * a directory
 */
static void *open_file(const char *file)
{
	char name[NAME_MAX + 32], path[PATH_MAX];
	void *opened;

	snprintf(name, sizeof(name), "handlers/%s", file);
	opened = ptt_path_beside_us(name, path, sizeof(path)) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	return opened ? opened : dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

/* Open the handler, or put the error into @reason. Tries libNAME.so, then NAME. */
static void *open_handler(const char *name, char *reason, size_t size)
{
	char library[NAME_MAX + 8];
	bool fits = snprintf(library, sizeof(library), "lib%s.so", name) < (int)sizeof(library);
	const char *error;
	void *opened;

	if (strchr(name, '/') || !fits)
		opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	else
		opened = open_file(library);
	/* for a plain name, the first error is about the intended file */
	error = opened ? "" : dlerror();
	snprintf(reason, size, "%s", error ? error : name);
	if (opened || strchr(name, '/'))
		return opened;
	opened = open_file(name);
	if (!opened && strstr(name, ".so")) {
		error = dlerror();
		snprintf(reason, size, "%s", error ? error : name);
	}
	return opened;
}

static bool load(void)
{
	char reason[PATH_MAX];
	void *library = open_handler(handler.name, reason, sizeof(reason));
	ptt_take_upcalls_t *take_upcalls;
	ptt_getplain_t *getplain;

	if (!library) {
		complain_of_library(reason);
		return false;
	}
	*(void **)&handler.init = dlsym(library, "nptl_trace_init");
	*(void **)&handler.getevent = dlsym(library, "nptl_trace_handler_getevent");
	*(void **)&getplain = dlsym(library, "nptl_trace_handler_getplain");
	*(void **)&handler.fini = dlsym(library, "nptl_trace_fini");
	*(void **)&ptt_handler_module = dlsym(library, "nptl_trace_handler_module");
	*(void **)&take_upcalls = dlsym(library, PTT_TAKE_UPCALLS);
	if (!handler.getevent) {
		complain("the trace handler has no nptl_trace_handler_getevent", handler.name);
		ptt_real.dlclose(library);
		return false;
	}
	if (take_upcalls)
		take_upcalls(&ptt_upcalls, sizeof(ptt_upcalls));
	ptt_handler_reentrant = dlsym(library, "nptl_trace_handler_reentrant") != NULL;
	if (ptt_handler_reentrant)
		ptt_receive(handler.getevent, getplain);
	else
		ptt_receive(guarded_getevent, NULL);
	return true;
}

bool ptt_tracing_option(const char *key, char *value, size_t size)
{
	const char *at = handler.tracing_arg;
	size_t length = strlen(key);

	while (at && *at) {
		size_t item = strcspn(at, ";");

		if (item > length && at[length] == '=' && !strncmp(at, key, length) && item - length - 1 < size) {
			memcpy(value, at + length + 1, item - length - 1);
			value[item - length - 1] = '\0';
			return true;
		}
		at += item;
		at += *at == ';';
	}
	return false;
}

bool ptt_load_handler(const char *variable)
{
	const char *fault = parse(variable);
	char filter[FILTER_MAX];
	bool filtered = !fault && ptt_tracing_option("filter", filter, sizeof(filter));

	/* without its release, a lock would seem held for ever */
	if (filtered && ptt_needs_no_recorder())
		fault = "a black box has no filter";
	if (fault)
		complain(fault, variable);
	if (fault || !load())
		return false;
	if (filtered)
		ptt_receive(ptt_filter(filter, ptt_receiver.getevent), NULL);
	return true;
}

bool ptt_begin_handler(void)
{
	ptt_pid = getpid();
	__nptl_trace_enabled = 1;
	in_handler = true;
	if (handler.init)
		handler.init(handler.args);
	in_handler = false;
	return __nptl_trace_enabled;
}

/* static: a thread with a small stack may fork, or end the program. Only one thread is here at a time. */
static void share_control(void)
{
	static char directory[PATH_MAX];

	if (ptt_tracing_option("control", directory, sizeof(directory)))
		ptt_map_control(directory);
}

bool ptt_session_directory(char *path, size_t size)
{
	return __nptl_trace_enabled && ptt_tracing_option("control", path, size);
}

bool ptt_needs_no_recorder(void)
{
	return strcmp(handler.name, "ring") == 0 && ptt_box_is_wanted(handler.args);
}

uintptr_t ptt_handler_address(void)
{
	return (uintptr_t)handler.getevent;
}

bool ptt_traces_children(void)
{
	char children[4];

	return !ptt_tracing_option("children", children, sizeof(children)) || children[0] != '0';
}

void ptt_begin_levels(void)
{
	ptt_set_levels(handler.verbosity, handler.tracing_arg);
	share_control();
}

void ptt_begin_levels_attached(void)
{
	ptt_set_levels(handler.verbosity, handler.tracing_arg);
}

static struct ptt_receiver suspended;

void ptt_suspend(void)
{
	suspended = ptt_receiver;
	__nptl_trace_enabled = 0;
	ptt_receive(ptt_ignore_event, NULL);
	ptt_suspend_levels();
}

void ptt_resume(void)
{
	ptt_receive(suspended.getevent, suspended.getplain);
	__nptl_trace_enabled = 1;
	ptt_resume_levels();
}

bool ptt_restart_handler(void)
{
	if (!__nptl_trace_enabled)
		return false;
	if (!ptt_leave_control()) {
		__nptl_trace_enabled = 0;
		ptt_receive(ptt_ignore_event, NULL);
		return false;
	}
	/* a confined child could neither report itself nor write files */
	if (__nptl_trace_confined || !ptt_traces_children()) {
		__nptl_trace_enabled = 0;
		return false;
	}
	if (!ptt_begin_handler())
		return false;
	ptt_inherit_levels();
	share_control();
	return true;
}

void ptt_end_handler(void)
{
	/* the handler stays loaded: other threads may be inside */
	in_handler = true;
	if (handler.fini)
		handler.fini();
	in_handler = false;
}
