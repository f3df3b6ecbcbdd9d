/* SPDX-License-Identifier: MIT */
/* catalog.h - the event catalogue as C data: names, fields, sentences. */
#ifndef PTT_CATALOG_H
#define PTT_CATALOG_H

#include <stddef.h>
#include <stdint.h>

enum ptt_field_type {
	PTT_FIELD_U8,
	PTT_FIELD_U16,
	PTT_FIELD_U32,
	PTT_FIELD_TID,
	PTT_FIELD_S32,
	PTT_FIELD_U64,
	PTT_FIELD_S64,
	PTT_FIELD_NS,
	PTT_FIELD_PTR,
	PTT_FIELD_BYTES,
};

struct ptt_field {
	const char *name;
	uint8_t type;
	uint8_t offset; /* in the parameter struct, which begins with 16 bytes for object and site */
};

struct ptt_event_type {
	uint16_t id; /* domain << 6 | number */
	uint8_t level;
	uint8_t slots;     /* fixed continuation slots */
	uint8_t has_bytes; /* the last field is variable */
	uint8_t field_count;
	const struct ptt_field *fields;
	const char *name;
	const char *object; /* the kind of the event's object */
	const char *role;
	const char *text; /* sentence template */
};

/* Sorted by id. */
extern const struct ptt_event_type ptt_event_types[];
extern const unsigned int ptt_event_type_count;

/* Indexed by domain id; NULL for an unused id. */
extern const char *const ptt_domain_names[16];

/* The purposes of low-level locks, by the number in their events. */
extern const char *const ptt_lll_purposes[];
extern const unsigned int ptt_lll_purpose_count;

/* Types of other libraries' locks, by the number in their events; 0 is none. Higher numbers belong to a user's file. */
extern const char *const ptt_lock_types[];
extern const unsigned int ptt_lock_type_count;

/* The purpose of the futex that a thread waits for: the field `lock` of FUTEX_WAIT_IN is an index of ptt_futex_kinds. */
enum ptt_futex_waits { PTT_FUTEX_UNKNOWN, PTT_FUTEX_LOCK, PTT_FUTEX_WORK };
struct ptt_futex_kind {
	const char *name;
	unsigned char waits;  /* enum ptt_futex_waits: a thread waits for a lock of another thread, or for work */
	unsigned char anyone; /* a signal handler, and not only a thread, may end a wait */
	unsigned char hold;   /* a hold lasts from the end of a wait to the next wake-up by the same thread */
};
extern const struct ptt_futex_kind ptt_futex_kinds[]; /* the first kind is for futexes of unknown purpose */
extern const unsigned int ptt_futex_kind_count;

/* System calls of sleeping threads, by the number in their events; 0 is none. */
extern const char *const ptt_sys_calls[];
extern const unsigned int ptt_sys_call_count;

/* TSDL of the event classes of PTT's classic records (stream class 1). */
extern const char ptt_metadata_record_events[];

/* ptt_event_type_find - event type with an id, or NULL. Reads constants only: safe anywhere. */
const struct ptt_event_type *ptt_event_type_find(unsigned int id);

/*
 * ptt_routine_name - the routine that an error event names by its number in the event's domain, or NULL. The name has
 * *@size characters and no zero behind them. Safe anywhere.
 */
const char *ptt_routine_name(unsigned int error_id, unsigned int number, size_t *size);

#endif
