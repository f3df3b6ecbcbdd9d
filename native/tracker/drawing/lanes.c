/* SPDX-License-Identifier: MIT */
/* lanes.c - gives intervals rows to be drawn in, so that no two intervals of a row overlap. */
#include "drawing.h"

/* The rows of a group are a list, in the order of their creation. */
struct lane {
	struct ptt_model_lane pub;
	int64_t end; /* of the last interval in it */
	uint32_t next; /* 0 = none: row 0 is never a next row */
};

struct ptt_model_lanes {
	struct lane *items;
	uint32_t count;
	uint32_t room;
	struct rd_map first; /* by group: number of its first row, plus 1 */
};

struct ptt_model_lanes *ptt_model_lanes_create(void)
{
	return calloc(1, sizeof(struct ptt_model_lanes));
}

void ptt_model_lanes_destroy(struct ptt_model_lanes *lanes)
{
	if (!lanes)
		return;
	rd_map_free(&lanes->first);
	free(lanes->items);
	free(lanes);
}

static int lane_add(struct ptt_model_lanes *lanes, uint64_t group, uint32_t place)
{
	if (dt_more((void **)&lanes->items, &lanes->room, lanes->count + 1, sizeof(*lanes->items)) < 0)
		return -ENOMEM;
	lanes->items[lanes->count++] = (struct lane){ .pub = { group, place, 0 }, .end = INT64_MIN };
	return 0;
}

/* Finds the row that has been free for the shortest time, which needs the fewest rows. */
static int lane_find(struct ptt_model_lanes *lanes, uint64_t group, int64_t begin, uint32_t *number)
{
	struct rd_entry *entry = rd_map_put(&lanes->first, group, 0);
	uint32_t best = UINT32_MAX, last = UINT32_MAX, place = 0;

	if (!entry)
		return -ENOMEM;
	for (uint32_t i = entry->value ? (uint32_t)entry->value - 1 : UINT32_MAX; i != UINT32_MAX; place++) {
		const struct lane *lane = &lanes->items[i];

		if (lane->end <= begin && (best == UINT32_MAX || lane->end > lanes->items[best].end))
			best = i;
		last = i;
		i = lane->next ? lane->next : UINT32_MAX;
	}
	if (best == UINT32_MAX) {
		best = lanes->count;
		if (lane_add(lanes, group, place) < 0)
			return -ENOMEM;
		if (last == UINT32_MAX)
			entry->value = (uint64_t)best + 1;
		else
			lanes->items[last].next = best;
	}
	*number = best;
	return 0;
}

int ptt_model_lanes_place(struct ptt_model_lanes *lanes, const uint64_t *group, const int64_t *begin,
			  const int64_t *end, uint32_t *lane, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		if (lane_find(lanes, group[i], begin[i], &lane[i]) < 0)
			return -ENOMEM;
		lanes->items[lane[i]].end = end[i];
	}
	return 0;
}

int ptt_model_lanes_table(const struct ptt_model_lanes *lanes, struct ptt_model_table *out)
{
	*out = (struct ptt_model_table){ lanes->items, lanes->count, sizeof(struct lane) };
	return 0;
}
