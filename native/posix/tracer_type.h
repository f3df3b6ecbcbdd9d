/* SPDX-License-Identifier: MIT */
/* tracer_type.h - the names of the tracer's event types in POSIX streams. */
#ifndef PX_TRACER_TYPE_H
#define PX_TRACER_TYPE_H

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "catalog.h"

#define PX_TRACER_NAME 64u

/*
 * px_tracer_type_name - "nptl_" and the name in lower case. Several types may have the same name, if they say the same with
 * different fields. All but the first then end in their number, as in nptl_mutex_taken.4.
 */
static inline void px_tracer_type_name(char name[PX_TRACER_NAME], const struct ptt_event_type *type)
{
	const struct ptt_event_type *other = ptt_event_types;
	size_t length = (size_t)snprintf(name, PX_TRACER_NAME, "nptl_%s", type->name);

	while (strcmp(other->name, type->name) != 0)
		other++;
	if (other != type && length < PX_TRACER_NAME)
		snprintf(name + length, PX_TRACER_NAME - length, ".%u", type->id & 63u);
	for (; *name; name++)
		*name = (char)tolower((unsigned char)*name);
}

#endif
