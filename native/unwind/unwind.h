/* SPDX-License-Identifier: MIT */
/* unwind.h - one step up the stack: what the unwind table of a module says of a place in its code. */
#ifndef PTT_UNWIND_H
#define PTT_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Registers, by the numbers that the processor's ABI gives them in unwind tables. PTT_REG_RA stands for where the code of a
 * frame goes on, in its caller's frame and in the frame itself.
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

/* An address of code, as it stands in registers and in memory; there may be a signature above it on aarch64. */
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

/* Where the canonical frame address (CFA) of a frame is: where the stack pointer was before the call. */
enum ptt_cfa {
	PTT_CFA_UNKNOWN,
	PTT_CFA_SP,	    /* so far above the stack pointer */
	PTT_CFA_FP,	    /* so far above the frame pointer */
	PTT_CFA_FP_SAVED,   /* in the word so far above the frame pointer, as of a frame that was aligned anew */
	PTT_CFA_SIGNAL,	    /* the kernel made the frame, and saved all registers in it */
	PTT_CFA_OUTERMOST,  /* it has none: nothing called this function */
	PTT_CFA_ROW,	    /* a rule does not say it: see ptt_unwind_row() */
};

/* Where the caller's frame pointer is. */
enum ptt_fp {
	PTT_FP_SAME,	/* nothing was done to it */
	PTT_FP_BY_CFA,	/* in the word so far from the CFA */
	PTT_FP_BY_FP,	/* in the word so far from the frame pointer */
};

/*
 * How to come from a frame to its caller's. The return address lies in the word below the CFA; on aarch64 above the word that
 * is so far from the CFA as @fp_offset says, in which the caller's frame pointer is unless nothing was done to it.
 */
struct ptt_unwind_rule {
	uintptr_t function; /* where the code begins that the rule is of */
	enum ptt_cfa cfa;
	enum ptt_fp fp;
	int32_t cfa_offset;
	int32_t fp_offset;
};

/* Where a register of the caller's is. */
enum ptt_how {
	PTT_PLACE_SAME,    /* still in it */
	PTT_PLACE_BY_CFA,  /* in the word so far from the CFA */
	PTT_PLACE_BY_FP,   /* in the word so far from the frame pointer */
	PTT_PLACE_IN,	     /* in the register of that number */
	PTT_PLACE_UNKNOWN,
	PTT_PLACE_NOWHERE, /* it has no value */
};

struct ptt_place {
	int32_t offset;
	uint32_t how; /* enum ptt_how */
};

/* So many registers have a place, whatever the processor. */
#define PTT_PLACE_COUNT 32

/* All that a table says of a place in the code. */
struct ptt_unwind_row {
	uint64_t function; /* where the code begins that the row is of */
	int64_t cfa_offset;
	uint32_t cfa; /* enum ptt_cfa */
	uint32_t cfa_register; /* where it counts from, or where the word is that it was saved in */
	struct ptt_place place[PTT_PLACE_COUNT];
};

/* What unwind tables call the registers of a processor. */
struct ptt_processor {
	uint8_t sp, fp, ra; /* stack pointer, frame pointer, return address */
	bool ra_is_pc; /* in an expression, @ra stands for the place in the code */
};

extern const struct ptt_processor ptt_x86_64, ptt_aarch64;

/* The unwind table of a module, in its memory or in a copy of a piece of it. */
struct ptt_unwind_table {
	const uint8_t *from, *end; /* nothing outside is read */
	const uint8_t *header; /* .eh_frame_hdr; NULL: none */
	const uint8_t *frames; /* .eh_frame: all of it is gone through if no header has a sorted table; NULL: it is not */
	uintptr_t shift; /* how far addresses of the module are above those of the copy */
	const struct ptt_processor *processor;
};

/* ptt_unwind_module - the table of a module of this process, which lies from @from to @end and has a header */
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
 * ptt_unwind_row - look up what a table says of a place in the code
 * ptt_unwind_rule - look up the rule of a place, by the table of a module of this process
 *
 * Return: false if there is none; then nothing is known of what @row or @rule has. Both read memory only: they are safe in signal handlers.
 */
bool ptt_unwind_row(const struct ptt_unwind_table *table, uintptr_t pc, struct ptt_unwind_row *row);
bool ptt_unwind_rule(const struct ptt_unwind_table *table, uintptr_t pc, struct ptt_unwind_rule *rule);

#endif
