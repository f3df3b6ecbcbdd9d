/* SPDX-License-Identifier: MIT */
/* fuzz_symbols.c - the tracer's reader of a module's file under libFuzzer: section headers, symbols, their names. */
/* The functions are static, so this file includes their files. An input is the file of a module. */
#include <stdio.h>
#include <stdlib.h>

#include "../../native/tracer/call_site/wrapper_names.c"
#include "../../native/tracer/call_site/wrappers.c"

void *ptt_take_memory(size_t size)
{
	return calloc(1, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fuzz_symbols: %s\n", what);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct file file = {.at = (const char *)data, .size = size};
	struct ptt_module module = {.base = 0};
	struct symbols symbols = {.base = 0};
	size_t i;

	if (!open_symbols(&file, &symbols))
		return 0;
	collect(&module, &symbols);
	for (i = 0; i < symbols.count; i++)
		if ((uint32_t)symbols.symbol[i].st_value && wrapper_of(&symbols, &symbols.symbol[i]) != PTT_NAME_OF_PROGRAM)
			must(ptt_find_wrapper(&module, symbols.symbol[i].st_value), "a wrapper that is not in the set");
	free((void *)(uintptr_t)module.wrappers);
	return 0;
}
