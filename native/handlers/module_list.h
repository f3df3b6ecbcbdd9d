/* SPDX-License-Identifier: MIT */
/* module_list.h - the modules that calls come from, and since when, for handlers without a recorder. */
/*
 * Modules that are closed and loaded can lie at the same addresses, one after the other. The tracer reports when a call
 * first comes from a module, and when a module is loaded again. Threads in the middle of events, and signal handlers that
 * interrupt them, append notes: without locks. Notes never change.
 */
#ifndef PTT_MODULE_LIST_H
#define PTT_MODULE_LIST_H

#include <link.h>
#include <stdint.h>

#include "nptl_trace.h"

/* A program that closes and loads modules more often than this keeps its first notes only. */
#define MODULE_NOTES_MAX 1024u
#define MODULE_PATH_MAX 240u

struct module_note {
	uint64_t start, end, bias;
	uint64_t since; /* on the handler's clock */
	uint32_t build_id_size;
	uint32_t ready; /* 1 = the note is complete */
	uint8_t build_id[32];
	char path[MODULE_PATH_MAX]; /* absolute; empty for the program itself */
};

/* module_list_add - calls come from @module since @now, on the handler's clock. Lock-free, async-signal-safe, keeps errno. */
void module_list_add(const struct nptl_trace_module *module, uint64_t now);

/* module_list_at - note @number, in the order of the calls of module_list_add(); NULL if there is no such note (yet). */
const struct module_note *module_list_at(uint32_t number);

/* module_list_find - the latest module at @address, or NULL. Lock-free, async-signal-safe. */
const struct module_note *module_list_find(uint64_t address);

/* module_list_span - the lowest address of a module's segments, and the end of the highest segment. */
void module_list_span(const struct dl_phdr_info *info, uint64_t *start, uint64_t *end);

#endif
