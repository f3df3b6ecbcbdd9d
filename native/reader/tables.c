/* SPDX-License-Identifier: MIT */
/* tables.c - places tables that grow in place, and gets more memory for tables. */
#include "tables.h"

#include <stdatomic.h>
#include <stdbool.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define FIRST (UINT64_C(64) << 10)
#define ALIGN (UINT64_C(2) << 20)
#define TRIES 64

/* Map memory at exactly @at, unless something is mapped there. Return: NULL if that fails. */
static void *map_at(uintptr_t at, uint64_t bytes)
{
	void *got = mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == MAP_FAILED)
		return NULL;
	if ((uintptr_t)got == at)
		return got;
	/* kernels before 4.17 do not know the flag, and may use another address */
	munmap(got, bytes);
	return NULL;
}

/*
 * Tables lie in the lower half of the addresses below the kernel's choice. Nothing else is mapped there except a program at
 * a fixed address. Tables go from the end of this half downwards, and begin at its end again when it is used up.
 */
static uintptr_t top_of_tables(void)
{
	void *anywhere = mmap(NULL, FIRST, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (anywhere == MAP_FAILED)
		return 0;
	munmap(anywhere, FIRST);
	return (uintptr_t)anywhere / 2 & ~(ALIGN - 1);
}

static bool open_in_place(struct rd_pool *pool, size_t size)
{
	static _Atomic uint64_t below; /* bytes from the top down to the last table */
	uint64_t most = (size * RD_POOL_ROOM + ALIGN - 1) & ~(ALIGN - 1);
	uintptr_t top = top_of_tables();

	if (most >= top)
		return false;
	for (int i = 0; i < TRIES; i++) {
		/* relaxed: the kernel refuses a second table at the same place */
		uint64_t down = atomic_fetch_add_explicit(&below, most, memory_order_relaxed) % (top - most) & ~(ALIGN - 1);
		uint8_t *items = map_at(top - most - down, FIRST);

		if (!items)
			continue;
		*pool = (struct rd_pool){ items, size, 1, (uint32_t)(FIRST / size), FIRST, size * RD_POOL_ROOM };
		return true;
	}
	return false;
}

/* A sanitizer may refuse these addresses: then all room is reserved at once. */
static int open_anywhere(struct rd_pool *pool, size_t size)
{
	for (uint32_t room = RD_POOL_ROOM; size * room >= FIRST; room /= 4) {
		void *items = mmap(NULL, size * room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (items == MAP_FAILED)
			continue;
		*pool = (struct rd_pool){ items, size, 1, room, size * room, size * room };
		return 0;
	}
	return -ENOMEM;
}

int rd_pool_open(struct rd_pool *pool, size_t size)
{
	int err = open_in_place(pool, size) ? 0 : open_anywhere(pool, size);

	return err ? err : rd_pool_reach(pool, 1);
}

int rd_pool_reach(struct rd_pool *pool, uint64_t count)
{
	uint64_t wanted = (count * pool->size + FIRST - 1) & ~(FIRST - 1), more;

	if (count <= pool->room)
		return 0;
	if (count * pool->size > pool->most)
		return -ENOMEM;
	/* half as much again, if possible */
	more = (pool->mapped / 2 & ~(FIRST - 1)) + pool->mapped;
	if (more < wanted || !map_at((uintptr_t)pool->items + pool->mapped, more - pool->mapped)) {
		more = wanted;
		if (!map_at((uintptr_t)pool->items + pool->mapped, more - pool->mapped))
			return -ENOMEM;
	}
	pool->mapped = more;
	more = more / pool->size;
	pool->room = more < RD_POOL_ROOM ? (uint32_t)more : RD_POOL_ROOM;
	return 0;
}
