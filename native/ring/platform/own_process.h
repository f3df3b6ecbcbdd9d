/* SPDX-License-Identifier: MIT */
/* own_process.h - the files that the calling process may write, and the kernel's file about the process. */
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

/* ptt_may_write - is a file of @size bytes within the program's own limit? A fatal signal ends a program that exceeds it. */
static inline bool ptt_may_write(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size;
}

/*
 * ptt_may_complain - may this process write to descriptor 2? In a child, descriptor 2 may be a file of the program.
 * @place: the recorder's standard error, as device and inode in hexadecimal with a - between them; NULL if no recorder has
 * started this process
 * Makes a system call.
 */
static inline bool ptt_may_complain(const char *place)
{
	unsigned long device, inode;
	struct stat st;

	if (!place || sscanf(place, "%lx-%lx", &device, &inode) != 2)
		return true;
	return fstat(2, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* ptt_put_decimal - put a number at @to, in up to 20 digits. Return: their end. Safe in signal handlers. */
static inline char *ptt_put_decimal(char *to, uint64_t number)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

#define PTT_OWN_STAT_MAX 48

/*
 * This file always exists. An emulator of a processor puts a text of its own in its place, with a start time that other
 * processes do not see.
 */
#define PTT_OWN_STAT_ANY "/proc/self/stat"

/*
 * ptt_own_stat_path - put the path of the first thread's stat file into @path
 * Emulators do not replace this file, and its start time is the start time of the process. The file does not exist if /proc
 * shows another PID namespace. Safe in signal handlers.
 */
static inline void ptt_own_stat_path(char path[PTT_OWN_STAT_MAX])
{
	static const char before[] = "/proc/self/task/", after[] = "/stat";
	uint64_t pid = (uint64_t)ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

	memcpy(path, before, sizeof(before));
	memcpy(ptt_put_decimal(path + sizeof(before) - 1, pid), after, sizeof(after));
}

#endif
