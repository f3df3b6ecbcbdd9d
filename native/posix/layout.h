/* SPDX-License-Identifier: MIT */
/* layout.h - every layout of POSIX tracing that leaves a process: streams and their records, control pages, names, logs. */
#ifndef PX_LAYOUT_H
#define PX_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "platform/page.h"

/* Of what processes share; part of the directory's name, so that those of different layouts leave each other alone. */
#if PTT_PAGE_MAX == 4096u
#define PX_LAYOUT "1"
#else
#define PX_LAYOUT "1-64k"
#endif

/* ------------------------------------------------------------ event types */

#define PX_EVENT_COUNT 1024u
#define PX_EVENT_WORDS (PX_EVENT_COUNT / 64)
#define PX_EVENT_SYSTEM 16u /* below: what the standard names; from here on: system event types of our own */
#define PX_EVENT_USER 512u  /* from here on: what programs name */
#define PX_NAME_SIZE 64u    /* of an event type's name, its null counted */

/* ------------------------------------------------------------ records */

/*
 * A record is one or more cells of 64 bytes: this head, and the data. The same bytes stand in the ring and in a log.
 * owner is written first, and says which thread is in the middle of writing; position is the low half of the record's place in
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

#define PX_CELLS_MAX 4095u /* of one reservation; 12 bits in the head of the ring */
#define PX_DATA_MAX ((PX_CELLS_MAX - 64) * PX_CELL)

/* ------------------------------------------------------------ streams */

/*
 * A stream is a file that controller and traced processes map: this head, a mark for each cell of the ring, the ring.
 * Places in the ring are counted in cells since the beginning and never go back; a place lies in the ring at its count
 * modulo the ring's size, and the ring is mapped twice, end to end, so that every record is in one piece.
 *
 *   head    place:48 | cells of the last reservation:12 | flags:4       moved by writers, compare and swap
 *   tail    place << 1 | gap                                            moved by the reader, and in LOOP by writers
 *   mark    of a record's first cell: place:48 | cells:12 | state:4     RESERVED by the next writer, COMMITTED by its own
 *
 * A writer reads the clock, moves head by the length of its record, writes the record, and commits it by its mark. Before
 * that, it sees to the mark of the record before: head still says how long that is, so a mark that its writer has not set
 * is set to RESERVED for it. Hence the length of every record but the last is known, whoever dies: a record that will never be
 * committed can be made VOID and be passed. Marks carry their place, so what an earlier round of the ring left there
 * means nothing, and nobody needs to clear anything.
 *
 * The reader copies the record at tail and then moves tail on by compare and swap: if that fails, a writer in LOOP has
 * taken the record's cells, and the copy is worth nothing. Such a writer sets the bit `gap`; at the first record of a gap
 * it puts down its time in victim[], before it moves tail.
 *
 * What is shared, in which order, and with whom; where code says no more, this is what it means:
 *
 *   head                moved with seq_cst. Writers load it with acquire, behind whoever moved it before them; seq_cst
 *                       where it decides about sleeping, and whether the stream is empty
 *   tail                moved with seq_cst; loaded with acquire: the reader is done with the cells below it
 *   mark                COMMITTED with release, after the record; loaded with acquire by the reader and the thread that recycles it
 *   waits, bell         seq_cst: a sleeper sets its bit, looks at head, and sleeps on the old value of bell; a writer
 *                       that moves head looks at waits afterwards, and changes bell
 *   room_wanted, room   seq_cst: the same, of writers that wait for tail to be moved
 *   closed              seq_cst, loaded with acquire: pairs with a controller that takes a stream over,
 *                       and a writer that waits for room
 *   overrun, stuck      release by the thread that lost an event, or could not write; acquire, or an exchange, by a reader
 *   record, full, lost  relaxed: they hand nothing over; head decides what is recorded
 *
 * flags: STOPPED = nothing is recorded. FULL = UNTIL_FULL has stopped by itself, or FLUSH is losing events. START_DUE =
 * UNTIL_FULL was emptied, and the next event is preceded by a START. A writer that finds a flag changed fails to move
 * head: what stands before a STOP was recorded before it.
 */
