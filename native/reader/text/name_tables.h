/* SPDX-License-Identifier: MIT */
/* name_tables.h - names of threads, objects and code for the lines of events. */
#ifndef PTTREAD_NAMES_H
#define PTTREAD_NAMES_H

#include "../traceset.h"
#include "../pthreads.h"
#include "nptl_trace_events.h"

/* ---- thread_names.c: names of threads from a time on, because the kernel reuses the ids of ended threads ---- */

/* One of the threads that had the same id, one after the other. */
struct rd_turn {
	int64_t since;
	char *name;  /* NULL = unknown */
	char *label; /* begin of a line, padded; NULL until its first use */
};

struct rd_turns {
	struct rd_turn *turns; /* in order of time; the first turn begins at INT64_MIN */
	uint32_t count;
	uint32_t room;
	int64_t begun; /* beginning of the only turn, by a printed event; INT64_MIN = not known */
};

/* By the thread's number in the reader. */
struct rd_thread_names {
	struct rd_turns *threads;
	uint32_t room;
};

void rd_thread_names_free(struct rd_thread_names *names);
/* rd_turn_at - the turn of a thread at a time; NULL if there is no memory. */
struct rd_turn *rd_turn_at(struct rd_thread_names *names, uint32_t thread, int64_t ts);
/* rd_turn_set - the thread has this name from a time on; takes @text over. Return: 0 or -ENOMEM. */
int rd_turn_set(struct rd_thread_names *names, uint32_t thread, int64_t since, char *text);
/* rd_turn_begin - an event begins a thread; without memory it is ignored. */
void rd_turn_begin(struct rd_thread_names *names, uint32_t thread, int64_t ts);

/* ---- name_tables.c ---- */

#define RD_NAME_MAX 1024u /* longer names are cut */

enum rd_op_kind { RD_OP_TEXT, RD_OP_THREAD, RD_OP_OBJECT, RD_OP_FIELD };

struct rd_op {
	enum rd_op_kind kind;
	uint32_t field;
	const char *text;
	uint32_t size;
};

/* The sentence of an event type, cut at its braces. */
struct rd_sentence {
	const struct ptt_event_type *type;
	struct rd_op *ops;
	uint32_t count;
};

struct rd_range {
	uint32_t process;
	uint64_t from;
	uint64_t to;
};

struct ptt_names {
	struct ptt_reader *reader;
	struct rd_map names[3];     /* by kind: (process, address) -> char *, 0 = no name */
	struct rd_pthreads pthreads;
	struct rd_thread_names threads;
	uint32_t label_width;
	bool show_process;
	struct rd_range *ranges;    /* sorted by process and address when `sorted` */
	uint32_t range_count;
	uint32_t range_room;
	bool sorted;
	struct rd_sentence sentences[1024];
	uint8_t pointers[1024];     /* by event id: the type has address fields */
};

/* rd_name - the name of an address, or NULL. */
static inline const char *rd_name(const struct ptt_names *names, enum ptt_name_kind kind, uint32_t process,
				  uint64_t address)
{
	const struct rd_entry *e = rd_map_find(&names->names[kind], process, address);

	return e ? (const char *)(uintptr_t)e->value : NULL;
}

/* rd_thread_name - the name of a thread at a time, or NULL. */
const char *rd_thread_name(struct ptt_names *names, uint32_t thread, int64_t ts);
/* rd_label - pid, tid and name of a thread at a time, padded; NULL if there is no memory. */
const char *rd_label(struct ptt_names *names, uint32_t thread, int64_t ts);
/* rd_is_code - does an address field point to code, rather than to an object? */
bool rd_is_code(const struct ptt_field *field);
/* rd_is_named - are objects of a domain variables, which may have names? */
bool rd_is_named(uint32_t domain);

#endif
