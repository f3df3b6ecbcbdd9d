/* SPDX-License-Identifier: MIT */
/* wrappers.h - the functions that stand between a program and the thread library, and are nobody's call site. */
#ifndef PTT_WRAPPERS_H
#define PTT_WRAPPERS_H

#include <dlfcn.h>
#include <stdint.h>

#include "missing.h"
#include "tracer.h"

/* _dl_find_object() of glibc 2.35, which takes no lock; before that nothing is ever found. */
extern int (*ptt_find_object)(void *address, struct dl_find_object *found) HIDDEN;

enum ptt_kind_of_code {
	PTT_CODE_PROGRAM, /* the program's own, or a library's that it might like to know about */
	PTT_CODE_WRAPPER, /* std::mutex::lock() and the like: what calls it is of interest, not what it calls */
	PTT_CODE_RUNTIME, /* the same in C++'s own shared library, where nothing of the program is to be seen */
	PTT_CODE_LIBRARY, /* the C library and the tracer, which call back what they were given */
};

/*
 * ptt_kind_of_code - what kind of function is this?
 * @module: that it lies in
 * @function: where it begins
 *
 * Reads the symbols of a module when it first sees the module: opens, maps and closes its file. Safe in signal handlers,
 * no cancellation point, keeps errno.
 */
enum ptt_kind_of_code ptt_kind_of_code(const struct dl_find_object *module, uintptr_t function);

/* ptt_forget_wrappers - of modules that are not there any more. */
void ptt_forget_wrappers(void);

#endif
