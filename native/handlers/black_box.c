/* SPDX-License-Identifier: MIT */
/* black_box.c - reads the options of a black box, and begins it. */
#define NPTL_TRACE_IMPLEMENTATION
#include "black_box.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "nptl_trace.h"
#include "parse_size.h"
#include "platform/own_process.h"
#include "writer/writer.h"

#define ERRORS "errors="

/* Put the value of an option such as events=256 into *@value, between its limits. Return: false if the option is another. */
static bool read_option(const char *text, const char *name, uint64_t least, uint64_t most, uint64_t *value, bool *fault)
{
	size_t length = strlen(name);

	if (strncmp(text, name, length) != 0 || text[length] != '=')
		return false;
	*fault = !ptt_parse_size(text + length + 1, least, most, value);
	return true;
}

/* May this process print messages? The argument errors= is the place of ptt's standard error. */
static bool may_complain(char **args)
{
	const char *place = NULL;

	for (int i = 1; args[i]; i++)
		if (strncmp(args[i], ERRORS, strlen(ERRORS)) == 0)
			place = args[i] + strlen(ERRORS);
	return ptt_may_complain(place);
}

int ptt_box_begin(char **args)
{
	uint64_t events = PTT_BOX_EVENTS, memory = PTT_BOX_MEMORY, stacks = PTT_BOX_STACK_DEPTH;
	struct ptt_box_size size;
	uint64_t least;

	for (int i = 1; args[i]; i++) {
		bool fault = false;

		if (strncmp(args[i], ERRORS, strlen(ERRORS)) == 0)
			continue;
		if (!(read_option(args[i], "events", 1, PTT_BOX_EVENTS_MAX, &events, &fault) ||
		      read_option(args[i], "memory", PTT_BOX_MEMORY_MIN, PTT_BOX_MEMORY_MAX, &memory, &fault) ||
		      read_option(args[i], "stacks", 0, PTT_STACK_DEPTH_MAX, &stacks, &fault)) ||
		    fault) {
			if (may_complain(args))
				fprintf(stderr,
					"ptt: black box: %s is neither events=1..%u, memory=1M..1G nor stacks=0..%u; the program runs untraced\n",
					args[i], PTT_BOX_EVENTS_MAX, PTT_STACK_DEPTH_MAX);
			return -EINVAL;
		}
	}
	least = (uint64_t)PTT_BOX_CHUNKS_MIN * ptt_box_chunk_size((uint32_t)events);
	if (memory < least) {
		if (may_complain(args))
			fprintf(stderr, "ptt: black box: events=%u needs memory=%uK or more; the program runs untraced\n",
				(uint32_t)events, (uint32_t)(least >> 10));
		return -EINVAL;
	}
	size = (struct ptt_box_size){.memory = memory, .events = (uint32_t)events, .stack_depth = (uint32_t)stacks};
	return ptt_ring_begin_box(PTT_BOX_NAME, &size);
}

void ptt_box_began(char **args, int err)
{
	if (!err)
		return;
	if (err != -EINVAL && may_complain(args))
		fprintf(stderr, "ptt: black box: %s; the program runs untraced\n", strerror(-err));
	__nptl_trace_enabled = 0;
}
