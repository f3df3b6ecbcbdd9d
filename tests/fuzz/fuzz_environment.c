/* SPDX-License-Identifier: MIT */
/* fuzz_environment.c - the tracer's parsers of its environment under libFuzzer: PTHREAD_NPTL_TRACE, levels, LD_PRELOAD. */
/*
 * The parsers are static, so this file includes their files. Stubs replace the other parts of the tracer. An input is the
 * variable, a zero byte, and the entries of the environment of a new program. A zero byte follows each entry.
 */
#include "../../native/tracer/handler/levels.c"
#include "../../native/tracer/process/environment.c"
#include "../../native/tracer/handler/event_filter.c"
/* both files define this name */
#undef TRACE
#include "../../native/tracer/handler/handler.c"
#include "../../native/tracer/common/globals.c"

struct ptt_real ptt_real;

void ptt_report_own_priority(void)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fuzz_environment: %s\n", what);
	abort();
}

static void try_variable(const char *value)
{
	char option[PATH_MAX], small[4];
	const char *fault = parse(value);
	int n;

	if (fault)
		return;
	must(strlen(handler.name) > 0, "a handler without a name");
	for (n = 0; handler.args[n]; n++)
		must(handler.args[n] >= handler.text && handler.args[n] < handler.text + sizeof(handler.text),
		     "an argument that is not in the variable");
	must(n <= ARGS_MAX, "too many arguments");
	if (ptt_tracing_option("control", option, sizeof(option)))
		must(strlen(option) < sizeof(option) && !strchr(option, ';'), "an option that goes on");
	ptt_tracing_option("children", small, sizeof(small));
	memset(ptt_control.control.level, 0, sizeof(ptt_control.control.level));
	ptt_set_levels(handler.verbosity, handler.tracing_arg);
	must(ptt_control.control.level[HIGHEST] == highest(), "a level that no domain has");
	if (ptt_tracing_option("filter", option, sizeof(option)))
		must(ptt_filter(option, ptt_ignore_event) && !passing[0], "events of no domain");
}

static void try_environment(char **env)
{
	size_t size, i, n, kept = 0;
	char **filled, *room;

	strcpy(preload, PRELOAD "/somewhere/libnptltrace.so");
	strcpy(trace, "PTHREAD_NPTL_TRACE=ring");
	ready = true;
	with_children = true;
	__nptl_trace_enabled = 1;
	size = ptt_environment_size(env, false);
	if (!size)
		return;
	room = malloc(size); /* exactly the requested size */
	filled = ptt_environment_fill(room, env);
	for (n = 0; filled[n]; n++)
		kept += starts_with(filled[n], PRELOAD) && strstr(filled[n], LIBRARY);
	for (i = 0; env[i]; i++)
		;
	must(n <= i + 2, "entries from nowhere");
	must(kept > 0, "the tracer is not preloaded");
	free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *env[64];
	size_t at, n = 0;

	memcpy(text, data, size);
	text[size] = '\0';
	try_variable(text);
	for (at = strlen(text) + 1; at < size && n < 63; at += strlen(text + at) + 1)
		env[n++] = text + at;
	env[n] = NULL;
	try_environment(env);
	free(text);
	return 0;
}
