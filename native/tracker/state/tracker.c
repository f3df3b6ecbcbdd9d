/* SPDX-License-Identifier: MIT */
/* tracker.c - opens and closes the tables of the tracker, and adds elements to them. */
#include "hot.h"

int tk_open(struct tracker *t, const struct tk_layout *layout)
{
	int err = 0;

	tk_learn_catalogue();
	t->layout = layout;
	err |= rd_pool_open(&t->threads, layout->thread.size);
	err |= rd_pool_open(&t->objects, layout->object.size);
	err |= rd_pool_open(&t->holds, layout->hold.size);
	err |= rd_pool_open(&t->waits, layout->wait.size);
	err |= rd_pool_open(&t->wakeups, layout->wakeup.size);
	err |= rd_pool_open(&t->wakings, sizeof(struct tk_waking));
	err |= rd_pool_open(&t->shares, sizeof(struct tk_share));
	err |= rd_pool_open(&t->caches, layout->cache);
	return err ? -ENOMEM : 0;
}

void tk_drop_ranges(struct tracker *t)
{
	for (uint32_t i = 0; i < t->process_count; i++)
		free(TK_PROCESS(t, i)->ranges);
}

void tk_close(struct tracker *t)
{
	struct rd_pool *pools[] = { &t->threads, &t->objects, &t->holds,  &t->waits,
				    &t->wakeups, &t->wakings, &t->shares, &t->caches };
	struct rd_map *maps[] = { &t->object_of, &t->pthread_of, &t->serial_of, &t->tid_of };

	for (size_t i = 0; i < sizeof(pools) / sizeof(*pools); i++)
		rd_pool_close(pools[i]);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		rd_map_free(maps[i]);
	tk_drop_ranges(t);
	free(t->known);
	free(t->processes);
}

uint32_t tk_new(struct tracker *t, struct rd_pool *pool, const struct tk_element *element)
{
	uint32_t number = rd_pool_new(pool, &t->error);

	if (number && element->fresh)
		memcpy(pool->items + element->size * number, element->fresh, element->size);
	return number;
}

int tk_process_reach(struct tracker *t, uint32_t process)
{
	const struct tk_element *element = &t->layout->process;
	uint32_t before = t->process_count;

	if (rd_array_reach((void **)&t->processes, &t->process_count, process, element->size) < 0)
		return -ENOMEM;
	for (uint32_t i = before; i < t->process_count; i++) {
		if (element->fresh)
			memcpy(TK_PROCESS(t, i), element->fresh, element->size);
		TK_PROCESS(t, i)->last = TK_NEVER;
	}
	return 0;
}

void tk_map_set(struct tracker *t, struct rd_map *map, uint64_t a, uint64_t b, uint64_t value)
{
	struct rd_entry *e = rd_map_put(map, a, b);

	if (e)
		e->value = value;
	else
		t->error = -ENOMEM;
}

uint32_t tk_map_get(const struct rd_map *map, uint64_t a, uint64_t b)
{
	const struct rd_entry *e = rd_map_find(map, a, b);

	return e ? (uint32_t)e->value : 0;
}
