/* SPDX-License-Identifier: MIT */
/* catalog.c - search in the event catalogue. */
#include "catalog.h"

#include <string.h>

const struct ptt_event_type *ptt_event_type_find(unsigned int id)
{
	unsigned int lo = 0, hi = ptt_event_type_count;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (ptt_event_types[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < ptt_event_type_count && ptt_event_types[lo].id == id)
		return &ptt_event_types[lo];
	return 0;
}

const char *ptt_routine_name(unsigned int error_id, unsigned int number, size_t *size)
{
	const struct ptt_event_type *type = number < 63 ? ptt_event_type_find((error_id & ~63u) | number) : NULL;

	if (!type)
		return NULL;
	*size = strlen(type->name);
	if (*size > 3 && strcmp(type->name + *size - 3, "_IN") == 0)
		*size -= 3;
	return type->name;
}
