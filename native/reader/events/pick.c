/* SPDX-License-Identifier: MIT */
/* pick.c - the next events that pass a filter, each with its position, for lists of events. */
/*
 * Reading in batches is fast but forgets the position of each event. So a batch is read and filtered first. If events pass,
 * the batch is read again, from one passed event to the next, to note their positions.
 */
#include "../traceset.h"

#define BATCH 4096

struct batch {
	int64_t ts[BATCH];
	uint32_t thread[BATCH];
	uint16_t id[BATCH];
	uint16_t cpu[BATCH];
	uint64_t object[BATCH];
	uint64_t site[BATCH];
	uint64_t payload[BATCH];
	uint32_t stack[BATCH];
	uint16_t reading[BATCH];
	uint16_t passed[BATCH]; /* indexes of the events that passed */
};

/* Reads n events again from `start` and notes the positions of the `count` events that passed; ends behind n events. */
static int note_places(struct ptt_cursor *cursor, const struct ptt_position *start, const struct batch *batch,
		       int64_t count, int64_t n, struct ptt_position *places)
{
	const struct ptt_columns nothing = { 0 };
	int64_t at = 0;
	int err = ptt_cursor_seek(cursor, start);

	if (err < 0)
		return err;
	for (int64_t i = 0; i < count; i++) {
		if (batch->passed[i] > at)
			ptt_cursor_read(cursor, &nothing, batch->passed[i] - at);
		at = batch->passed[i];
		ptt_cursor_position(cursor, &places[i]);
	}
	if (n > at)
		ptt_cursor_read(cursor, &nothing, n - at);
	return 0;
}

int64_t ptt_cursor_pick(struct ptt_cursor *cursor, struct ptt_reader *reader, const struct ptt_filter *filter,
			const struct ptt_columns *out, struct ptt_position *places, int64_t max, int64_t budget,
			int64_t *looked)
{
	struct batch *b = malloc(sizeof(*b));
	int64_t picked = 0, err = 0;

	*looked = 0;
	if (!b)
		return -ENOMEM;
	while (picked < max && *looked < budget && !err) {
		const struct ptt_columns columns = { b->ts,	b->thread, b->id,      b->cpu,
						     b->object, b->site,   b->payload, b->stack, b->reading };
		struct ptt_position start;
		int64_t count = 0, n, i;

		ptt_cursor_position(cursor, &start);
		n = ptt_cursor_read(cursor, &columns, budget - *looked < BATCH ? budget - *looked : BATCH);
		for (i = 0; i < n && picked + count < max; i++)
			if (!filter || rd_passes(filter, reader, &columns, i))
				b->passed[count++] = (uint16_t)i;
		if (count || i < n)
			err = note_places(cursor, &start, b, count, i, places + picked);
		for (int64_t k = 0; k < count; k++)
			rd_columns_copy(out, picked + k, &columns, b->passed[k]);
		picked += count;
		*looked += i;
		if (!n)
			break;
	}
	free(b);
	return err ? err : picked;
}
