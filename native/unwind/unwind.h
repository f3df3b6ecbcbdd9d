/* SPDX-License-Identifier: MIT */
/* unwind.h - one step up the stack: the caller's registers, by the unwind table of a module (DWARF 5, chapter 6.4). */
#ifndef PTT_UNWIND_H
#define PTT_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Registers, by their DWARF numbers in the processor's ABI. PTT_REG_RA is the return address: where the caller
 * continues. In the frame itself it is the program counter.
 */
#if defined(__aarch64__)
enum {
	PTT_REG_19 = 19, /* from here to the frame pointer: preserved by calls */
	PTT_REG_BP = 29,
	PTT_REG_RA = 30, /* the link register */
	PTT_REG_SP = 31,
	PTT_REG_COUNT,
};
#else
enum {
	PTT_REG_BX = 3,
	PTT_REG_BP = 6,
	PTT_REG_SP = 7,
	PTT_REG_12 = 12,
	PTT_REG_RA = 16, /* the return address */
	PTT_REG_COUNT,
};
#endif

/* Bits of a code address in registers and memory. On aarch64 a signature (pointer authentication) may stand above them. */
#if defined(__aarch64__)
#define PTT_CODE_BITS 48
#else
#define PTT_CODE_BITS 47
#endif
#define PTT_CODE_MASK ((UINT64_C(1) << PTT_CODE_BITS) - 1)

static inline uintptr_t ptt_unsigned(uintptr_t code)
{
#if defined(__aarch64__)
	code &= PTT_CODE_MASK;
#endif
	return code;
}

/* How to compute the canonical frame address (CFA) of a frame: the value of the stack pointer before the call. */
enum ptt_cfa {
	PTT_CFA_UNKNOWN,
	PTT_CFA_SP,	    /* stack pointer + cfa_offset */
	PTT_CFA_FP,	    /* frame pointer + cfa_offset */
	PTT_CFA_FP_SAVED,   /* the word at frame pointer + cfa_offset, as in a frame that aligned the stack again */
	PTT_CFA_SIGNAL,	    /* the kernel made the frame for a signal, and saved all registers in it */
	PTT_CFA_OUTERMOST,  /* no CFA: nothing called this function */
	PTT_CFA_ROW,	    /* a rule cannot express it: see ptt_unwind_row() */
};

/* Where the caller's frame pointer is; a distance is fp_offset. */
enum ptt_fp {
	PTT_FP_SAME,	/* unchanged in the register */
	PTT_FP_BY_CFA,	/* in the word at this distance from the CFA */
	PTT_FP_BY_FP,	/* in the word at this distance from the frame pointer */
};

/*
 * How to step from a frame to the caller's frame. On x86-64 the return address lies in the word below the CFA. On
 * aarch64 it lies in the word above CFA + fp_offset. The word at CFA + fp_offset has the caller's frame pointer,
 * unless @fp is PTT_FP_SAME.
 */
struct ptt_unwind_rule {
	uintptr_t function; /* start of the code that the table entry describes */
	enum ptt_cfa cfa;
	enum ptt_fp fp;
	int32_t cfa_offset;
	int32_t fp_offset;
};

/* Where the value of a register of the caller is. */
enum ptt_how {
	PTT_PLACE_SAME,    /* unchanged in the register */
	PTT_PLACE_BY_CFA,  /* in the word at CFA + offset */
	PTT_PLACE_BY_FP,   /* in the word at frame pointer + offset */
	PTT_PLACE_IN,	     /* in the register with the number @offset */
	PTT_PLACE_UNKNOWN,
	PTT_PLACE_NOWHERE, /* the register has no value */
};

struct ptt_place {
	int32_t offset;
	uint32_t how; /* enum ptt_how */
};

/* Registers with a place, on every processor. */
#define PTT_PLACE_COUNT 32

/* A row of the table: how to find the caller's registers at an address of code. */
struct ptt_unwind_row {
	uint64_t function; /* start of the code that the table entry describes */
	int64_t cfa_offset;
	uint32_t cfa; /* enum ptt_cfa */
	uint32_t cfa_register; /* base of cfa_offset */
	struct ptt_place place[PTT_PLACE_COUNT];
};

/* DWARF numbers of the special registers of a processor. */
struct ptt_processor {
	uint8_t sp, fp, ra; /* stack pointer, frame pointer, return address */
	bool ra_is_pc; /* in an expression, @ra is the program counter */
};

extern const struct ptt_processor ptt_x86_64, ptt_aarch64;

/* The unwind table of a module, in the module's memory or in a copy of a part. */
struct ptt_unwind_table {
	const uint8_t *from, *end; /* no byte outside is read */
	const uint8_t *header; /* .eh_frame_hdr, or NULL */
	const uint8_t *frames; /* .eh_frame, searched from its start if no header has a sorted table; NULL: no search */
	uintptr_t shift; /* address in the module minus address in the copy */
	const struct ptt_processor *processor;
};

/* ptt_unwind_module - the table of a module of this process. The module lies from @from to @end and has a @header. */
static inline struct ptt_unwind_table ptt_unwind_module(const void *header, uintptr_t from, uintptr_t end)
{
#if defined(__aarch64__)
	const struct ptt_processor *here = &ptt_aarch64;
#else
	const struct ptt_processor *here = &ptt_x86_64;
#endif
	return (struct ptt_unwind_table){
		.from = (const uint8_t *)from, .end = (const uint8_t *)end, .header = header, .processor = here};
}

/*
 * ptt_unwind_row - look up the row of an address of code
 * ptt_unwind_rule - look up the rule of an address of code, by the table of a module of this process
 *
 * @pc: the address in the module, not in the copy; for a caller's frame, the return address minus 1
 * Return: false if the table has no row, or a row that this reader does not understand; then @row or @rule is
 * undefined. Both functions only read memory. They are safe in signal handlers.
 */
bool ptt_unwind_row(const struct ptt_unwind_table *table, uintptr_t pc, struct ptt_unwind_row *row);
bool ptt_unwind_rule(const struct ptt_unwind_table *table, uintptr_t pc, struct ptt_unwind_rule *rule);

#endif
