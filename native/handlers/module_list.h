/* SPDX-License-Identifier: MIT */
/* module_list.h - the modules that calls come from, since when each, for handlers that no recorder stands behind. */
/*
 * Modules that are closed and loaded can lie at the same addresses one after the other. The tracer says when a module is
 * first called from, and when it is there anew. Notes are appended by threads in the middle of events, and by signal
 * handlers that interrupt them: without locks, and never changed.
 */
#ifndef PTT_MODULE_LIST_H
#define PTT_MODULE_LIST_H

#include <stdint.h>

#include "nptl_trace.h"

/* A program that closes and loads modules more often than this has what it called from first. */
#define MODULE_NOTES_MAX 1024u
#define MODULE_PATH_MAX 240u

struct module_note {
	uint64_t start, end, bias;
	uint64_t since; /* on the handler's clock */
	uint32_t build_id_size;
	uint32_t ready; /* all of it is there */
	uint8_t build_id[32];
	char path[MODULE_PATH_MAX]; /* absolute; empty for the program itself */
};

/* module_list_add - calls come from @module since @now. Lock-free, async-signal-safe, keeps errno. */
void module_list_add(const struct nptl_trace_module *module, uint64_t now);

/* module_list_at - a note by its number, in the order of their making, or NULL if there is no such note (yet) */
const struct module_note *module_list_at(uint32_t number);

/* module_list_find - the module that has @address now, or NULL. Lock-free, async-signal-safe. */
const struct module_note *module_list_find(uint64_t address);

#endif
