/* SPDX-License-Identifier: MIT */
/* memory.h - memory for what is known of modules. */
#ifndef PTT_MEMORY_H
#define PTT_MEMORY_H

#include <stddef.h>

/* ptt_take_memory - zeroed memory that is never given back; NULL if there is none. Safe in signal handlers. */
void *ptt_take_memory(size_t size) __attribute__((visibility("hidden")));

#endif
