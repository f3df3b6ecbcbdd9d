/* SPDX-License-Identifier: MIT */
/* pool.c - elements that never move and are used again. */
#include "internal.h"

int vf_pool_open(struct vf_pool *pool, size_t size)
{
	*pool = (struct vf_pool){ .size = size };
	pool->blocks = calloc(1, sizeof(*pool->blocks));
	if (!pool->blocks)
		return -ENOMEM;
	pool->room = 1;
	pool->blocks[0] = calloc(VF_BLOCK, size);
	pool->count = 1;
	return pool->blocks[0] ? 0 : -ENOMEM;
}

void vf_pool_close(struct vf_pool *pool)
{
	for (uint32_t i = 0; pool->blocks && i < pool->room; i++)
		free(pool->blocks[i]);
	free(pool->blocks);
}

static int pool_grow(struct vf_pool *pool)
{
	uint32_t block = pool->count / VF_BLOCK;

	if (block >= pool->room) {
		uint8_t **bigger = realloc(pool->blocks, 2 * (size_t)pool->room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		memset(bigger + pool->room, 0, pool->room * sizeof(*bigger));
		pool->blocks = bigger;
		pool->room *= 2;
	}
	pool->blocks[block] = calloc(VF_BLOCK, pool->size);
	return pool->blocks[block] ? 0 : -ENOMEM;
}

uint32_t vf_new(struct ptt_verify *v, struct vf_pool *pool)
{
	uint32_t number = pool->free;

	if (number) {
		memcpy(&pool->free, vf_at(pool, number), sizeof(pool->free));
		memset(vf_at(pool, number), 0, pool->size);
		return number;
	}
	if (pool->count == UINT32_MAX || (pool->count % VF_BLOCK == 0 && pool_grow(pool) < 0)) {
		v->error = -ENOMEM;
		return 0;
	}
	return pool->count++;
}

void vf_drop(struct vf_pool *pool, uint32_t number)
{
	if (!number)
		return;
	memcpy(vf_at(pool, number), &pool->free, sizeof(pool->free));
	pool->free = number;
}
