/* SPDX-License-Identifier: MIT */
/* unjoined.h - counts a process that could not join a session. */
#ifndef PTT_UNJOINED_H
#define PTT_UNJOINED_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../layout/ptt_abi.h"

/* The head of the segment may fit in memory although the whole segment does not. */
static inline bool ptt_count_in_segment(int fd)
{
	struct ptt_segment *seg = mmap(NULL, sizeof(*seg), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool counted = false;

	if (seg == MAP_FAILED)
		return false;
	if (memcmp(seg->abi.magic, PTT_SEGMENT_MAGIC, 8) == 0) {
		/* relaxed: a count */
		__atomic_fetch_add(&seg->unjoined, 1, __ATOMIC_RELAXED);
		counted = true;
	}
	munmap(seg, sizeof(*seg));
	return counted;
}

/*
 * ptt_ring_count_unjoined - count this process, which could not join the session of a directory
 * @trace: the trace directory, which counts the process if the session is out of sight; may be NULL
 * Return: true if it was counted. Makes system calls; for the start of a process, or the child of a fork.
 */
static inline bool ptt_ring_count_unjoined(const char *directory, const char *trace)
{
	char path[4096];
	struct stat st;
	bool counted = false;
	int fd = -1;

	if (snprintf(path, sizeof(path), "%s/segment", directory) < (int)sizeof(path))
		fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(struct ptt_segment))
		counted = ptt_count_in_segment(fd);
	if (fd >= 0)
		close(fd);
	if (counted || !trace || snprintf(path, sizeof(path), "%s/" PTT_UNTRACED_FILE, trace) >= (int)sizeof(path))
		return counted;
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	counted = write(fd, "", 1) == 1;
	close(fd);
	return counted;
}

#endif
