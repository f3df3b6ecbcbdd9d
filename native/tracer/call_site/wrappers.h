/* SPDX-License-Identifier: MIT */
/* wrappers.h - the functions that stand between a program and the thread library, and are never the call site. */
#ifndef PTT_WRAPPERS_H
#define PTT_WRAPPERS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "modules.h"
#include "tracer.h"

/* ------------------------------------------------------------ wrapper_names.c: by the name of a function or the path of a module. Pure. */

enum ptt_kind_of_name {
	PTT_NAME_OF_PROGRAM,
	PTT_NAME_OF_LANGUAGE, /* of C++'s library: a wrapper if the compiler put nothing of the program's into it */
	PTT_NAME_OF_WRAPPER,
};

/* ptt_wrapper_name - decide by the name in a symbol table. */
enum ptt_kind_of_name ptt_wrapper_name(const char *name);

/*
 * ptt_futex_of_name - the kind of lock that threads wait for in a function: a place in catalog/futexes.toml, from 1; 0 if it is
 * none that is known. Such a function is a wrapper.
 */
uint8_t ptt_futex_of_name(const char *name);

/* ptt_futex_is_outer - is there more to be known of the function that called one of this kind? */
bool ptt_futex_is_outer(uint8_t kind);

/* ptt_foreign_module - does a library make calls for a language that the tracer sees nothing of? By its path. */
bool ptt_foreign_module(const char *path);

/* ptt_futex_module - do locks that wait for futexes have names in a module of ptt_wrapper_module()? By its path. */
bool ptt_futex_module(const char *path);

/* ptt_wrapper_module - does all of a library stand between programs and the thread library? By its path. */
bool ptt_wrapper_module(const char *path);

/* ------------------------------------------------------------ wrappers.c: by the symbols of a module */

/* ptt_read_wrappers - from the symbols of a module's file, if that is still what is mapped. As ptt_module_of(). */
void ptt_read_wrappers(struct ptt_module *module, const struct dl_find_object *found) HIDDEN;

/*
 * ptt_find_wrapper - Return: 0 if a function is no wrapper of the module; else its offset and, above it, the kind of futex that threads
 * wait for in it, or 0.
 */
uint64_t ptt_find_wrapper(const struct ptt_module *module, uintptr_t function) HIDDEN;
#define PTT_WRAPPER_FUTEX_SHIFT 32

#endif
