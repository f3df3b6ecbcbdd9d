/* SPDX-License-Identifier: MIT */
/* names.h - names of event types: the standard names, and the table of names that a family of processes shares. */
#ifndef PX_NAMES_H
#define PX_NAMES_H

#include "registry.h"

/* px_standard_id - the id of an event type that POSIX names (<trace.h>); 0 for any other name. */
trace_event_id_t px_standard_id(const char *name);

/*
 * px_names_open - map the table of the family that @control names; if it names no family, begin the family of @pid, @start
 * @pid, @start: the process of the control page
 * Return: NULL if the table cannot be opened. Blocks; unmap the table with px_names_close().
 */
struct px_names *px_names_open(const struct px_path *directory, uint32_t user, struct px_control *control, uint32_t pid,
			       uint64_t start);
void px_names_close(struct px_names *names);

/* px_names_private - a table for this process alone, for a user without a directory. */
struct px_names *px_names_private(void);

/* px_names_find, _add - id of a name; 0 if there is no such name, or no room. Both take the lock of the table. */
trace_event_id_t px_names_find(struct px_names *names, const char *name);
trace_event_id_t px_names_add(struct px_names *names, const char *name, bool system);

/* px_names_of - the name of an event type, standard types included; NULL if it has no name. @names may be NULL. */
const char *px_names_of(const struct px_names *names, trace_event_id_t id);

/* px_names_next - the first event type after @id that has a name; 0 = no more types. */
trace_event_id_t px_names_next(const struct px_names *names, trace_event_id_t id);

static inline uint32_t px_user_count(const struct px_names *names)
{
	/* acquire: pairs with the release of the thread that added the name */
	return names ? __atomic_load_n(&names->user_count, __ATOMIC_ACQUIRE) : 0;
}

static inline uint32_t px_system_count(const struct px_names *names)
{
	return names ? __atomic_load_n(&names->system_count, __ATOMIC_ACQUIRE) : 0;
}

#endif