#define PX_HEAD_STOPPED UINT64_C(1)
#define PX_HEAD_FULL UINT64_C(2)
#define PX_HEAD_START_DUE UINT64_C(4)
#define PX_HEAD_FLAGS UINT64_C(15)
#define PX_PLACE_SHIFT 16
#define PX_CELLS_SHIFT 4
#define PX_WORD(place, cells, low) ((uint64_t)(place) << PX_PLACE_SHIFT | (uint64_t)(cells) << PX_CELLS_SHIFT | (low))
#define PX_PLACE(word) ((word) >> PX_PLACE_SHIFT)
#define PX_CELLS(word) ((uint32_t)((word) >> PX_CELLS_SHIFT & 0xfff))
#define PX_STATE(mark) ((uint32_t)((mark) & 15))
#define PX_RESERVED 1u
#define PX_COMMITTED 2u
#define PX_VOID 3u

#define PX_TAIL_GAP UINT64_C(1)
#define PX_TAIL_PLACE(tail) ((tail) >> 1)

/* stream.waits: what wants to be woken */
#define PX_WAITS_READER 1u /* by any event */
#define PX_WAITS_AGENT 2u  /* when the ring is half full */

#define PX_VICTIMS 64u
struct px_victim {
	uint64_t place;
	uint64_t time;
};

#define PX_STREAM_MAGIC UINT64_C(0x314d525453585450) /* "PTXSTRM1" */

struct px_stream {
	uint64_t magic;
	uint64_t size; /* of the file */
	uint64_t serial;
	uint32_t slot; /* in the registry, and bit in the control pages */
	uint32_t ring_cells; /* a power of two */
	uint32_t limit;      /* cells that ordinary events may fill; the cells beyond are kept for events of the stream's own */
	uint32_t max_data;
	uint32_t policy;
	uint32_t inherited;
	uint64_t mark_offset;
	uint64_t ring_offset;
	/* line 2: a robust mutex that the controller's agent holds; the kernel marks it when that dies or executes another
	   program. Its first word is what writers look at. */
	uint8_t life[64];
	/* lines 3 and 4: a bit for each event type that is recorded now; none while the stream is suspended or closed */
	uint64_t record[PX_EVENT_WORDS];
	uint64_t filter[PX_EVENT_WORDS];
	/* line 7: seldom written */
	uint32_t closed;
	uint32_t waits;
	uint32_t bell; /* futex word of reader and agent */
	uint32_t room; /* futex word of writers in FLUSH */
	uint32_t room_wanted;
	uint32_t overrun;
	uint32_t full; /* LOOP: events have been overwritten since the last was read */
	uint32_t stuck; /* the log could not be written: there is no use in waiting for room */
	uint64_t lost; /* events that found no room, or were never finished */
	uint64_t pad1[3];
	/* line 8 */
	uint64_t head;
	uint64_t pad2[7];
	/* line 9 */
	uint64_t tail;
	uint64_t pad3[7];
	struct px_victim victim[PX_VICTIMS];
};
_Static_assert(offsetof(struct px_stream, life) == 64, "line 2");
_Static_assert(offsetof(struct px_stream, record) == 128, "line 3");
_Static_assert(offsetof(struct px_stream, closed) == 384, "line 7");
_Static_assert(offsetof(struct px_stream, head) == 448, "line 8");
_Static_assert(offsetof(struct px_stream, tail) == 512, "line 9");
_Static_assert(sizeof(struct px_stream) == 576 + PX_VICTIMS * 16, "stream head");
_Static_assert(__atomic_always_lock_free(sizeof(uint64_t), 0), "words of 64 bits are shared between processes");

/* ------------------------------------------------------------ where processes meet */

/*
 * All files lie in a directory of the user: /dev/shm/posixtrace1-UID (or /tmp/posixtrace1-UID). Any process may find any of
 * them as it likes; all zero is a valid beginning of each.
 *
 *   r0              struct px_registry; its flock is held to change files
 *   pPID.START      struct px_control: the control page of a process, which lives from the process's start to its end,
 *                   whatever programs it executes; made by the process or by a controller, whoever comes first
 *   nPID.START      struct px_names: the names of a family of processes, called after the first that had any
 *   sSERIAL         struct px_stream
 */
#define PX_SLOTS 64u
#define PX_PAGE PTT_PAGE_MAX

/*
 * serial and active are changed with seq_cst, in px_control_enter() and _leave(). Events load them relaxed: a stream that
 * an event does not see yet has not begun for it. The serial in the stream itself, which is mapped with acquire, shows a
 * stream that has gone. family_start and names come before family_pid, which is stored with release and loaded with acquire.
 */
