/* SPDX-License-Identifier: MIT */
/* complaint.h - may this process say on descriptor 2 why it is not traced? */
#ifndef PTT_COMPLAINT_H
#define PTT_COMPLAINT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

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

#endif
