/* SPDX-License-Identifier: MIT */
/* readings.c - finds the reading of the scheduler that says what one before it left out. */
#include <stddef.h>

#include "../decode.h"

/* A signal handler's reading comes in the trace before one that it interrupted, and is newer. */
static bool is_newer(const uint8_t *kept, const uint8_t *ran)
{
	return rd_u64(kept + offsetof(struct nptl_trace_sched_kept, ran_ns)) >=
	       rd_u64(ran + offsetof(struct nptl_trace_sched_ran, ran_ns));
}

uint16_t rd_reading_behind(const uint8_t *ran, const uint8_t *end)
{
	if (!rd_payload_checked(ran, end, RD_SCHED_RAN))
		return 0;
	if (end - ran > UINT16_MAX * (ptrdiff_t)PTT_SLOT_SIZE)
		end = ran + UINT16_MAX * (ptrdiff_t)PTT_SLOT_SIZE;
	for (const uint8_t *p = ran + PTT_SLOT_SIZE; p < end; p += PTT_SLOT_SIZE) {
		uint32_t id = rd_u16(p) & PTT_ID_MASK;

		if (id == RD_SCHED_KEPT)
			return rd_payload_checked(p, end, id) && is_newer(p, ran) ? (uint16_t)((p - ran) / PTT_SLOT_SIZE) : 0;
		/* another reading, or events were lost */
		if (id >> 6 == NPTL_DOMAIN_HANDLER)
			return 0;
	}
	return 0;
}
