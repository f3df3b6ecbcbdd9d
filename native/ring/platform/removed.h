/* SPDX-License-Identifier: MIT */
/* removed.h - a file that is not found: is there none any more, or is it only hidden from this process? */
#ifndef PTT_REMOVED_H
#define PTT_REMOVED_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/*
 * ptt_is_removed - is the directory that @path was in, and is not any more, the one that it was made in?
 * @place: which one that was: numbers of its device and its inode in hexadecimal, with a - between them
 * Return: false too if that cannot be known. Makes a system call.
 */
static inline bool ptt_is_removed(const char *path, const char *place)
{
	const char *slash = strrchr(path, '/');
	unsigned long device, inode;
	char directory[256];
	struct stat st;

	if (!slash || slash == path || (size_t)(slash - path) >= sizeof(directory) ||
	    sscanf(place, "%lx-%lx", &device, &inode) != 2)
		return false;
	memcpy(directory, path, (size_t)(slash - path));
	directory[slash - path] = '\0';
	return stat(directory, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* What to say where it is hidden. */
#define PTT_OUT_OF_SIGHT "cannot join the recording: its buffers are not in sight, as in a container with a /dev/shm of its own"

#endif
