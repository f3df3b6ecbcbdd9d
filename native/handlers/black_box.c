/* SPDX-License-Identifier: MIT */
/* black_box.c - reads the options of a black box, and begins it. */
#define NPTL_TRACE_IMPLEMENTATION
#include "black_box.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nptl_trace.h"
#include "writer/writer.h"

/* Put the value of an option such as events=256 into *@value, between its limits. Return: false if the option is another. */
static bool read_option(const char *text, const char *name, uint64_t least, uint64_t most, uint64_t *value, bool *fault)
{
	size_t length = strlen(name);
	unsigned long long number;
	char *end;
	int shift = 0;

	if (strncmp(text, name, length) != 0 || text[length] != '=')
		return false;
	text += length + 1;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'M' || *end == 'G')
		shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30, end++;
	*fault = errno || *text < '0' || *text > '9' || *end || number > UINT64_MAX >> shift || number << shift < least ||
		 number << shift > most;
	*value = (uint64_t)number << shift;
	return true;
}

bool ptt_box_is_wanted(char **args)
{
	return args[0] && strcmp(args[0], PTT_BOX_NAME) == 0;
}

int ptt_box_begin(char **args)
{
	uint64_t events = PTT_BOX_EVENTS, memory = PTT_BOX_MEMORY, stacks = PTT_BOX_STACK_DEPTH;
	struct ptt_box_size size;

	for (int i = 1; args[i]; i++) {
		bool fault = false;

		if (!(read_option(args[i], "events", 1, PTT_BOX_EVENTS_MAX, &events, &fault) ||
		      read_option(args[i], "memory", PTT_BOX_MEMORY_MIN, PTT_BOX_MEMORY_MAX, &memory, &fault) ||
		      read_option(args[i], "stacks", 0, PTT_STACK_DEPTH_MAX, &stacks, &fault)) ||
		    fault) {
			fprintf(stderr,
				"ptt: black box: %s is neither events=1..%u, memory=1M..1G nor stacks=0..%u; the program runs untraced\n",
				args[i], PTT_BOX_EVENTS_MAX, PTT_STACK_DEPTH_MAX);
			return -EINVAL;
		}
	}
	size = (struct ptt_box_size){.memory = memory, .events = (uint32_t)events, .stack_depth = (uint32_t)stacks};
	return ptt_ring_begin_box(PTT_BOX_NAME, &size);
}

void ptt_box_began(int err)
{
	if (!err)
		return;
	if (err != -EINVAL)
		fprintf(stderr, "ptt: black box: %s; the program runs untraced\n", strerror(-err));
	__nptl_trace_enabled = 0;
}
