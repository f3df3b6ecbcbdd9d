/* SPDX-License-Identifier: MIT */
/* registers.c - walks up the stack with all preserved registers. */
#include "registers.h"

#include "modules.h"

#define STEPS_MAX 1024
#define WORD sizeof(uintptr_t)
#define BIT(reg) (UINT32_C(1) << (reg))
#define ALL ((uint32_t)((UINT64_C(1) << PTT_REG_COUNT) - 1))

/* PRESERVED: registers that a function does not change if its table has no place for them. */
#if defined(__aarch64__)
#define PRESERVED (BIT(PTT_REG_RA) - BIT(PTT_REG_19))

/* Into @all, as they are at a place in the calling function. */
#define BEGIN_HERE(all)                                                                            \
	do {                                                                                       \
		uintptr_t *value_ = (all)->value, here_;                                           \
		__asm__ volatile("stp x19, x20, [%1, 19 * 8]\n\tstp x21, x22, [%1, 21 * 8]\n\t"    \
				 "stp x23, x24, [%1, 23 * 8]\n\tstp x25, x26, [%1, 25 * 8]\n\t"    \
				 "stp x27, x28, [%1, 27 * 8]\n\tmov %0, sp\n\t"                   \
				 "str %0, [%1, 31 * 8]\n\tadr %0, 1f\n\t"                         \
				 "stp x29, %0, [%1, 29 * 8]\n1:"                                   \
				 : "=&r"(here_)                                                    \
				 : "r"(value_)                                                     \
				 : "memory");                                                      \
		(all)->known = PRESERVED | BIT(PTT_REG_SP) | BIT(PTT_REG_RA);                      \
	} while (0)
#else
/* rbx, rbp, r12 … r15 */
#define PRESERVED (BIT(PTT_REG_BX) | BIT(PTT_REG_BP) | UINT32_C(0xf) << PTT_REG_12)

/* Into @all, as they are at a place in the calling function. */
#define BEGIN_HERE(all)                                                                            \
	do {                                                                                       \
		uintptr_t *value_ = (all)->value, here_;                                           \
		__asm__ volatile("movq %%rbx, 3*8(%1)\n\tmovq %%rbp, 6*8(%1)\n\t"                  \
				 "movq %%rsp, 7*8(%1)\n\tmovq %%r12, 12*8(%1)\n\t"                 \
				 "movq %%r13, 13*8(%1)\n\tmovq %%r14, 14*8(%1)\n\t"                \
				 "movq %%r15, 15*8(%1)\n\tleaq 1f(%%rip), %0\n\t"                  \
				 "movq %0, 16*8(%1)\n1:"                                           \
				 : "=&r"(here_)                                                    \
				 : "r"(value_)                                                     \
				 : "memory");                                                      \
		(all)->known = PRESERVED | BIT(PTT_REG_SP) | BIT(PTT_REG_RA);                      \
	} while (0)
#endif

/* The row of the call that returns to @address. */
static bool find_row(uintptr_t address, struct ptt_unwind_row *row)
{
	struct ptt_unwind_table table;
	struct dl_find_object module;
	uintptr_t begin, end;

	if (ptt_find_object((void *)(address - 1), &module) != 0 || !module.dlfo_link_map)
		return false;
	ptt_module_extent(&module, &begin, &end);
	table = ptt_unwind_module(module.dlfo_eh_frame, begin, end);
	return ptt_unwind_row(&table, address - 1, row);
}

/* The kernel saved all registers. The interrupted code is not at a return address, so the next address stands for it. */
static PTT_UNWATCHED bool leave_signal(struct ptt_registers *all, struct ptt_reach *reach)
{
#if defined(__aarch64__)
	uintptr_t from = all->value[PTT_REG_SP] + PTT_SIGNAL_REGISTERS;
	unsigned int reg;

	/* the program counter takes the place of the link register: the interrupted code continues there */
	for (reg = 0; reg < PTT_REG_COUNT; reg++)
		if (!ptt_peek(reach, from + (reg == PTT_REG_RA ? PTT_SIGNAL_PC : reg) * WORD, &all->value[reg]))
			return false;
#else
	static const uint8_t saved[PTT_REG_COUNT] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
						     REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
	uintptr_t from = all->value[PTT_REG_SP] + PTT_SIGNAL_REGISTERS;
	unsigned int reg;

	for (reg = 0; reg < PTT_REG_COUNT; reg++)
		if (!ptt_peek(reach, from + saved[reg] * WORD, &all->value[reg]))
			return false;
#endif
	all->value[PTT_REG_RA]++;
	all->known = ALL;
	return true;
}

static bool find_register(const struct ptt_registers *all, uint64_t reg, uintptr_t *value)
{
	if (reg >= PTT_REG_COUNT || !(all->known & BIT(reg)))
		return false;
	*value = all->value[reg];
	return true;
}

/* The value of a register in the caller. */
static PTT_UNWATCHED bool find_caller_register(const struct ptt_registers *all, struct ptt_reach *reach, struct ptt_place place,
					       uintptr_t cfa, unsigned int reg, uintptr_t *value)
{
	switch (place.how) {
	case PTT_PLACE_SAME:
		return PRESERVED & BIT(reg) && find_register(all, reg, value);
	case PTT_PLACE_BY_CFA:
		return ptt_peek(reach, cfa + (uintptr_t)place.offset, value);
	case PTT_PLACE_BY_FP:
		return find_register(all, PTT_REG_BP, value) && ptt_peek(reach, *value + (uintptr_t)place.offset, value);
	case PTT_PLACE_IN:
		return find_register(all, (uint64_t)place.offset, value);
	default:
		return false;
	}
}

/* Step to the caller. */
static PTT_UNWATCHED bool leave(struct ptt_registers *all, struct ptt_reach *reach)
{
	struct ptt_registers caller = {.known = 0};
	struct ptt_unwind_row row;
	unsigned int reg;
	uintptr_t cfa;

	if (!find_row(all->value[PTT_REG_RA], &row))
		return false;
	if (row.cfa == PTT_CFA_SIGNAL)
		return leave_signal(all, reach);
	if (!find_register(all, row.cfa_register, &cfa))
		return false;
	cfa += (uintptr_t)row.cfa_offset;
	if (row.cfa == PTT_CFA_FP_SAVED && !ptt_peek(reach, cfa, &cfa))
		return false;
	/* a caller's frame must lie above */
	if (cfa <= all->value[PTT_REG_SP])
		return false;
	for (reg = 0; reg < PTT_REG_COUNT; reg++)
		if (find_caller_register(all, reach, row.place[reg], cfa, reg, &caller.value[reg]))
			caller.known |= BIT(reg);
	caller.value[PTT_REG_RA] = ptt_unsigned(caller.value[PTT_REG_RA]);
	caller.value[PTT_REG_SP] = cfa;
	caller.known |= BIT(PTT_REG_SP);
	*all = caller;
	return caller.known & BIT(PTT_REG_RA);
}

PTT_UNWATCHED bool ptt_registers_leave(struct ptt_registers *all, struct ptt_reach *reach, uintptr_t pc, uintptr_t sp)
{
	int i;

	if (!all->known)
		BEGIN_HERE(all);
	for (i = 0; i < STEPS_MAX; i++) {
		bool is_wanted = all->value[PTT_REG_RA] == pc && all->value[PTT_REG_SP] == sp;

		if (!leave(all, reach))
			return false;
		if (is_wanted)
			return true;
	}
	return false;
}
