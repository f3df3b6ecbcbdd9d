/* SPDX-License-Identifier: MIT */
/*
 * segment_map.c - a segment of any size gives back only its own addresses.
 * Linked with --wrap for mmap and munmap.
 */
#include "segment_map.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static char *begin, *end; /* the last mapping whose address the kernel chose */
static int strange;

void *__real_mmap(void *where, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *where, size_t size);
void *__wrap_mmap(void *where, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *where, size_t size);

void *__wrap_mmap(void *where, size_t size, int protection, int flags, int fd, off_t offset)
{
	char *mapped = __real_mmap(where, size, protection, flags, fd, offset);

	if (!(flags & MAP_FIXED)) {
		begin = mapped;
		end = mapped + size;
	} else if (mapped < begin || mapped + size > end) {
		strange++;
	}
	return mapped;
}

int __wrap_munmap(void *where, size_t size)
{
	if ((char *)where < begin || (char *)where + size > end)
		strange++;
	return __real_munmap(where, size);
}

int main(void)
{
	int fd = memfd_create("segment", 0);
	uint64_t size;

	for (size = 4096; size < 300000; size += 4096)
		if (ftruncate(fd, (off_t)size) || !ptt_segment_map(fd, size))
			return 2;
	printf("%d strange\n", strange);
	return strange != 0;
}
