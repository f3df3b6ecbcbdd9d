/* SPDX-License-Identifier: MIT */
/* own_stat.h - where the kernel itself says what the calling process is. */
#ifndef PTT_OWN_STAT_H
#define PTT_OWN_STAT_H

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "raw_syscall.h"

#define PTT_OWN_STAT_MAX 48

/*
 * What is there in any case. An emulator of a processor puts a text of its own in its place, with a time of start that
 * other processes see nowhere.
 */
#define PTT_OWN_STAT_ANY "/proc/self/stat"

/*
 * ptt_own_stat_path - put the path of the first thread's stat into @path. Emulators do not replace it, and its time of
 * start is the process's. There is no such file if /proc is of another PID namespace. Safe in signal handlers.
 */
static inline void ptt_own_stat_path(char path[PTT_OWN_STAT_MAX])
{
	static const char before[] = "/proc/self/task/", after[] = "/stat";
	uint64_t pid = (uint64_t)ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	char digits[20];
	int n = 0;

	do
		digits[n++] = (char)('0' + pid % 10);
	while (pid /= 10);
	memcpy(path, before, sizeof(before));
	path += sizeof(before) - 1;
	while (n)
		*path++ = digits[--n];
	memcpy(path, after, sizeof(after));
}

#endif
