/* SPDX-License-Identifier: MIT */
/* wrapper_names.h - is a function a wrapper of thread functions, by its name? */
#ifndef PTT_WRAPPER_NAMES_H
#define PTT_WRAPPER_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum ptt_kind_of_name {
	PTT_NAME_OF_PROGRAM,
	PTT_NAME_OF_LANGUAGE, /* of C++'s library: a wrapper if the compiler put nothing of the program's into it */
	PTT_NAME_OF_WRAPPER,
};

/* ptt_wrapper_name - decide by the name in a symbol table. Pure. */
enum ptt_kind_of_name ptt_wrapper_name(const char *name);

/*
 * ptt_futex_of_name - the kind of lock that threads wait for in a function: a place in catalog/futexes.toml, from 1; 0 if it is
 * none that is known. Such a function is a wrapper. Pure.
 */
uint8_t ptt_futex_of_name(const char *name);

/* ptt_futex_is_outer - is there more to be known of the function that called one of this kind? Pure. */
bool ptt_futex_is_outer(uint8_t kind);

/* ptt_foreign_module - does a library make calls for a language that the tracer sees nothing of? By its path. Pure. */
bool ptt_foreign_module(const char *path);

/* ptt_futex_module - do locks that wait for futexes have names in a module of ptt_wrapper_module()? By its path. Pure. */
bool ptt_futex_module(const char *path);

/* ptt_wrapper_module - does all of a library stand between programs and the thread library? By its path. Pure. */
bool ptt_wrapper_module(const char *path);

#endif
