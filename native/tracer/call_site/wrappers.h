/* SPDX-License-Identifier: MIT */
/* wrappers.h - the functions that stand between a program and the thread library, and are never the call site. */
#ifndef PTT_WRAPPERS_H
#define PTT_WRAPPERS_H

#include <dlfcn.h>
#include <stdint.h>

#include "modules.h"
#include "tracer.h"

/* ptt_read_wrappers - from the symbols of a module's file, if that is still what is mapped. As ptt_module_of(). */
void ptt_read_wrappers(struct ptt_module *module, const struct dl_find_object *found) HIDDEN;

/*
 * ptt_find_wrapper - Return: 0 if a function is no wrapper of the module; else its offset and, above it, the kind of futex that threads
 * wait for in it, or 0.
 */
uint64_t ptt_find_wrapper(const struct ptt_module *module, uintptr_t function) HIDDEN;
#define PTT_WRAPPER_FUTEX_SHIFT 32

#endif
