/* SPDX-License-Identifier: MIT */
/* unwind_rows.c - prints the tracer's unwind rules for places in a library: unwind_rows LIBRARY < offsets */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "unwind.h"

static void print_place(const char *name, const struct ptt_place *place)
{
	static const char *const from[] = {[PTT_PLACE_SAME] = "same", [PTT_PLACE_BY_CFA] = "c", [PTT_PLACE_BY_FP] = "rbp", [PTT_PLACE_IN] = "r", [PTT_PLACE_UNKNOWN] = "?", [PTT_PLACE_NOWHERE] = "u"};

	printf(" %s=%s", name, from[place->how]);
	if (place->how == PTT_PLACE_BY_CFA || place->how == PTT_PLACE_BY_FP)
		printf("%+d", place->offset);
}

/* Call-preserved registers, and the return address. */
#if defined(__aarch64__)
static const char *const name[PTT_REG_COUNT] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
						"x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "ra", "sp"};
static const int kept[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, PTT_REG_BP, PTT_REG_RA};

/* On this processor the return address is in a register when a function begins; readelf prints it as undefined. */
static int is_outermost(const struct ptt_unwind_row *row)
{
	return row->place[PTT_REG_RA].how == PTT_PLACE_NOWHERE || row->place[PTT_REG_RA].how == PTT_PLACE_UNKNOWN;
}
#else
static const char *const name[PTT_REG_COUNT] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
						"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra"};
static const int kept[] = {PTT_REG_BX, PTT_REG_BP, PTT_REG_12, PTT_REG_12 + 1, PTT_REG_12 + 2, PTT_REG_12 + 3, PTT_REG_RA};

static int is_outermost(const struct ptt_unwind_row *row)
{
	return row->place[PTT_REG_RA].how == PTT_PLACE_NOWHERE;
}
#endif

static void print_row(unsigned long offset, unsigned long function, const struct ptt_unwind_row *row)
{
	printf("%lx %lx ", offset, function);
	if (row->cfa == PTT_CFA_SIGNAL || is_outermost(row)) {
		printf("%s\n", row->cfa == PTT_CFA_SIGNAL ? "signal" : "outermost");
		return;
	}
	printf("%s%s%+ld", row->cfa == PTT_CFA_FP_SAVED ? "saved-" : "", name[row->cfa_register], (long)row->cfa_offset);
	for (unsigned int i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		print_place(name[kept[i]], &row->place[kept[i]]);
	printf("\n");
}

/* A rule is a part of its row, or says to use the row. */
static int agrees(const struct ptt_unwind_row *row, const struct ptt_unwind_rule *rule)
{
	if (rule->cfa == PTT_CFA_ROW || rule->cfa == PTT_CFA_OUTERMOST || rule->cfa == PTT_CFA_SIGNAL)
		return rule->cfa == row->cfa || rule->cfa != PTT_CFA_SIGNAL;
	return rule->cfa == row->cfa && rule->cfa_offset == row->cfa_offset &&
	       (rule->fp == PTT_FP_SAME) == (row->place[PTT_REG_BP].how == PTT_PLACE_SAME) &&
#if defined(__aarch64__)
	       rule->fp_offset + (int)sizeof(void *) == row->place[PTT_REG_RA].offset;
#else
	       rule->fp_offset == row->place[PTT_REG_BP].offset;
#endif
}

int main(int count, char **arg)
{
	struct link_map *library = count == 2 ? dlopen(arg[1], RTLD_NOW) : NULL;
	struct dl_find_object module;
	struct ptt_unwind_rule rule;
	struct ptt_unwind_table table;
	struct ptt_unwind_row row;
	unsigned long offset;

	if (!library)
		return 2;
	while (scanf("%lx", &offset) == 1) {
		uintptr_t at = library->l_addr + offset;

		if (_dl_find_object((void *)at, &module))
			return 3;
		table = ptt_unwind_module(module.dlfo_eh_frame, (uintptr_t)module.dlfo_map_start, (uintptr_t)module.dlfo_map_end);
		if (!ptt_unwind_row(&table, at, &row))
			printf("%lx none\n", offset);
		else if (!ptt_unwind_rule(&table, at, &rule) || !agrees(&row, &rule))
			printf("%lx another rule\n", offset);
		else
			print_row(offset, row.function - library->l_addr, &row);
	}
	return 0;
}
