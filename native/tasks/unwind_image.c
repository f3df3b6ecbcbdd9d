/* SPDX-License-Identifier: MIT */
/* unwind_image.c - looks up code in the unwind table of a file. */
#include "unwind_image.h"

#include <stddef.h>

#include "unwind.h"

_Static_assert(PTT_UNWIND_REGISTERS == PTT_PLACE_COUNT, "registers of a row");

int32_t ptt_unwind_image_callers(const char *image, uint64_t size, uint64_t address, uint64_t header, uint64_t frames,
				 int32_t processor, uint64_t pc, struct ptt_unwind_callers *callers)
{
	const uint8_t *from = (const uint8_t *)image;
	struct ptt_unwind_table table = {
		.from = from,
		.end = from + size,
		.header = header < size ? from + header : NULL,
		.frames = frames < size ? from + frames : NULL,
		.shift = address - (uintptr_t)from,
		.processor = processor == PTT_UNWIND_AARCH64 ? &ptt_aarch64 : &ptt_x86_64,
	};
	struct ptt_unwind_row row;

	if (!ptt_unwind_row(&table, pc, &row))
		return 0;
	*callers = (struct ptt_unwind_callers){row.function, row.cfa_offset, row.cfa_register, row.cfa == PTT_CFA_SIGNAL, {0}};
	for (int i = 0; i < PTT_UNWIND_REGISTERS; i++) {
		const struct ptt_place *place = &row.place[i];

		callers->saved[i] = place->how == PTT_PLACE_BY_CFA ? place->offset :
				    place->how == PTT_PLACE_SAME   ? PTT_UNWIND_SAME :
								     PTT_UNWIND_LOST;
	}
	return row.cfa == PTT_CFA_SIGNAL || row.cfa == PTT_CFA_SP || row.cfa == PTT_CFA_FP || row.cfa == PTT_CFA_ROW;
}
