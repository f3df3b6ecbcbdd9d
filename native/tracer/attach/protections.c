/* SPDX-License-Identifier: MIT */
/* protections.c - reads /proc/thread-self/maps into a sorted array, by raw system calls and without an allocator. */
#include "attach.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "platform/raw_syscall.h"

struct range {
	uintptr_t begin, end;
	int protection;
};

#define FIRST_ROOM 4096u

static struct range *ranges;
static size_t count, room;

static bool make_room(void)
{
	size_t more = room ? 2 * room : FIRST_ROOM;
	long at = room ? ptt_raw_syscall(SYS_mremap, (long)ranges, (long)(room * sizeof(*ranges)),
					 (long)(more * sizeof(*ranges)), MREMAP_MAYMOVE, 0, 0) :
			 ptt_raw_syscall(SYS_mmap, 0, (long)(more * sizeof(*ranges)), PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at < 0 && at > -4096)
		return false;
	ranges = (struct range *)at;
	room = more;
	return true;
}

/* ------------------------------------------------------------ a line: BEGIN-END rwxp … */

struct line {
	uintptr_t number[2];
	unsigned int field; /* 0, 1: a number; 2: the protection; 3: the rest, which is skipped */
	int protection;
};

static int protection_of(char letter)
{
	return letter == 'r' ? PROT_READ : letter == 'w' ? PROT_WRITE : letter == 'x' ? PROT_EXEC : PROT_NONE;
}

/* Take the next character. Return: false if there is no memory. */
static bool take(struct line *line, char c)
{
	if (c == '\n') {
		if (count == room && !make_room())
			return false;
		ranges[count++] = (struct range){line->number[0], line->number[1], line->protection};
		*line = (struct line){0};
	} else if (line->field < 2 && (c == '-' || c == ' ')) {
		line->field++;
	} else if (line->field < 2) {
		line->number[line->field] = line->number[line->field] << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	} else if (c == ' ') {
		line->field = 3;
	} else if (line->field == 2) {
		line->protection |= protection_of(c);
	}
	return true;
}

bool ptt_protections_read(void)
{
	long fd = ptt_raw_syscall(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0), size = 1;
	struct line line = {0};
	char text[4096];
	bool fits = true;

	count = 0;
	if (fd < 0)
		return false;
	while (fits && (size = ptt_raw_syscall(SYS_read, fd, (long)text, sizeof(text), 0, 0, 0)) > 0)
		for (long i = 0; fits && i < size; i++)
			fits = take(&line, text[i]);
	ptt_raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return fits && size == 0;
}

void ptt_protections_forget(void)
{
	if (room)
		ptt_raw_syscall(SYS_munmap, (long)ranges, (long)(room * sizeof(*ranges)), 0, 0, 0, 0);
	count = room = 0;
}

/* ------------------------------------------------------------ questions */

static const struct range *range_of(uintptr_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && ranges[low].begin <= address ? &ranges[low] : NULL;
}

int ptt_protection_of(uintptr_t address)
{
	const struct range *range = range_of(address);

	return range ? range->protection : -1;
}

bool ptt_is_readable(const void *begin, uint64_t size)
{
	uintptr_t at = (uintptr_t)begin, end = at + size;

	while (at < end) {
		const struct range *range = range_of(at);

		if (!range || !(range->protection & PROT_READ))
			return false;
		at = range->end;
	}
	return end >= (uintptr_t)begin;
}
