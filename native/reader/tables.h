/* SPDX-License-Identifier: MIT */
/* tables.h - tables that grow while events are read: pools, which never move, and plain arrays. */
#ifndef PTT_READER_TABLES_H
#define PTT_READER_TABLES_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * A table that grows in place, so pointers to its elements stay valid. It begins small, at an address with room behind it
 * for the largest table. The room is not reserved: address space and memory may both be limited. Element 0 stands for
 * "none" and takes all values that cannot be stored.
 */
struct rd_pool {
	uint8_t *items;
	size_t size;
	uint32_t count;
	uint32_t room;   /* elements that have memory */
	uint64_t mapped; /* bytes */
	uint64_t most;   /* largest size, in bytes */
};

#define RD_POOL_ROOM (UINT32_C(1) << 26)

/* rd_pool_open - @size: bytes of an element. Return: 0 or -ENOMEM. */
int rd_pool_open(struct rd_pool *pool, size_t size);

/* rd_pool_reach - get memory for @count elements, which are zero. Return: 0 or -ENOMEM. */
int rd_pool_reach(struct rd_pool *pool, uint64_t count);

static inline void rd_pool_close(struct rd_pool *pool)
{
	if (pool->items)
		munmap(pool->items, pool->mapped);
}

/* rd_pool_new - Return: number of a new element, all zero; 0 if there is no memory, with @error set. */
static inline uint32_t rd_pool_new(struct rd_pool *pool, int *error)
{
	if (__builtin_expect(pool->count == pool->room, 0) && rd_pool_reach(pool, (uint64_t)pool->count + 1) < 0) {
		*error = -ENOMEM;
		return 0;
	}
	return pool->count++;
}

/* rd_grow - make room for one more element of an array of @count elements, @size bytes each. Return: 0 or -ENOMEM. */
static inline int rd_grow(void **array, uint32_t *room, uint32_t count, size_t size)
{
	uint32_t more = *room ? *room * 2 : 16;
	void *bigger;

	if (count < *room)
		return 0;
	if (more <= *room)
		return -ENOMEM;
	bigger = realloc(*array, more * size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*room = more;
	return 0;
}

/* rd_array_reach - make room for element @number of an array of zeroes. Return: 0 or -ENOMEM. */
static inline int rd_array_reach(void **array, uint32_t *count, uint32_t number, size_t size)
{
	uint32_t want = number + 1;
	void *bigger;

	if (number < *count)
		return 0;
	if (want < *count * 2)
		want = *count * 2;
	bigger = realloc(*array, want * size);
	if (!bigger)
		return -ENOMEM;
	memset((uint8_t *)bigger + *count * size, 0, (want - *count) * size);
	*array = bigger;
	*count = want;
	return 0;
}

#endif
