/* SPDX-License-Identifier: MIT */
/* handler.h - what handler.c, which knows the handler, offers start.c, which knows when it is its turn. */
#ifndef PTT_HANDLER_H
#define PTT_HANDLER_H

#include "tracer.h"

/*
 * ptt_load_handler - the handler that the value of PTHREAD_NPTL_TRACE names. Return: false if there is no such handler; a message says
 * so.
 */
bool ptt_load_handler(const char *variable) HIDDEN;

/*
 * ptt_tracing_option - the value of @key, which stands behind the levels in the variable. Return: false if nothing, or if there is no
 * room for it.
 */
bool ptt_tracing_option(const char *key, char *value, size_t size) HIDDEN;

/* ptt_path_beside_us - the path of a file in the directory of this library. Return: false if it cannot be read. */
bool ptt_path_beside_us(const char *file, char *path, size_t size) HIDDEN;

/* ptt_begin_handler - let the handler begin. Levels stay 0 meanwhile. Return: false if the handler cannot work. */
bool ptt_begin_handler(void) HIDDEN;

/* ptt_begin_levels - from now on there are events, and others may change the levels. */
void ptt_begin_levels(void) HIDDEN;

/* ptt_begin_levels_attached - the same, where nobody may: in the child of a fork they have to be 0 at once. */
void ptt_begin_levels_attached(void) HIDDEN;

/* ptt_session_directory - where the files of the recording are. Return: false if there is none, or no room for its @path. */
bool ptt_session_directory(char *path, size_t size) HIDDEN;

/* ptt_handler_address - of a function of the handler. */
uintptr_t ptt_handler_address(void) HIDDEN;

/* ptt_traces_children - whether programs of other processes are traced too. */
bool ptt_traces_children(void) HIDDEN;

/* ptt_end_handler - its last call. */
void ptt_end_handler(void) HIDDEN;

#endif
