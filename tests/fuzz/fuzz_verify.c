/* SPDX-License-Identifier: MIT */
/* fuzz_verify.c - native/tracker/promises under libFuzzer: there is a verdict for any events, also for impossible events. */
/*
 * Each event takes sixteen bytes: thread, type, object, time since the last event, and values of its fields. There are few
 * threads and objects, so that events affect one another.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "pttread.h"
#include "ptttrack.h"
#include "pttverify.h"

#define EVENTS 512
#define THREADS 4
#define SLOTS 64 /* bytes of fields */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t ts[EVENTS];
static uint32_t thread[EVENTS];
static uint16_t id[EVENTS];
static uint64_t object[EVENTS], site[EVENTS], payload[EVENTS];
/* All 0: no event has a stack, and no reading follows an event. */
static uint16_t cpu[EVENTS], reading[EVENTS];
static uint32_t stack[EVENTS];
static uint8_t fields[EVENTS][16 + SLOTS] __attribute__((aligned(16)));

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fuzz_verify: %s\n", what);
	abort();
}

static int64_t fill(const uint8_t *data, size_t size)
{
	static const int64_t gaps[] = { 0, 1, 300, 20000, 1000000, 20000000000 };
	int64_t n = 0, now = 0;

	for (; size >= 16 && n < EVENTS; data += 16, size -= 16, n++) {
		now += gaps[data[3] % 6];
		ts[n] = now;
		thread[n] = data[0] % THREADS;
		id[n] = ptt_event_types[(data[1] | data[2] << 8) % ptt_event_type_count].id;
		object[n] = 0x1000 + 64 * (data[4] % 3);
		site[n] = data[0];
		memset(fields[n], 0, sizeof(fields[n]));
		for (int i = 16; i < 16 + SLOTS; i++)
			fields[n][i] = i % 16 < 2 ? 0 : data[5 + (i % 11)] & (data[15] | 3);
		payload[n] = data[4] & 0x80 ? 0 : (uint64_t)(uintptr_t)fields[n];
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ptt_columns columns = {
		.ts = ts, .thread = thread, .id = id, .cpu = cpu, .object = object, .site = site, .payload = payload,
		.stack = stack, .reading = reading,
	};
	const struct ptt_verify_process known = { .alive = size % 2 ? INT64_MIN : INT64_MAX / 2 };
	struct ptt_verify *verify = ptt_verify_create();
	const struct ptt_verify_violation *rows;
	int64_t n = fill(data, size);
	uint64_t count;

	must(verify, "no memory");
	must(!ptt_verify_process(verify, 0, &known), "a process");
	for (uint32_t i = 0; i < THREADS - 1; i++) /* an unknown thread */
		must(!ptt_tracker_thread((struct tracker *)(void *)verify, i, i / 2, 100 + i), "a thread");
	must(!ptt_verify_feed(verify, &columns, n), "feeding");
	must(!ptt_verify_finish(verify, (int64_t)(size % 3)), "finishing");
	rows = ptt_verify_violations(verify, &count);
	for (uint64_t i = 0; i < count; i++) {
		must(rows[i].count && rows[i].event_count && rows[i].event_count <= PTT_VERIFY_EVENTS, "a violation");
		must(ptt_verify_rule_name(rows[i].rule) && ptt_verify_checks(verify, rows[i].rule), "an unchecked rule");
		for (uint32_t k = 0; k < rows[i].event_count; k++)
			must(rows[i].event[k].thread < THREADS - 1 && rows[i].event[k].id, "an event that is none");
	}
	ptt_verify_destroy(verify);
	return 0;
}
