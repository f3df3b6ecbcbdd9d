/* SPDX-License-Identifier: MIT */
/* choice.c - chosen objects: the parts that change the choice. */
#include "choice.h"

#include <stdlib.h>

int rd_choice_add(struct rd_choice *choice, uint32_t process, uint64_t address, uint32_t kind, int64_t begin_ns,
		  int64_t end_ns)
{
	struct rd_entry *e = rd_map_put(&choice->places, process, address);

	if (!e)
		return -1;
	if (choice->count == choice->room) {
		uint32_t room = choice->room ? choice->room * 2 : 16;
		struct rd_span *more = realloc(choice->spans, room * sizeof(*more));

		if (!more)
			return -1;
		choice->spans = more;
		choice->room = room;
	}
	choice->spans[choice->count++] = (struct rd_span){ begin_ns, end_ns, kind, (uint32_t)e->value };
	e->value = choice->count;
	return 0;
}

void rd_choice_free(struct rd_choice *choice)
{
	rd_map_free(&choice->places);
	free(choice->spans);
	*choice = (struct rd_choice){ 0 };
}
