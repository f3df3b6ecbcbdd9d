/* SPDX-License-Identifier: MIT */
/* names.h - names of event types: those of the standard, and the table that a family of processes shares. */
#ifndef PX_NAMES_H
#define PX_NAMES_H

#include "registry.h"

/* px_standard_name - of an event type that every stream has; NULL of all others. */
const char *px_standard_name(trace_event_id_t id);
trace_event_id_t px_standard_id(const char *name);

/*
 * px_names_open - the table of the family that @control names; if it names none, @like's, or else one of its own
 * @pid, @start: the process of the control page
 * Return: NULL if it cannot be had. Blocks; unmapped with px_names_close().
 */
struct px_names *px_names_open(const struct px_path *directory, uint32_t user, struct px_control *control, uint32_t pid,
			       uint64_t start);
void px_names_close(struct px_names *names);

/* px_names_private - a table for this process alone, where there is no place to share one. */
struct px_names *px_names_private(void);

/* px_names_find, _add - id of a name; 0 if there is none, or no room. Both lock. */
trace_event_id_t px_names_find(struct px_names *names, const char *name);
trace_event_id_t px_names_add(struct px_names *names, const char *name, bool system);

/* px_names_of - the name of an event type; NULL if it has none. Standard names too; @names may be NULL. */
const char *px_names_of(const struct px_names *names, trace_event_id_t id);

/* px_names_next - the first event type after @id that has a name; 0 = no more. */
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
