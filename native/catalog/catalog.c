/* SPDX-License-Identifier: MIT */
/* catalog.c - search in the event catalogue. */
#include "catalog.h"

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
