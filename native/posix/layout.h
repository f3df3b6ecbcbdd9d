/* SPDX-License-Identifier: MIT */
/* layout.h - every layout of POSIX tracing that leaves a process: streams and their records, control pages, names, logs. */
#ifndef PX_LAYOUT_H
#define PX_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------ event types */

#define PX_EVENT_COUNT 1024u
#define PX_EVENT_WORDS (PX_EVENT_COUNT / 64)
#define PX_EVENT_SYSTEM 16u /* below: what the standard names; from here on: system event types of our own */
#define PX_EVENT_USER 512u  /* from here on: what programs name */
#define PX_NAME_SIZE 64u    /* of an event type's name, its null counted */

/* ------------------------------------------------------------ records */

/*
 * A record is one or more cells of 64 bytes: this head, and the data. The same bytes stand in the ring and in a log.
 * owner is written first, and tells who is in the middle of writing; position is the low half of the record's place in
 * the ring, so that what an earlier record left there is not taken for it.
 */
struct px_record {
	uint32_t owner; /* kernel's id of the thread */
	uint32_t position;
	uint32_t pid;
	uint32_t size; /* bytes of data recorded */
	uint16_t event;
	uint16_t truncated; /* the data was longer than the stream allows */
	uint32_t cells;     /* length of the record */
	uint64_t time;      /* nanoseconds of CLOCK_MONOTONIC */
	uint64_t address;
	uint64_t thread; /* its pthread_t */
	uint8_t data[16]; /* and on, in the cells that follow */
};
#define PX_CELL 64u
#define PX_RECORD_HEAD 48u
_Static_assert(sizeof(struct px_record) == PX_CELL, "record is a cell");
_Static_assert(offsetof(struct px_record, data) == PX_RECORD_HEAD, "record head");
_Static_assert(offsetof(struct px_record, time) == 24, "read by Python");

#define PX_CELLS_MAX 4095u /* of one record; 12 bits in the head of the ring */
#define PX_DATA_MAX ((PX_CELLS_MAX - 64) * PX_CELL)

#endif
