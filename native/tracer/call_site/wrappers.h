/* SPDX-License-Identifier: MIT */
/* wrappers.h - wrappers: functions between a program and the thread library, which are never the call site. */
#ifndef PTT_WRAPPERS_H
#define PTT_WRAPPERS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "modules.h"
#include "tracer.h"

/* ------------------------------------------------------------ wrapper_names.c: by names of functions and paths of modules; pure */

enum ptt_kind_of_name {
	PTT_NAME_OF_PROGRAM,
	PTT_NAME_OF_LANGUAGE, /* of the C++ library: a wrapper unless the compiler inlined code of the program */
	PTT_NAME_OF_WRAPPER,
};

/* ptt_wrapper_name - decide by the name in a symbol table. */
enum ptt_kind_of_name ptt_wrapper_name(const char *name);

/*
 * ptt_futex_of_name - the kind of lock that threads wait for in a function: an index in catalog/futexes.toml, from 1;
 * 0: no known kind. A function with a kind is a wrapper.
 */
uint8_t ptt_futex_of_name(const char *name);

/* ptt_futex_is_outer - may the caller of a function of this kind have a kind that says more? */
bool ptt_futex_is_outer(uint8_t kind);

/*
 * ptt_foreign_module - does a library make calls for another language, without frames that the tracer can read? By
 * its path.
 */
bool ptt_foreign_module(const char *path);

/* ptt_futex_module - in a module of ptt_wrapper_module(), do functions that wait for futexes have names? By its path. */
bool ptt_futex_module(const char *path);

/* ptt_wrapper_module - are all functions of a library wrappers? By its path. */
bool ptt_wrapper_module(const char *path);

/* ------------------------------------------------------------ wrappers.c: by the symbols of a module */

/* ptt_read_wrappers - fill in the wrappers of a module from the symbols of its file, if that file is the mapped file. As ptt_module_of(). */
void ptt_read_wrappers(struct ptt_module *module, const struct dl_find_object *object) HIDDEN;

/*
 * ptt_find_wrapper - look up a function of a module. Return: 0 if it is no wrapper; else its offset in the low 32
 * bits, and above them ptt_futex_of_name() of its name.
 */
uint64_t ptt_find_wrapper(const struct ptt_module *module, uintptr_t function) HIDDEN;
#define PTT_WRAPPER_FUTEX_SHIFT 32

#endif
