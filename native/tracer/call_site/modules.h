/* SPDX-License-Identifier: MIT */
/* modules.h - the modules that the program's calls come from. A module has one entry, however often it is loaded. */
#ifndef PTT_MODULES_H
#define PTT_MODULES_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/missing.h"
#include "tracer.h"

/* _dl_find_object() of glibc 2.35, which takes no lock. In older versions it finds nothing. */
extern int (*ptt_find_object)(void *address, struct dl_find_object *object) HIDDEN;

/* A module at an address. Entries stay: a module that is loaded there again has the same entry. */
struct ptt_module {
	uintptr_t begin, end;
	uintptr_t base;		    /* address in memory minus address in the file */
	uint64_t identity;	    /* hash of the build-id, or of the program headers and the path */
	const struct link_map *map; /* of the last load */
	struct ptt_module *next;
	bool present;		    /* the handler received it since the last load */
	bool passed_over;	    /* no function of the module is a call site */
	bool foreign;		    /* nor is a function that calls it */
	uint32_t mask;		    /* of the hash table wrappers */
	const uint64_t *wrappers;   /* see ptt_find_wrapper(); 0: empty place; NULL: no wrappers */
};

/*
 * ptt_module_of - the entry of a module
 *
 * Reads the symbols of a new module. Reports a module to the handler if it was loaded since the last event. Safe in
 * signal handlers, no cancellation point, keeps errno; takes no lock.
 * Return: NULL if the module is new and cannot be read now.
 */
const struct ptt_module *ptt_module_of(const struct dl_find_object *object) HIDDEN;

/* ptt_module_extent - first and last address of a module, over all its segments. */
void ptt_module_extent(const struct dl_find_object *object, uintptr_t *begin, uintptr_t *end) HIDDEN;

/* ptt_module_holds - is an address in a module, as the dynamic linker knows the module? */
static inline bool ptt_module_holds(const struct dl_find_object *object, const void *address)
{
	return address >= object->dlfo_map_start && address < object->dlfo_map_end;
}

enum ptt_kind_of_code {
	PTT_CODE_PROGRAM, /* of the program, or of a library that the user may care about */
	PTT_CODE_WRAPPER, /* such as std::mutex::lock(): its caller is the call site */
	PTT_CODE_RUNTIME, /* the same, in a library without call sites, such as libstdc++ */
	PTT_CODE_LIBRARY, /* the C library and the tracer, which call back functions of the program */
};

/*
 * ptt_kind_of_code - the kind of a function
 * @module: the module of the function
 * @function: start address
 *
 * Reads the symbols of a new module: opens, maps and closes its file. Otherwise as ptt_module_of().
 */
enum ptt_kind_of_code ptt_kind_of_code(const struct dl_find_object *module, uintptr_t function);

/* ptt_futex_kind - as ptt_futex_of_name(), by the address of a function. Otherwise as ptt_kind_of_code(). */
uint8_t ptt_futex_kind(const struct dl_find_object *module, uintptr_t function);

/* Counts calls of dlclose() in progress, and all calls: see platform/upcalls.h. */
extern uint64_t ptt_closing_count HIDDEN;

/*
 * ptt_take_memory - memory.c: zeroed memory for entries of modules, never freed; NULL: out of memory. Safe in signal
 * handlers.
 */
void *ptt_take_memory(size_t size) HIDDEN;

#endif
