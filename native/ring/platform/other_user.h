/* SPDX-License-Identifier: MIT */
/* other_user.h - a file that may not be used: because it is another user's? */
#ifndef PTT_OTHER_USER_H
#define PTT_OTHER_USER_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* ptt_is_of_another_user - was @path refused (@err: -errno) to a process that runs as another user than its owner? */
static inline bool ptt_is_of_another_user(const char *path, int err)
{
	struct stat st;

	return err == -EACCES && stat(path, &st) == 0 && st.st_uid != geteuid();
}

/* What to say of it. */
#define PTT_OF_ANOTHER_USER "it runs as another user than ptt record, and may not join the recording"

#endif
