/* SPDX-License-Identifier: MIT */
/* handler.h - load, begin and end of the handler, and options in PTHREAD_NPTL_TRACE. */
#ifndef PTT_HANDLER_H
#define PTT_HANDLER_H

#include "tracer.h"

/*
 * ptt_load_handler - load the handler that the value of PTHREAD_NPTL_TRACE names. Return: false if that fails; then a
 * message was printed.
 */
bool ptt_load_handler(const char *variable) HIDDEN;

/*
 * ptt_tracing_option - the value of an option: items "key=value", joined by ';', stand behind the levels in the
 * variable. Return: false if the option is missing, or too long for @value.
 */
bool ptt_tracing_option(const char *key, char *value, size_t size) HIDDEN;

/* ptt_path_beside_us - the path of a file in the directory of this library. Return: false if the file cannot be read. */
bool ptt_path_beside_us(const char *file, char *path, size_t size) HIDDEN;

/* ptt_begin_handler - call the handler's init function. Levels are 0 meanwhile. Return: false if the handler cannot work. */
bool ptt_begin_handler(void) HIDDEN;

/* ptt_begin_levels - set the levels: events begin, and other processes may change the levels from now on. */
void ptt_begin_levels(void) HIDDEN;

/*
 * ptt_begin_levels_attached - the same, but no other process may change the levels: in a child of a fork they must be
 * 0 at once.
 */
void ptt_begin_levels_attached(void) HIDDEN;

/*
 * ptt_session_directory - the directory of the recording's files. Return: false if there is none, or if its path is
 * too long for @path.
 */
bool ptt_session_directory(char *path, size_t size) HIDDEN;

/* ptt_needs_no_recorder - does the handler keep a black box, which no recorder has to drain? */
bool ptt_needs_no_recorder(void) HIDDEN;

/* ptt_handler_address - the address of a function of the handler. */
uintptr_t ptt_handler_address(void) HIDDEN;

/* ptt_traces_children - are child processes traced, too? */
bool ptt_traces_children(void) HIDDEN;

/* ptt_end_handler - call the handler's fini function. */
void ptt_end_handler(void) HIDDEN;

#endif
