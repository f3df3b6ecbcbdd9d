/* SPDX-License-Identifier: MIT */
/* unwind_image.h - what the unwind table of a file says of a place in its code, for stacks that are unwound from outside. */
#ifndef PTT_UNWIND_IMAGE_H
#define PTT_UNWIND_IMAGE_H

#include <stdint.h>

/* The processor that defines the register numbers of a table. */
enum ptt_unwind_processor {
	PTT_UNWIND_X86_64,
	PTT_UNWIND_AARCH64,
};

/* So many registers have a place, whatever the processor. */
#define PTT_UNWIND_REGISTERS 32
/* In place of an offset: the register is not saved, or its place is unknown. */
#define PTT_UNWIND_SAME INT32_MIN
#define PTT_UNWIND_LOST INT32_MAX

/* Where a caller's registers are: the canonical frame address (CFA) is a register of the frame and an offset. */
struct ptt_unwind_callers {
	uint64_t function; /* where the code begins that this is of */
	int64_t cfa_offset;
	uint32_t cfa_register;
	uint32_t is_signal; /* the kernel made the frame for a signal handler, and all registers lie in it */
	int32_t saved[PTT_UNWIND_REGISTERS]; /* the word with a register, from the CFA on */
};

/*
 * ptt_unwind_image_callers - look up what a table says
 * @image: a copy of .eh_frame_hdr and .eh_frame, as far from each other as in the module; any content is safe
 * @size: bytes of the copy
 * @address: where the copy lies in the module
 * @header: where .eh_frame_hdr lies in the copy; @size or more: there is none
 * @frames: where .eh_frame lies in the copy; without a sorted header all entries are gone through
 * @processor: enum ptt_unwind_processor
 * @pc: the place, and the address of its function, as the module counts them
 * Return: 1 if the table says where the registers are, otherwise 0.
 */
__attribute__((visibility("default"))) int32_t
ptt_unwind_image_callers(const char *image, uint64_t size, uint64_t address, uint64_t header, uint64_t frames, int32_t processor,
			 uint64_t pc, struct ptt_unwind_callers *callers);

#endif
