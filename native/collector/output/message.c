/* SPDX-License-Identifier: MIT */
/* message.c - error messages and the clocks. */
#include "../collector.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fail(struct ptt_message *message, int error, const char *format, ...)
{
	va_list list;
	size_t used;

	if (!message)
		return error;
	va_start(list, format);
	vsnprintf(message->text, sizeof(message->text), format, list);
	va_end(list);
	used = strlen(message->text);
	if (error < 0)
		snprintf(message->text + used, sizeof(message->text) - used, ": %s", strerror(-error));
	return error;
}


int ptt_collector_read_clock(uint32_t kind, struct ptt_collector_time *now)
{
	uint64_t best = UINT64_MAX;
	struct timespec real;

	if (!kind)
		kind = ptt_clock_choose();
	/* Interrupts disturbed the shortest reading least. */
	for (int i = 0; i < 16; i++) {
		uint64_t before = ptt_clock_monotonic_ns();
		uint64_t clock, after;

		clock_gettime(CLOCK_REALTIME, &real);
		clock = ptt_clock_fenced(kind);
		after = ptt_clock_monotonic_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		now->clock = clock;
		now->unix_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec;
		now->monotonic_ns = before + best / 2;
	}
	if (kind == PTT_CLOCK_MONOTONIC)
		now->monotonic_ns = now->clock; /* the same clock: no error */
	now->kind = kind;
	now->spread_ns = best < UINT32_MAX ? (uint32_t)best : UINT32_MAX;
	return 0;
}
