/* SPDX-License-Identifier: MIT */
/* dead_owners.h - does the kernel mark robust mutexes of threads that died? Processor emulators leave this out. */
#ifndef DEAD_OWNERS_H
#define DEAD_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline bool dead_owners_are_marked(void)
{
	size_t length;
	void *head;

	return syscall(SYS_get_robust_list, 0, &head, &length) == 0;
}

#endif
