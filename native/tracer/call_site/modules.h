/* SPDX-License-Identifier: MIT */
/* modules.h - the modules that the program's calls come from, each known once however often it is loaded. */
#ifndef PTT_MODULES_H
#define PTT_MODULES_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/missing.h"
#include "tracer.h"

/* _dl_find_object() of glibc 2.35, which takes no lock; before that nothing is ever found. */
extern int (*ptt_find_object)(void *address, struct dl_find_object *found) HIDDEN;

/* A module at an address. Its entry stays, so that the module has the same entry when it is loaded there again. */
struct ptt_module {
	uintptr_t begin, end;
	uintptr_t base;		    /* what to add to addresses of its file */
	uint64_t identity;	    /* of its contents */
	const struct link_map *map; /* of the last time that it was loaded */
	struct ptt_module *next;
	bool present;		    /* the handler got it since it was loaded */
	bool passed_over;	    /* nothing of the program is to be seen in it */
	bool foreign;		    /* nor in what calls it */
	uint32_t mask;		    /* wrappers: offsets of functions, hashed, 0 where there is none */
	const uint64_t *wrappers;   /* or NULL */
};

/*
 * ptt_module_of - the entry of a module that was found.
 *
 * Reads the symbols of a module that it sees for the first time, and reports to the handler a module that was not there at the last
 * event. Safe in signal handlers, no cancellation point, keeps errno; takes no lock.
 * Return: NULL if it is not known and cannot be looked at now.
 */
const struct ptt_module *ptt_module_of(const struct dl_find_object *found) HIDDEN;

/* ptt_module_extent - from where to where a module that was found lies, all its segments. */
void ptt_module_extent(const struct dl_find_object *found, uintptr_t *begin, uintptr_t *end) HIDDEN;

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

/* What is being closed: see platform/upcalls.h. */
extern uint64_t ptt_closing_count HIDDEN;

/* ptt_take_memory - memory.c: zeroed memory for what is known of modules, never given back; NULL if there is none. Safe in signal handlers. */
void *ptt_take_memory(size_t size) HIDDEN;

#endif
