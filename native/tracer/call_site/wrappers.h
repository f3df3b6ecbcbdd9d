/* SPDX-License-Identifier: MIT */
/* wrappers.h - the functions that stand between a program and the thread library, and are never the call site. */
#ifndef PTT_WRAPPERS_H
#define PTT_WRAPPERS_H

#include <dlfcn.h>
#include <stdint.h>

#include "modules.h"
#include "tracer.h"

enum ptt_kind_of_code {
	PTT_CODE_PROGRAM, /* the program's own, or a library's that it might like to know about */
	PTT_CODE_WRAPPER, /* std::mutex::lock() and the like: what calls it is of interest, not what it calls */
	PTT_CODE_RUNTIME, /* the same in a library where nothing of the program is to be seen, as C++'s own */
	PTT_CODE_LIBRARY, /* the C library and the tracer, which call back what they were given */
};

/*
 * ptt_kind_of_code - what kind of function is this?
 * @module: that it lies in
 * @function: where it begins
 *
 * Reads the symbols of a module when it first sees the module: opens, maps and closes its file. As ptt_module_of().
 */
enum ptt_kind_of_code ptt_kind_of_code(const struct dl_find_object *module, uintptr_t function);

/* ptt_futex_kind - as ptt_futex_of_name(), of a function. Parameters, and what it does: as ptt_kind_of_code(). */
uint8_t ptt_futex_kind(const struct dl_find_object *module, uintptr_t function);

/* ptt_read_wrappers - from the symbols of a module's file, if that is still what is mapped. As ptt_module_of(). */
void ptt_read_wrappers(struct ptt_module *module, const struct dl_find_object *found) HIDDEN;

#endif
