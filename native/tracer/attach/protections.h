/* SPDX-License-Identifier: MIT */
/* protections.h - how the memory of the calling process is protected, as the kernel says it. */
#ifndef PTT_PROTECTIONS_H
#define PTT_PROTECTIONS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * ptt_protections_read - keep what /proc/thread-self/maps says now, until ptt_protections_forget(). Makes system calls, maps memory and
 * has a descriptor for a moment. One thread at a time; not for signal handlers.
 * Return: false if the file cannot be read, or if there is no memory.
 */
bool ptt_protections_read(void) __attribute__((visibility("hidden")));
void ptt_protections_forget(void) __attribute__((visibility("hidden")));

/* ptt_protection_of - the PROT_ bits at @address; -1 if nothing is mapped there. */
int ptt_protection_of(uintptr_t address) __attribute__((visibility("hidden")));

/* ptt_is_readable - are all @size bytes at @begin? */
bool ptt_is_readable(const void *begin, uint64_t size) __attribute__((visibility("hidden")));

#endif
