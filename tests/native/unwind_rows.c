/* SPDX-License-Identifier: MIT */
/* unwind_rows.c - prints what the tracer knows of the way up from places in a library: unwind_rows LIBRARY < offsets */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "unwind.h"

int main(int count, char **arg)
{
	struct link_map *library = count == 2 ? dlopen(arg[1], RTLD_NOW) : NULL;
	struct dl_find_object module;
	struct ptt_unwind_rule rule;
	unsigned long offset;

	if (!library)
		return 2;
	while (scanf("%lx", &offset) == 1) {
		uintptr_t at = library->l_addr + offset;

		if (_dl_find_object((void *)at, &module) || !ptt_unwind_rule(module.dlfo_eh_frame, at, &rule))
			printf("%lx none\n", offset);
		else
			printf("%lx %lx %s+%lu c-%lu\n", offset, rule.function - library->l_addr,
			       rule.by_frame_pointer ? "rbp" : "rsp", rule.cfa_offset, rule.fp_below);
	}
	return 0;
}
