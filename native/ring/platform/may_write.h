/* SPDX-License-Identifier: MIT */
/* may_write.h - is a file of some size within the program's own limit? To go beyond it is a fatal signal. */
#ifndef PTT_MAY_WRITE_H
#define PTT_MAY_WRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

static inline bool ptt_may_write(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size;
}

#endif
