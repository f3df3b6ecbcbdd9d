/* SPDX-License-Identifier: MIT */
/* traceset.h - shared by the parts of the reader: tables of the traceset, clock arithmetic, the decoding of slots. */
#ifndef PTTREAD_INTERNAL_H
#define PTTREAD_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../ring/layout/ptt_abi.h"
#include "catalog.h"
#include "mapping/truncation.h"
#include "hash_map.h"
#include "pttread.h"
#include "sites.h"
#include "tables.h"

#define RD_NONE UINT32_MAX

/* Packet states; set by the first check, and every check gets the same result. */
enum { RD_UNCHECKED = 0, RD_GOOD = 1, RD_BAD = 2 };

struct rd_packet {
	uint64_t offset; /* in the plain file */
	uint64_t place;  /* in the file; of a coded packet, the offset of its code */
	uint64_t begin;  /* ticks */
	uint64_t end;
	uint64_t discarded;
	uint32_t file;
	uint32_t size;    /* bytes */
	uint32_t content; /* bytes, whole slots or words */
	uint32_t events;
	uint32_t thread;  /* RD_NONE in stream class 1 */
	uint32_t process;
	_Atomic uint32_t state;
};

struct rd_file {
	char *path;
	struct ptt_guard *guard;
	const uint8_t *map; /* the plain file; of a compact file, memory for it: see streams/compact.c */
	uint64_t size;    /* mapped */
	uint64_t indexed; /* bytes indexed so far */
	const uint8_t *coded; /* the compact file, or NULL */
	uint64_t plain;   /* bytes of the plain file that the indexed part stands for */
	uint64_t room;    /* bytes of memory at map */
	uint32_t stream;
	bool cut;         /* the file became shorter under an earlier mapping */
	bool too_large;   /* a packet was not decoded, because of the limit */
};

static inline bool rd_file_cut(const struct rd_file *file)
{
	return file->cut || ptt_guard_cut(file->guard);
}

struct rd_stream {
	struct rd_packet *packets;
	uint32_t count;
	uint32_t room;
	uint32_t trace;
	uint32_t stream_class;
};

/* ns = (ticks - origin) * 1e9 / frequency + shift, exactly rounded down: see rd_time(). */
struct rd_clock {
	uint64_t frequency;
	uint64_t origin;
	int64_t shift;
	uint64_t whole;    /* 1e9 / frequency */
	uint64_t fraction; /* the fractional part, times 2^64 */
};

struct rd_trace {
	struct rd_clock clock;
	uint8_t uuid[16];
	bool has_uuid;
};

struct rd_process {
	uint32_t trace;
	uint32_t index;
	uint32_t pid;
	struct rd_sites sites;
};

struct rd_thread {
	uint32_t process;
	uint32_t tid;
};

#define RD_DECODE_LOCKS 16u

struct ptt_reader {
	struct rd_trace *traces;
	struct rd_stream *streams;
	struct rd_file *files;
	struct rd_process *processes;
	struct rd_thread *threads;
	struct ptt_damage *damages;
	uint32_t trace_count, stream_count, file_count, process_count, thread_count, damage_count;
	uint32_t trace_room, stream_room, file_room, process_room, thread_room, damage_room;
	struct rd_map process_of; /* (trace, index) or (trace, pid) -> number */
	struct rd_map thread_of;  /* (process, tid) -> number */
	bool key_ticks;
	uint64_t decoded, decoded_max; /* bytes of plain packets in memory, and their limit */
	pthread_mutex_t damage_lock;
	pthread_mutex_t decode_lock[RD_DECODE_LOCKS];
};