struct px_control {
	uint64_t active;          /* a bit for each stream that traces this process */
	uint64_t serial[PX_SLOTS]; /* of these streams; 0 = none */
	uint64_t family_start;    /* whose names: process and its start time */
	uint32_t family_pid;      /* 0 = no names yet; stored last */
	uint32_t settled;         /* the process has taken its parent's streams over, or had none to take */
	uint32_t user[PX_SLOTS]; /* user in whose directory the stream's file is, plus 1; 0 = the directory of this page */
	uint8_t pad[PX_PAGE - 8 * (PX_SLOTS + 3) - 4 * PX_SLOTS];
};
_Static_assert(sizeof(struct px_control) == PX_PAGE, "control page");

struct px_registry_slot {
	uint64_t serial; /* 0 = free */
	uint64_t owner_start;
	uint32_t owner_pid;
	uint32_t inherited;
	uint64_t created; /* CLOCK_BOOTTIME, in nanoseconds */
	uint64_t finisher_start;
	uint32_t finisher_pid; /* process that sees to the stream when its owner is gone; 0 = none */
	uint32_t pad;
};
struct px_registry {
	uint64_t serials; /* ever given */
	struct px_registry_slot slot[PX_SLOTS];
};
_Static_assert(sizeof(struct px_registry) <= PX_PAGE, "registry");

/* The counts grow under the lock, with release, after the names; a look without it loads them with acquire. */
struct px_names {
	uint8_t lock[64];      /* a robust mutex between processes; ready = 1 when it is initialised */
	uint32_t ready;
	uint32_t system_count; /* names from PX_EVENT_SYSTEM on */
	uint32_t user_count;   /* names from PX_EVENT_USER on */
	uint32_t pad[13];
	char name[PX_EVENT_COUNT][PX_NAME_SIZE];
};
_Static_assert(offsetof(struct px_names, name) == 128, "names");

/* ------------------------------------------------------------ logs */

/*
 * A log is a sequence of blocks, each at a multiple of 64 bytes from the log's beginning: this head, then `size` bytes,
 * then zeros up to the next multiple. Every block says which log it is of, and has a checksum of all of itself with crc = 0,
 * so a log is valid after every write, and whatever else the file holds means nothing.
 *
 * UNTIL_FULL and APPEND write blocks one after another. LOOP has places: HEAD, two for STATUS, some for NAMES, and a ring
 * for EVENTS, where new blocks take the place of old ones. EVENTS blocks are numbered; the log's events are those of the
 * longest unbroken run of numbers that ends with the highest. A CLEAR voids all EVENTS of a lower number.
 */
#define PX_BLOCK_MAGIC UINT64_C(0x314b4c4258585450) /* "PTXXBLK1" */
#define PX_BLOCK_HEAD 1u   /* struct px_log_head */
#define PX_BLOCK_NAMES 2u  /* struct px_log_name[] */
#define PX_BLOCK_EVENTS 3u /* records */
#define PX_BLOCK_STATUS 4u /* struct px_log_status */
#define PX_BLOCK_CLEAR 5u

struct px_block {
	uint64_t magic;
	uint64_t log; /* distinguishes logs */
	uint64_t number; /* of EVENTS, STATUS and CLEAR, each type for itself; CLEAR: of the first EVENTS after it */
	uint32_t type;
	uint32_t size;
	uint32_t crc; /* CRC-32C */
	uint32_t version;
	uint64_t pad[3];
};
_Static_assert(sizeof(struct px_block) == PX_CELL, "block head is a cell");

struct px_log_head {
	int64_t create_sec; /* CLOCK_REALTIME */
	int64_t create_nsec;
	int64_t real_offset; /* nanoseconds between CLOCK_REALTIME and the clock of the records */
	int64_t resolution_nsec;
	uint64_t stream_size;
	uint64_t max_data;
	uint64_t log_size;
	uint32_t stream_policy;
	uint32_t log_policy;
	uint32_t inheritance;
	uint32_t pid; /* the process first traced */
	char version[64];
	char name[64];
	char host[64];
};
_Static_assert(sizeof(struct px_log_head) == 264, "log head");
#define PX_LOG_VERSION 1u

struct px_log_name {
	uint32_t id;
	uint32_t pad;
	char name[PX_NAME_SIZE];
};
_Static_assert(sizeof(struct px_log_name) == 72, "log name");

struct px_log_status {
	int32_t stream_status;
	int32_t stream_full;
	int32_t stream_overrun;
	int32_t flush_status;
	int32_t flush_error;
	int32_t log_overrun;
	int32_t log_full;
	uint32_t final;
	uint64_t lost;
	/* the stream, and the process that writes the rest of the log if the controller cannot; 0 = none */
	uint64_t serial;
	uint64_t finisher_start;
	uint32_t finisher_pid;
	uint32_t user;
};
_Static_assert(sizeof(struct px_log_status) == 64, "log status");

#endif
