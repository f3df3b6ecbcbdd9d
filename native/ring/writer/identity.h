/* SPDX-License-Identifier: MIT */
/* identity.h - the identity of this process, for processes that see it under another pid. */
/*
 * A pid has a meaning in one PID namespace only: a recorder outside sees another pid, and several containers in a recording
 * have a pid 1 each. Pid and namespace together are unique among living processes. The number of the process image
 * (ptt_abi.h) is unique in a whole recording.
 */
#ifndef PTT_IDENTITY_H
#define PTT_IDENTITY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ptt_pid_namespace - inode number in a link such as /proc/self/ns/pid; 0 if it cannot be read. Neither blocks nor allocates. */
static inline uint32_t ptt_pid_namespace(const char *link)
{
	char text[32]; /* pid:[4026531836] */
	ssize_t n = readlink(link, text, sizeof(text) - 1);
	const char *number;

	text[n > 0 ? n : 0] = '\0';
	number = strchr(text, '[');
	return number ? (uint32_t)strtoul(number + 1, NULL, 10) : 0;
}

#define PTT_OWN_PID_NAMESPACE "/proc/thread-self/ns/pid"

#endif
