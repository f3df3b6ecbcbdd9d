/* SPDX-License-Identifier: MIT */
/* session_directory.h - removes a session's directory, with all files that processes have left in it. */
#ifndef SESSION_DIRECTORY_H
#define SESSION_DIRECTORY_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

static inline void remove_session(const char *session)
{
	struct dirent *entry;
	char path[512];
	DIR *dir = opendir(session);

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", session, entry->d_name);
		if (entry->d_name[0] != '.')
			unlink(path);
	}
	if (dir)
		closedir(dir);
	rmdir(session);
}

#endif
