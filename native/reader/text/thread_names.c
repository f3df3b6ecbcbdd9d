/* SPDX-License-Identifier: MIT */
/* thread_names.c - names of threads from a time on: the kernel reuses the ids of ended threads. */
#include "name_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../traceset.h"

void rd_thread_names_free(struct rd_thread_names *names)
{
	for (uint32_t i = 0; i < names->room; i++) {
		struct rd_turns *t = &names->threads[i];

		for (uint32_t k = 0; k < t->count; k++) {
			free(t->turns[k].name);
			free(t->turns[k].label);
		}
		free(t->turns);
	}
	free(names->threads);
}

/* Return: the index behind the last turn that began at @ts or before. */
static uint32_t index_behind(const struct rd_turns *t, int64_t ts)
{
	uint32_t at = t->count;

	while (at && t->turns[at - 1].since > ts)
		at--;
	return at;
}

static struct rd_turn *insert(struct rd_turns *t, uint32_t at, int64_t since)
{
	if (rd_grow((void **)&t->turns, &t->room, t->count, sizeof(*t->turns)) < 0)
		return NULL;
	memmove(&t->turns[at + 1], &t->turns[at], (t->count - at) * sizeof(*t->turns));
	t->count++;
	t->turns[at] = (struct rd_turn){ .since = since };
	return &t->turns[at];
}

/* The turns of a thread, at least the turn without a beginning; NULL if there is no memory. */
static struct rd_turns *turns_of(struct rd_thread_names *names, uint32_t thread)
{
	if (thread >= names->room) {
		uint32_t want = names->room ? names->room : 64;
		struct rd_turns *bigger;

		while (want <= thread)
			want *= 2;
		bigger = realloc(names->threads, want * sizeof(*bigger));
		if (!bigger)
			return NULL;
		for (uint32_t i = names->room; i < want; i++)
			bigger[i] = (struct rd_turns){ .begun = INT64_MIN };
		names->threads = bigger;
		names->room = want;
	}
	if (!names->threads[thread].count && !insert(&names->threads[thread], 0, INT64_MIN))
		return NULL;
	return &names->threads[thread];
}

struct rd_turn *rd_turn_at(struct rd_thread_names *names, uint32_t thread, int64_t ts)
{
	struct rd_turns *t = turns_of(names, thread);

	return t ? &t->turns[index_behind(t, ts) - 1] : NULL;
}

int rd_turn_set(struct rd_thread_names *names, uint32_t thread, int64_t since, char *text)
{
	struct rd_turns *t = turns_of(names, thread);
	struct rd_turn *turn = NULL;

	if (t) {
		turn = &t->turns[index_behind(t, since) - 1];
		if (turn->since != since)
			turn = insert(t, index_behind(t, since), since);
	}
	if (!turn) {
		free(text);
		return -ENOMEM;
	}
	free(turn->name);
	free(turn->label);
	turn->name = text;
	turn->label = NULL;
	return 0;
}

void rd_turn_begin(struct rd_thread_names *names, uint32_t thread, int64_t ts)
{
	struct rd_turns *t = turns_of(names, thread);
	uint32_t at;

	if (!t || ts == t->begun)
		return;
	/* The event is the beginning of the only known turn, unless that turn has a beginning. */
	if (t->count == 1 && t->begun == INT64_MIN) {
		t->begun = ts;
		return;
	}
	at = index_behind(t, ts);
	if (t->turns[at - 1].since != ts)
		insert(t, at, ts);
}
