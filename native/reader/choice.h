/* SPDX-License-Identifier: MIT */
/* choice.h - objects that the user chose: an address, in a part of the time. */
#ifndef PTTREAD_CHOICE_H
#define PTTREAD_CHOICE_H

#include <stdbool.h>

#include "hash_map.h"
#include "tables.h"

/* Every process, or every kind. */
#define RD_EVERY UINT32_MAX

struct rd_span {
	int64_t begin_ns, end_ns; /* [begin, end) */
	uint32_t kind;
	uint32_t next; /* another span of this address, from 1 on; 0: none */
};

struct rd_choice {
	struct rd_map places; /* (process, address): the first span, from 1 on */
	struct rd_span *spans;
	uint32_t count, room;
};

/* rd_choice_add - chooses one kind of object at an address, in a part of the time. Return: -1 if there is no memory. */
static inline int rd_choice_add(struct rd_choice *choice, uint32_t process, uint64_t address, uint32_t kind,
				int64_t begin_ns, int64_t end_ns)
{
	struct rd_entry *e = rd_map_put(&choice->places, process, address);

	if (!e || rd_grow((void **)&choice->spans, &choice->room, choice->count, sizeof(*choice->spans)) < 0)
		return -1;
	choice->spans[choice->count++] = (struct rd_span){ begin_ns, end_ns, kind, (uint32_t)e->value };
	e->value = choice->count;
	return 0;
}

static inline void rd_choice_free(struct rd_choice *choice)
{
	rd_map_free(&choice->places);
	free(choice->spans);
	*choice = (struct rd_choice){ 0 };
}

static inline bool rd_choice_spans(const struct rd_choice *choice, uint32_t process, uint64_t address, uint32_t kind,
				   int64_t ts_ns)
{
	const struct rd_entry *e = rd_map_find(&choice->places, process, address);
	const struct rd_span *span;

	for (uint64_t at = e ? e->value : 0; at; at = span->next) {
		span = &choice->spans[at - 1];
		if ((span->kind == kind || span->kind == RD_EVERY) && span->begin_ns <= ts_ns && ts_ns < span->end_ns)
			return true;
	}
	return false;
}

/* rd_chosen - is the object at an address at a time chosen? Neither blocks nor allocates. */
static inline bool rd_chosen(const struct rd_choice *choice, uint32_t process, uint64_t address, uint32_t kind,
			     int64_t ts_ns)
{
	return rd_choice_spans(choice, process, address, kind, ts_ns) ||
	       rd_choice_spans(choice, RD_EVERY, address, kind, ts_ns);
}

#endif
