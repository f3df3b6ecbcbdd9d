/* SPDX-License-Identifier: MIT */
/* own_process.h - what the calling process may write, and where the kernel says what it is. */
#ifndef PTT_OWN_PROCESS_H
#define PTT_OWN_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "raw_syscall.h"

/* ptt_may_write - is a file of some size within the program's own limit? To go beyond it is a fatal signal. */
static inline bool ptt_may_write(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size;
}

/*
 * ptt_may_complain - descriptor 2 of a child may be a file of the program's, and then nothing of ours belongs there
 * @place: the recorder's standard error: numbers of its device and its inode in hexadecimal, with a - between them; NULL if
 * no recorder has started this process. Makes a system call.
 */
static inline bool ptt_may_complain(const char *place)
{
	unsigned long device, inode;
	struct stat st;

	if (!place || sscanf(place, "%lx-%lx", &device, &inode) != 2)
		return true;
	return fstat(2, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

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
