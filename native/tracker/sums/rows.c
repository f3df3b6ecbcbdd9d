/* SPDX-License-Identifier: MIT */
/* rows.c - rows that are handed out and dropped. */
#include "sums.h"

void *md_row(struct ptt_model *m, struct md_rows *rows)
{
	void *row;

	if (rows->count == rows->room) {
		uint64_t room = rows->room ? rows->room * 2 : 4096;
		void *bigger = realloc(rows->items, room * rows->size);

		if (!bigger) {
			m->t.error = -ENOMEM;
			return NULL;
		}
		rows->items = bigger;
		rows->room = room;
	}
	row = rows->items + rows->count++ * rows->size;
	memset(row, 0, rows->size);
	return row;
}
