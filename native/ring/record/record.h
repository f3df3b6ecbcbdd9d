/* SPDX-License-Identifier: MIT */
/* record.h - the classic record: makes it from an event, checks it, finds the next record behind damage. Layout: ptt_abi.h. */
/*
 * Writers and readers of records share these functions. All of them are pure: safe in any thread and in signal handlers, no
 * allocation, no system call.
 *
 *   ptt_record_make     in the traced process
 *   ptt_record_look     in readers of records: drain of the shared buffer, file handler, trace reader
 *   ptt_record_resync   the same, after words that are no record
 */
#ifndef PTT_RECORD_H
#define PTT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nptl_trace.h"
#include "../layout/ptt_abi.h"

/* Room for any event without variable data. */
#define PTT_RECORD_SMALL 48u

static inline uint32_t ptt_record_word0(uint32_t id, uint32_t words)
{
	return words << 16 | id;
}

static inline uint64_t ptt_record_get64(const uint32_t *word)
{
	return (uint64_t)word[1] << 32 | word[0];
}

static inline void ptt_record_put64(uint32_t *word, uint64_t value)
{
	word[0] = (uint32_t)value;
	word[1] = (uint32_t)(value >> 32);
}

/* ptt_record_checksum - checksum of @count words. The rotation makes the checksum depend on their order. */
static inline uint32_t ptt_record_checksum(const uint32_t *word, uint32_t count)
{
	uint32_t sum = 0, i;

	for (i = 0; i < count; i++)
		sum = (sum << 1 | sum >> 31) + word[i];
	return sum;
}

/*
 * ptt_record_make - put an event into words, all but time, pid, tid and checksum
 * @room: words at @record; PTT_RECORD_SMALL is enough if ptt_record_is_small()
 * @site: call site of an event of the program; NPTL events carry their own
 * Return: length of the record in words, or 0 if the event cannot be recorded.
 */
uint32_t ptt_record_make(uint32_t *record, uint32_t room, const struct nptl_trace_event *event, const void *site);

/* ptt_record_is_small - does the event fit in PTT_RECORD_SMALL words? */
static inline bool ptt_record_is_small(const struct nptl_trace_event *event)
{
	return event->source != NPTL_TRACE_SOURCE_PROGRAM && event->param_size <= 96;
}

/* ptt_record_finish - fill in the parts that are known last. */
static inline void ptt_record_finish(uint32_t *record, uint32_t words, uint64_t time, uint32_t pid, uint32_t tid)
{
	ptt_record_put64(record + 1, time);
	record[3] = pid;
	record[4] = tid;
	record[words - 1] = ptt_record_checksum(record, words - 1);
}

enum ptt_record_state {
	PTT_RECORD_GOOD,
	PTT_RECORD_DAMAGED,  /* a possible length, but a wrong checksum */
	PTT_RECORD_HOLE,     /* its writer never finished it; the length is known */
	PTT_RECORD_EMPTY,    /* reserved, not begun */
	PTT_RECORD_NONSENSE, /* no possible length */
};

/*
 * ptt_record_look - the state of the record at @word. @left words may be read.
 * @length: in words; set for GOOD, DAMAGED and HOLE
 */
enum ptt_record_state ptt_record_look(const uint32_t *word, uint64_t left, uint32_t *length);

/*
 * ptt_record_resync - find the next place after @word where a record begins
 * @after: older records are not believed
 * Return: how many words further, at most @left.
 */
uint64_t ptt_record_resync(const uint32_t *word, uint64_t left, uint64_t after);

#endif