#define RD_GROW(r, array, what) \
	rd_grow((void **)&(r)->array, &(r)->what##_room, (r)->what##_count, sizeof(*(r)->array))

void rd_damage(struct ptt_reader *reader, uint32_t file, uint64_t offset, uint64_t size, const char *reason);
/* Numbers of processes and threads; new ones are added. RD_NONE if there is no memory. */
uint32_t rd_process(struct ptt_reader *reader, uint32_t trace, uint32_t index, uint32_t pid);
uint32_t rd_process_of_pid(struct ptt_reader *reader, uint32_t trace, uint32_t pid);
uint32_t rd_thread(struct ptt_reader *reader, uint32_t process, uint32_t tid);
/* rd_check - is the CRC of a packet right? The first check of a bad packet adds a damage entry. Above the limit: no, unchecked. */
bool rd_check(struct ptt_reader *reader, struct rd_packet *packet);

/* compact.c: rd_may_decode - is there room for a packet below the limit? If not, the file gets a mark: see ptt_reader_cut(). */
bool rd_may_decode(struct ptt_reader *reader, const struct rd_packet *packet);
/* rd_decode - make a coded packet plain; once for each packet. Return: false if its code is damaged. */
bool rd_decode(struct ptt_reader *reader, struct rd_packet *packet);
bool rd_is_compact(const uint8_t *data, uint64_t size);
/* The reason why there is no coded packet at an offset, or NULL; then set its plain head and the size of its code. */
const char *rd_coded_fault(const struct rd_trace *trace, const struct rd_file *file, uint64_t at, struct ptt_packet *head,
			   uint64_t *size);
/* The next place in a part of a file, at or behind @at, where a coded packet begins; @end if there is none. */
uint64_t rd_coded_in(const struct rd_trace *trace, const struct rd_file *file, uint64_t at, uint64_t end);
/* Make room for @more bytes behind the plain packets so far. Return: 0 or -ENOMEM. */
int rd_plain_room(struct rd_file *file, uint64_t more);

static inline void rd_plain_free(struct rd_file *file)
{
	if (file->room)
		munmap((void *)(uintptr_t)file->map, file->room);
}

/* copy.c: rd_write_all - write all bytes to a file, whatever it takes. Return: 0 or -errno. */
int rd_write_all(int fd, const uint8_t *data, size_t size);

/* head.c: the reason why @h is no head of a packet, or NULL. @trace: NULL = any; @left: bytes there */
const char *rd_head_fault(const struct rd_trace *trace, const struct ptt_packet *h, uint64_t left);

static inline const uint8_t *rd_data(const struct ptt_reader *reader, const struct rd_packet *packet)
{
	return reader->files[packet->file].map + packet->offset;
}

static inline uint64_t rd_u64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t rd_u32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint16_t rd_u16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * rd_time - ticks as nanoseconds, exactly rounded down
 * `fraction` is cut off, so the product is too small by less than d / 2^64 < 1. Its integer part is right or 1 too small;
 * the remainder, which fits 64 bits, tells.
 */
static inline int64_t rd_time(const struct rd_clock *clock, uint64_t ticks)
{
	uint64_t d = ticks - clock->origin;
	uint64_t q = d * clock->whole + (uint64_t)(((unsigned __int128)d * clock->fraction) >> 64);
	uint64_t rest = d * UINT64_C(1000000000) - q * clock->frequency;

	q += rest >= clock->frequency;
	return (int64_t)(q + (uint64_t)clock->shift);
}

/* rd_ticks - the least ticks with a time of ts or later. */
uint64_t rd_ticks(const struct rd_clock *clock, int64_t ts);

/* A key orders signed times as unsigned numbers. */
#define RD_KEY_BIAS (UINT64_C(1) << 63)

static inline uint64_t rd_key(const struct ptt_reader *reader, const struct rd_clock *clock, uint64_t ticks)
{
	return reader->key_ticks ? ticks : (uint64_t)rd_time(clock, ticks) ^ RD_KEY_BIAS;
}

static inline uint64_t rd_slot_ticks(uint64_t w0, uint64_t begin)
{
	return begin + (((w0 >> PTT_TIME_SHIFT) - begin) & PTT_TIME_MASK);
}

/* Slots that begin no event: holes, the rest of an event, its stack, the end of a chunk. */
static inline bool rd_slot_skipped(uint64_t w0)
{
	uint32_t id = w0 & PTT_ID_MASK;

	return id == 0 || id >= PTT_ID_STACK;
}

/* rd_slot_stack - the number of a stack, from the second word of its slot. */
static inline uint32_t rd_slot_stack(uint64_t w1)
{
	return (uint32_t)(w1 & 0xffffff);
}

/* Keys of process_of: the index as it is, the pid with a bit that no index has. */
#define RD_KEY_PID (UINT64_C(1) << 32)

/* rd_number_of - a number that a table holds, or RD_NONE. */
static inline uint32_t rd_number_of(const struct rd_map *map, uint64_t a, uint64_t b)
{
	const struct rd_entry *e = rd_map_find(map, a, b);

	return e ? (uint32_t)(e->value - 1) : RD_NONE;
}

/* rd_columns_copy - copies event @from_i of @from to event @to_i of @to, in the columns that both have. */
static inline void rd_columns_copy(const struct ptt_columns *to, int64_t to_i, const struct ptt_columns *from, int64_t from_i)
{
	if (to->ts)
		to->ts[to_i] = from->ts[from_i];
	to->thread[to_i] = from->thread[from_i];
	to->id[to_i] = from->id[from_i];
	if (to->cpu)
		to->cpu[to_i] = from->cpu[from_i];
	to->object[to_i] = from->object[from_i];
	to->site[to_i] = from->site[from_i];
	if (to->payload)
		to->payload[to_i] = from->payload[from_i];
	if (to->stack)
		to->stack[to_i] = from->stack[from_i];
	if (to->reading)
		to->reading[to_i] = from->reading[from_i];
}

/* rd_passes - does a filter let event i of the columns through? */
bool rd_passes(const struct ptt_filter *filter, const struct ptt_reader *reader, const struct ptt_columns *columns,
	       int64_t i);

#endif
