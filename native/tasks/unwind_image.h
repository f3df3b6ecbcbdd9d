/* SPDX-License-Identifier: MIT */
/* unwind_image.h - looks up code in the unwind table of a file, to unwind stacks of other processes. */
#ifndef PTT_UNWIND_IMAGE_H
#define PTT_UNWIND_IMAGE_H

#include <stdint.h>

/* The processor that defines the register numbers of a table. */
enum ptt_unwind_processor {
	PTT_UNWIND_X86_64,
	PTT_UNWIND_AARCH64,
};

/* Number of registers with a place, for every processor. */
#define PTT_UNWIND_REGISTERS 32
/* In place of an offset: the register is not saved, or its place is unknown. */
#define PTT_UNWIND_SAME INT32_MIN
#define PTT_UNWIND_LOST INT32_MAX

/* The places of a caller's registers: the canonical frame address (CFA) is a register of the frame plus an offset. */
struct ptt_unwind_callers {
	uint64_t function; /* begin of the code that the row is for */
	int64_t cfa_offset;
	uint32_t cfa_register;
	uint32_t is_signal; /* the kernel made the frame for a signal handler, and all registers lie in it */
	int32_t saved[PTT_UNWIND_REGISTERS]; /* the word with a register, from the CFA on */
};

/*
 * ptt_unwind_image_callers - look up the places of the caller's registers in a table
 * @image: a copy of .eh_frame_hdr and .eh_frame, as far from each other as in the module; any content is safe
 * @size: bytes of the copy
 * @address: address of the copy in the module
 * @header: offset of .eh_frame_hdr in the copy; @size or more: there is no header
 * @frames: offset of .eh_frame in the copy; without a sorted header, the function searches all entries
 * @processor: enum ptt_unwind_processor
 * @pc: address of the code in the module; addresses in @callers also count from the module
 * Return: 1 if the table has the places of the registers, otherwise 0.
 */
__attribute__((visibility("default"))) int32_t
ptt_unwind_image_callers(const char *image, uint64_t size, uint64_t address, uint64_t header, uint64_t frames, int32_t processor,
			 uint64_t pc, struct ptt_unwind_callers *callers);

#endif
