/* SPDX-License-Identifier: MIT */
/* walk.c - reads a trace through libpttread: walk merge|count STREAM… prints the number of events. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pttread.h"

#define BATCH 4096

static int64_t merge(struct ptt_reader *reader)
{
	static int64_t ts[BATCH];
	static uint32_t thread[BATCH];
	static uint16_t id[BATCH], cpu[BATCH];
	static uint64_t object[BATCH], site[BATCH];
	struct ptt_columns columns = {
		.ts = ts, .thread = thread, .id = id, .cpu = cpu, .object = object, .site = site,
	};
	struct ptt_cursor *cursor = ptt_cursor_create(reader);
	int64_t n, all = 0;

	while ((n = ptt_cursor_read(cursor, &columns, BATCH)) > 0)
		all += n;
	ptt_cursor_destroy(cursor);
	return all;
}

static int64_t count(struct ptt_reader *reader)
{
	static struct ptt_thread_count counts[4096];
	struct ptt_counter *counter = ptt_counter_create(reader, 1, 0);
	int64_t n = ptt_counter_threads(counter, counts, 4096), all = 0;

	for (int64_t i = 0; i < n; i++)
		all += (int64_t)counts[i].events;
	ptt_counter_destroy(counter);
	return all;
}

int main(int argc, char **argv)
{
	struct ptt_reader *reader = ptt_reader_create();
	int trace = ptt_reader_add_trace(reader, NULL);

	if (argc < 3 || trace < 0)
		return 2;
	for (int i = 2; i < argc; i++)
		if (ptt_reader_add_file(reader, (uint32_t)ptt_reader_add_stream(reader, (uint32_t)trace), argv[i]) < 0)
			return 1;
	if (ptt_reader_index(reader, 0) < 0)
		return 1;
	ptt_reader_set_clock(reader, (uint32_t)trace, 2000000000, 0, 0);
	ptt_reader_key_ticks(reader, 1);
	printf("%" PRId64 "\n", strcmp(argv[1], "count") ? merge(reader) : count(reader));
	ptt_reader_destroy(reader);
	return 0;
}
