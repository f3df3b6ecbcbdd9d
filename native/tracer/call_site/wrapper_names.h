/* SPDX-License-Identifier: MIT */
/* wrapper_names.h - is a function a wrapper of thread functions, by its name? */
#ifndef PTT_WRAPPER_NAMES_H
#define PTT_WRAPPER_NAMES_H

#include <stdbool.h>

enum ptt_kind_of_name {
	PTT_NAME_OF_PROGRAM,
	PTT_NAME_OF_LANGUAGE, /* of C++'s library: a wrapper if the compiler put nothing of the program's into it */
	PTT_NAME_OF_WRAPPER,
};

/* ptt_wrapper_name - decide by the name in a symbol table. Pure. */
enum ptt_kind_of_name ptt_wrapper_name(const char *name);

/* ptt_foreign_module - does a library make calls for a language that the tracer sees nothing of? By its path. Pure. */
bool ptt_foreign_module(const char *path);

/* ptt_wrapper_module - does all of a library stand between programs and the thread library? By its path. Pure. */
bool ptt_wrapper_module(const char *path);

#endif
