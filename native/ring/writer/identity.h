/* SPDX-License-Identifier: MIT */
/* identity.h - the identity of this process, for processes that may know it by another pid. */
/*
 * A pid means something within a PID namespace only: a recorder outside knows the process by another one, and several
 * containers in one recording have a pid 1 each. Pid and namespace together are unique among the processes that live, and
 * the number of the process image (ptt_abi.h) among all that a recording ever saw.
 */
#ifndef PTT_IDENTITY_H
#define PTT_IDENTITY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ptt_pid_namespace - inode number in a link such as /proc/self/ns/pid; 0 where it cannot be read. Neither blocks nor allocates. */
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
