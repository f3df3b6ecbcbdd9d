/* SPDX-License-Identifier: MIT */
/* store.c - the file with the levels of detail. It grows at its end, and is mapped as a whole. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drawing.h"

#define STEP (UINT64_C(32) << 20)
#define FIRST_STEP (UINT64_C(1) << 20)

int dt_store_create(struct dt_store *store, int fd)
{
	/* Address space costs nothing. A limit of the process leaves less of it, so the file can grow less. */
	uint64_t room = UINT64_C(1) << 40;
	void *base;

	do {
		base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
		if (base == MAP_FAILED)
			room /= 2;
	} while (base == MAP_FAILED && room >= 2 * STEP);
	if (base == MAP_FAILED)
		return -errno;
	*store = (struct dt_store){ .base = base, .room = room, .fd = fd };
	return 0;
}

int dt_store_open(struct dt_store *store, int fd)
{
	struct stat file;
	struct ptt_guard *guard;

	if (fstat(fd, &file) < 0)
		return -errno;
	if (!S_ISREG(file.st_mode) || file.st_size < DT_SLACK)
		return -ESTALE;
	guard = ptt_guard_map(fd, (size_t)file.st_size);
	if (!guard)
		return -errno;
	*store = (struct dt_store){
		.base = (uint8_t *)(uintptr_t)ptt_guard_data(guard), .used = (uint64_t)file.st_size,
		.size = (uint64_t)file.st_size, .fd = fd, .guard = guard,
	};
	return 0;
}

int dt_store_finish(struct dt_store *store)
{
	uint64_t size = store->used + DT_SLACK;

	if (ftruncate(store->fd, (off_t)size) < 0)
		return -errno;
	store->size = size;
	return 0;
}

void dt_store_close(struct dt_store *store)
{
	if (store->guard)
		ptt_guard_unmap(store->guard);
	else if (store->base)
		munmap(store->base, store->room);
	*store = (struct dt_store){ 0 };
}

uint64_t dt_alloc(struct dt_store *store, uint64_t size)
{
	uint64_t offset = store->used, end = offset + ((size + 7) & ~UINT64_C(7)), want;

	if (end + DT_SLACK > store->size) {
		want = store->size < STEP ? FIRST_STEP : STEP;
		want = ((end + DT_SLACK) / want + 1) * want;
		if (want > store->room) {
			errno = ENOMEM;
			return 0;
		}
		/* Allocates the blocks before a write to the mapping: on a full disk, the write would raise a signal. */
		errno = posix_fallocate(store->fd, (off_t)store->size, (off_t)(want - store->size));
		if (errno)
			return 0;
		store->size = want;
	}
	store->used = end;
	return offset;
}
