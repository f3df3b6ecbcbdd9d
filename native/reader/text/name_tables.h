/* SPDX-License-Identifier: MIT */
/* name_tables.h - names of threads, objects and code, as the formatters look them up. */
#ifndef PTTREAD_NAMES_H
#define PTTREAD_NAMES_H

#include "../traceset.h"
#include "../pthreads.h"
#include "nptl_trace_events.h"

/* ---- thread_names.c: names of threads from a time on, for the kernel gives ids of ended threads to others ---- */

/* A thread among the threads that had one id, one after the other. */
struct rd_turn {
	int64_t since;
	char *name;  /* NULL = unknown */
	char *label; /* what stands in front of a line, padded; NULL until it is used first */
};

struct rd_turns {
	struct rd_turn *turns; /* in their order, the first one from INT64_MIN on */
	uint32_t count;
	uint32_t room;
	int64_t begun; /* when the only one began, by an event that was printed; INT64_MIN = not known */
};

/* By the thread's number in the reader. */
struct rd_thread_names {
	struct rd_turns *threads;
	uint32_t room;
};

void rd_thread_names_free(struct rd_thread_names *names);
/* rd_turn_at - the thread that has an id at a time; NULL when memory is out. */
struct rd_turn *rd_turn_at(struct rd_thread_names *names, uint32_t thread, int64_t ts);
/* rd_turn_set - a thread of this name has the id from a time on, @text is taken over. Return: 0 or -ENOMEM. */
int rd_turn_set(struct rd_thread_names *names, uint32_t thread, int64_t since, char *text);
/* rd_turn_begin - an event says that a thread begins; without memory the event is forgotten. */
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
	struct rd_map names[3];     /* by kind: (process, address) -> char *, 0 = has none */
	struct rd_pthreads pthreads;
	struct rd_thread_names threads;
	uint32_t label_width;
	bool show_process;
	struct rd_range *ranges;    /* sorted by process and address when `sorted` */
	uint32_t range_count;
	uint32_t range_room;
	bool sorted;
	struct rd_sentence sentences[1024];
	uint8_t pointers[1024];     /* whether a type has address fields */
};

/* rd_name - the name of an address, or NULL. */
static inline const char *rd_name(const struct ptt_names *names, enum ptt_name_kind kind, uint32_t process,
				  uint64_t address)
{
	const struct rd_entry *e = rd_map_find(&names->names[kind], process, address);

	return e ? (const char *)(uintptr_t)e->value : NULL;
}

/* rd_thread_name - the name that a thread of the reader has at a time, or NULL. */
const char *rd_thread_name(struct ptt_names *names, uint32_t thread, int64_t ts);
/* rd_label - pid, tid and name of a thread at a time, padded; NULL when memory is out. */
const char *rd_label(struct ptt_names *names, uint32_t thread, int64_t ts);
/* rd_is_code - whether an address field leads to code rather than to an object. */
bool rd_is_code(const struct ptt_field *field);
/* rd_is_named - whether objects of a domain are variables, which may have names. */
bool rd_is_named(uint32_t domain);

#endif
