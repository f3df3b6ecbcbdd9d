/* SPDX-License-Identifier: MIT */
/* hash_map.c - a hash table from two numbers to one: the parts that change it. */
#include "hash_map.h"

#include <stdlib.h>

#define FIRST_SIZE 64u

static int map_grow(struct rd_map *map)
{
	uint64_t size = map->entries ? (map->mask + 1) * 2 : FIRST_SIZE;
	struct rd_map bigger = { calloc(size, sizeof(struct rd_entry)), size - 1, map->count };
	const struct rd_entry *e;

	if (!bigger.entries)
		return -1;
	for (uint64_t i = 0; (e = rd_map_next(map, &i));) {
		uint64_t at = rd_hash(e->a, e->b);

		while (bigger.entries[at & bigger.mask].used)
			at++;
		bigger.entries[at & bigger.mask] = *e;
	}
	free(map->entries);
	*map = bigger;
	return 0;
}

struct rd_entry *rd_map_put(struct rd_map *map, uint64_t a, uint64_t b)
{
	struct rd_entry *e = rd_map_find(map, a, b);
	uint64_t at;

	if (e)
		return e;
	/* At most five eighths full: probes stay short. */
	if ((!map->entries || map->count * 8 >= (map->mask + 1) * 5) && map_grow(map) < 0)
		return NULL;
	at = rd_hash(a, b);
	while (map->entries[at & map->mask].used)
		at++;
	e = &map->entries[at & map->mask];
	*e = (struct rd_entry){ a, b, 0, 1 };
	map->count++;
	return e;
}

void rd_map_free(struct rd_map *map)
{
	free(map->entries);
	*map = (struct rd_map){ 0, 0, 0 };
}
