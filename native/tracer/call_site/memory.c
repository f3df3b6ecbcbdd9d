/* SPDX-License-Identifier: MIT */
/* memory.c - allocates memory without the C library, and never frees it. */
#include "modules.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "platform/raw_syscall.h"

#define SLAB_SIZE 65536u

/* Memory in the library itself: the program may limit its data later (RLIMIT_DATA). */
#define FIRST_SIZE (256u << 10)

struct slab {
	size_t used;
	size_t size;
	char *memory;
};
static char first_memory[FIRST_SIZE] __attribute__((aligned(64)));
static struct slab first = {.size = FIRST_SIZE, .memory = first_memory}, *current = &first;

static void *map(size_t size)
{
	long at = ptt_raw_syscall(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at < 0 && at > -4096 ? NULL : (void *)at;
}

void *ptt_take_memory(size_t size)
{
	size = (size + 15) & ~(size_t)15;
	if (size > SLAB_SIZE / 4)
		return map(size);
	for (;;) {
		/* acquire: pairs with the release below */
		struct slab *slab = __atomic_load_n(&current, __ATOMIC_ACQUIRE), *fresh;
		/* relaxed: each caller gets its own part */
		size_t at = __atomic_fetch_add(&slab->used, size, __ATOMIC_RELAXED);

		if (at + size <= slab->size)
			return slab->memory + at;
		fresh = map(SLAB_SIZE);
		if (!fresh)
			return NULL;
		*fresh = (struct slab){.used = 64, .size = SLAB_SIZE, .memory = (char *)fresh};
		/* release: pairs with the acquire above */
		if (!__atomic_compare_exchange_n(&current, &slab, fresh, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			ptt_raw_syscall(SYS_munmap, (long)fresh, SLAB_SIZE, 0, 0, 0, 0);
	}
}

