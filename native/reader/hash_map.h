/* SPDX-License-Identifier: MIT */
/* hash_map.h - a hash table from two numbers to one. */
#ifndef PTTREAD_MAP_H
#define PTTREAD_MAP_H

#include <stddef.h>
#include <stdint.h>

struct rd_entry {
	uint64_t a;
	uint64_t b;
	uint64_t value;
	uint64_t used;
};

struct rd_map {
	struct rd_entry *entries;
	uint64_t mask; /* entries - 1 */
	uint64_t count;
};

static inline uint64_t rd_hash(uint64_t a, uint64_t b)
{
	uint64_t h = (a + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd) ^ b;

	h ^= h >> 32;
	h *= UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 29;
}

/* rd_map_find - the entry of a key, or NULL. */
static inline struct rd_entry *rd_map_find(const struct rd_map *map, uint64_t a, uint64_t b)
{
	if (!map->entries)
		return NULL;
	for (uint64_t i = rd_hash(a, b);; i++) {
		struct rd_entry *e = &map->entries[i & map->mask];

		if (!e->used)
			return NULL;
		if (e->a == a && e->b == b)
			return e;
	}
}

/* rd_map_next - the entry at place *i or the first behind it, and *i behind that; NULL if there is none. */
static inline struct rd_entry *rd_map_next(const struct rd_map *map, uint64_t *i)
{
	while (map->entries && *i <= map->mask) {
		struct rd_entry *e = &map->entries[(*i)++];

		if (e->used)
			return e;
	}
	return NULL;
}

/* rd_map_put - the entry of a key; a new entry has value 0. Return: NULL if there is no memory. */
struct rd_entry *rd_map_put(struct rd_map *map, uint64_t a, uint64_t b);
void rd_map_free(struct rd_map *map);

#endif
