/* SPDX-License-Identifier: MIT */
/* java_stack.c - methods of Java as frames. They are numbered and recorded like functions of Python. */
#include "java_stack.h"

#include <string.h>

__thread const struct ptt_java_wait *ptt_java_now INITIAL_EXEC;

/* The thing with a number: a method, or the class of an object. */
struct described {
	struct ptt_python_code code;
	const struct ptt_java_method *method;
};

static struct ptt_python_text text_of(const char *text)
{
	return (struct ptt_python_text){.at = text, .size = strlen(text), .width = PTT_TEXT_UTF8};
}

static bool describe_method(struct ptt_python_code *code)
{
	const struct ptt_java_method *method = ((struct described *)code)->method;

	code->minor = PTT_CODE_JAVA;
	code->file = text_of(method->file);
	code->name = text_of(method->name);
	code->lines = (struct ptt_python_text){
		.at = method->lines, .size = method->line_count * 2 * sizeof(*method->lines), .width = 1,
	};
	return true;
}

static bool describe_class(struct ptt_python_code *code)
{
	code->minor = PTT_CODE_JAVA_OBJECT;
	code->first_line = (uint32_t)ptt_java_now->object;
	code->file = text_of("");
	code->name = text_of(ptt_java_now->type);
	code->lines = text_of("");
	return true;
}

uint32_t ptt_java_stack(const struct ptt_stack_wanted *wanted)
{
	const uint32_t last = (1u << PTT_PYTHON_SHIFT) - 1;
	const struct ptt_java_wait *wait = ptt_java_now;
	uint64_t frame[PTT_JAVA_FRAMES + 1];
	uint32_t n = 0, i, number;

	frame[n++] = (uintptr_t)wait->site;
	/* an object has no frame, but its class is recorded */
	if (wait->type && wanted->python)
		wanted->python(&(struct ptt_python_code){
			.identity = UINT64_C(1) << 63 | wait->object, .describe = describe_class});
	for (i = 0; wanted->python && i < wait->count && n < wanted->room; i++) {
		uint32_t at = wait->frame[i].at < last ? wait->frame[i].at : last;
		struct described described = {
			.code = {.identity = (uintptr_t)wait->frame[i].method, .describe = describe_method},
			.method = wait->frame[i].method,
		};

		number = wanted->python(&described.code);
		if (!number)
			break;
		frame[n++] = PTT_PYTHON_PLACE | (uint64_t)number << PTT_PYTHON_SHIFT | at;
	}
	return wanted->number(frame, n, wait->whole && i == wait->count);
}
