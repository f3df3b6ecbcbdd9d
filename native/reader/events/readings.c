/* SPDX-License-Identifier: MIT */
/* readings.c - finds the reading of the scheduler that says for another one of its thread what that left out. */
#include <stddef.h>

#include "../decode.h"

/* What the clocks of a thread that has kept its processor differ by at most: they are read one after the other. */
#define KEPT_NS 1000

/* The thread has run all the time from one reading to the other. */
static bool has_kept(const struct rd_clock *clock, uint64_t begin, const uint8_t *ran, const uint8_t *whole)
{
	uint64_t took = (uint64_t)rd_time(clock, rd_slot_ticks(rd_u64(whole), begin)) -
			(uint64_t)rd_time(clock, rd_slot_ticks(rd_u64(ran), begin));
	uint64_t run = rd_u64(whole + offsetof(struct nptl_trace_sched_reading, ran_ns)) -
		       rd_u64(ran + offsetof(struct nptl_trace_sched_ran, ran_ns));

	return (int64_t)(took - run) <= KEPT_NS;
}

uint16_t rd_reading_behind(const struct rd_clock *clock, uint64_t begin, const uint8_t *ran, const uint8_t *end)
{
	if (!rd_payload_checked(ran, end, RD_SCHED_RAN))
		return 0;
	if (end - ran > UINT16_MAX * (ptrdiff_t)PTT_SLOT_SIZE)
		end = ran + UINT16_MAX * (ptrdiff_t)PTT_SLOT_SIZE;
	for (const uint8_t *p = ran + PTT_SLOT_SIZE; p < end; p += PTT_SLOT_SIZE) {
		uint32_t id = rd_u16(p) & PTT_ID_MASK;

		/* the next one looks further on by itself */
		if (id == RD_SCHED_RAN)
			return 0;
		if (id == RD_SCHED_READING)
			return rd_payload_checked(p, end, id) && has_kept(clock, begin, ran, p) ?
				       (uint16_t)((p - ran) / PTT_SLOT_SIZE) : 0;
	}
	return 0;
}
