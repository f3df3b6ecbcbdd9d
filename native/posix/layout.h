/* SPDX-License-Identifier: MIT */
/* layout.h - the data of POSIX tracing that leaves a process: streams, records, control pages, names, logs. */
#ifndef PX_LAYOUT_H
#define PX_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "platform/page.h"

/* The version of the shared layout. It is part of the directory's name: processes with different layouts never meet. */
#if PTT_PAGE_MAX == 4096u
#define PX_LAYOUT "1"
#else
#define PX_LAYOUT "1-64k"
#endif

/* ------------------------------------------------------------ event types */

#define PX_EVENT_COUNT 1024u
#define PX_EVENT_WORDS (PX_EVENT_COUNT / 64)
#define PX_EVENT_SYSTEM 16u /* ids below: event types of the standard; ids from here on: system event types of PTT */
#define PX_EVENT_USER 512u  /* ids from here on: event types that programs name */
#define PX_NAME_SIZE 64u    /* bytes of an event type's name, with the null byte */

/* ------------------------------------------------------------ records */

/*
 * A record is one or more cells of 64 bytes: this head, then the data. A ring and a log hold the same bytes.
 * The writer stores owner and position first. owner names the thread that writes the record. position is the low half of the
 * record's place in the ring: it distinguishes this owner from the owner of an earlier record in the same cells.
 */
struct px_record {
	uint32_t owner; /* kernel's id of the thread */
	uint32_t position;
	uint32_t pid;
	uint32_t size; /* bytes of data in the record */
	uint16_t event;
	uint16_t truncated; /* 1: the data was longer than the stream allows */
	uint32_t cells;     /* length of the record */
	uint64_t time;      /* nanoseconds of CLOCK_MONOTONIC */
	uint64_t address;
	uint64_t thread; /* pthread_t of the thread */
	uint8_t data[16]; /* the data continues in the next cells */
};
#define PX_CELL 64u
#define PX_RECORD_HEAD 48u
_Static_assert(sizeof(struct px_record) == PX_CELL, "record is a cell");
_Static_assert(offsetof(struct px_record, data) == PX_RECORD_HEAD, "record head");
_Static_assert(offsetof(struct px_record, time) == 24, "read by Python");

#define PX_CELLS_MAX 4095u /* cells of one reservation: 12 bits of the stream's head */
#define PX_DATA_MAX ((PX_CELLS_MAX - 64) * PX_CELL)

/* ------------------------------------------------------------ streams */

/*
 * A stream is a file that the controller and the traced processes map: this head, a mark for each cell of the ring, the ring.
 * A place is a number of cells since the beginning of the stream. Places never go back. A place modulo the size of the ring is
 * the index of its cell. The ring is mapped twice, end to end, so every record is in one piece.
 *
 *   head    place:48 | cells of the last reservation:12 | flags:4       moved by writers, compare and swap
 *   tail    place << 1 | gap                                            moved by the reader, and in LOOP by writers
 *   mark    of a record's first cell: place:48 | cells:12 | state:4     RESERVED by the next writer, COMMITTED by its own
 *
 * A writer reads the clock, moves head by the length of its record, writes the record, and commits the record by its mark.
 * Before it moves head, it checks the mark of the previous record. head still has the length of the previous record. If the
 * mark is not set yet, the writer sets it to RESERVED. So the length of every record but the last is known, even if its writer
 * dies. A record that nobody will commit can become VOID, and the reader passes it. Marks contain their place: a mark from an
 * earlier round of the ring means nothing, and nobody clears marks.
 *
 * The reader copies the record at tail, and then moves tail by compare and swap. If the swap fails, a writer in LOOP has
 * taken the cells of the record, and the reader drops the copy. That writer sets the bit `gap`. At the first record of a gap,
 * it stores the time of the record in victim[] before it moves tail.
 *
 * The order of each shared word and the other side; this holds wherever the code says no more:
 *
 *   head                moved with seq_cst. Writers load it with acquire: they come after the writer that moved head. Loads
 *                       that decide about sleeping, or whether the stream is empty, are seq_cst
 *   tail                moved with seq_cst; loaded with acquire: the reader is done with the cells below tail
 *   mark                COMMITTED with release, after the record; the reader and the recycling thread load it with acquire
 *   waits, bell         seq_cst: a sleeper sets its bit, loads head, and sleeps on the old value of bell; a writer
 *                       moves head, then loads waits, and changes bell
 *   room_wanted, room   seq_cst: the same for writers that wait until tail moves
 *   closed              stored with seq_cst, loaded with acquire: by a child that takes over the streams of its parent,
 *                       and by a writer that waits for room
 *   overrun, stuck      release by the thread that lost an event, or could not write; acquire, or an exchange, by a reader
 *   record, full, lost  relaxed: they hand nothing over; head decides which events are recorded
 *
 * Flags of head: STOPPED: the stream records nothing. FULL: an UNTIL_FULL stream stopped by itself, or a FLUSH stream loses
 * events. START_DUE: an UNTIL_FULL stream was emptied, and a START goes before the next event. A writer cannot move head if a
 * flag has changed: the records before a STOP were recorded before it.
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

/* Bits of stream.waits: the sleepers to wake. */
#define PX_WAITS_READER 1u /* after any event */
#define PX_WAITS_AGENT 2u  /* when the ring is half full */

#define PX_VICTIMS 64u
struct px_victim {
	uint64_t place;
	uint64_t time;
};

#define PX_STREAM_MAGIC UINT64_C(0x314d525453585450) /* "PTXSTRM1" */

struct px_stream {
	uint64_t magic;
	uint64_t size; /* bytes of the file */
	uint64_t serial;
	uint32_t slot; /* slot of the registry, and bit in the control pages */
	uint32_t ring_cells; /* a power of two */
	uint32_t limit;      /* cells for ordinary events; the other cells are kept for the stream's own events */
	uint32_t max_data;
	uint32_t policy;
	uint32_t inherited;
	uint64_t mark_offset;
	uint64_t ring_offset;
	/* line 2: a robust mutex that the controller's agent holds. The kernel marks the mutex when the agent dies or its process
	   executes another program. Writers look at its first word. */
	uint8_t life[64];
	/* lines 3 and 4: a bit for each event type that is recorded now; no bit while the stream is suspended or closed */
	uint64_t record[PX_EVENT_WORDS];
	uint64_t filter[PX_EVENT_WORDS];
	/* line 7: seldom written */
	uint32_t closed;
	uint32_t waits;
	uint32_t bell; /* futex word of the reader and the agent */
	uint32_t room; /* futex word of writers in FLUSH */
	uint32_t room_wanted;
	uint32_t overrun;
	uint32_t full; /* LOOP: events were overwritten since the last read */
	uint32_t stuck; /* the log could not be written: writers do not wait for room */
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

/* ------------------------------------------------------------ files that processes share */

/*
 * All files lie in a directory of the user: /dev/shm/posixtrace1-UID (or /tmp/posixtrace1-UID). A process may open any of
 * these files at any time: all zero is a valid beginning of each file.
 *
 *   r0              struct px_registry; a process locks this file with flock() to change files
 *   pPID.START      struct px_control: the control page of a process. The page exists from the start of the process to its
 *                   end, also after exec. The process or a controller makes the page, whichever is first
 *   nPID.START      struct px_names: the names of a family of processes; PID and START of the first process with names
 *   sSERIAL         struct px_stream
 */
#define PX_SLOTS 64u
#define PX_PAGE PTT_PAGE_MAX

/*
 * px_control_enter() and _leave() change serial and active with seq_cst. Events load them relaxed: a stream that an event does
 * not see yet has not begun for the event. An event compares the serial with the serial in the mapped stream, which it loads
 * with acquire: another serial shows a stream that has gone. family_start and the names are stored before family_pid.
 * family_pid is stored with release and loaded with acquire.
 */
struct px_control {
	uint64_t active;          /* a bit for each stream that traces this process */
	uint64_t serial[PX_SLOTS]; /* serials of these streams; 0 = none */
	uint64_t family_start;    /* the process that names the family: its start time, */
	uint32_t family_pid;      /* and its id; 0 = no names yet; stored last */
	uint32_t settled;         /* 1: the process has taken over the streams of its parent, if there were any */
	uint32_t user[PX_SLOTS]; /* owner of the directory with the stream's file, plus 1; 0 = the directory of this page */
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
	uint32_t finisher_pid; /* process that ends the stream when its owner is gone; 0 = none */
	uint32_t pad;
};
struct px_registry {
	uint64_t serials; /* number of serials given so far */
	struct px_registry_slot slot[PX_SLOTS];
};
_Static_assert(sizeof(struct px_registry) <= PX_PAGE, "registry");

/* The counts grow under the lock, with release, after the names. A load without the lock is an acquire load. */
struct px_names {
	uint8_t lock[64];      /* a robust mutex between processes; ready = 1 when the mutex is initialised */
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
 * then zeros up to the next multiple. Every block names its log, and has a checksum of the whole block with crc = 0. So a log
 * is valid after every write, and other bytes in the file mean nothing.
 *
 * UNTIL_FULL and APPEND write blocks one after another. LOOP has fixed places: HEAD, two for STATUS, some for NAMES, and a ring
 * for EVENTS, where new blocks replace old blocks. EVENTS blocks have numbers. The log consists of the longest unbroken run
 * of EVENTS numbers that ends with the highest number. A CLEAR voids all EVENTS with a lower number.
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
	uint64_t number; /* EVENTS and STATUS: number among the blocks of the type; CLEAR: number of the first EVENTS after it */
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
	uint32_t pid; /* the first traced process */
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
	/* the stream; the process that writes the rest of the log if the controller dies; 0 = none */
	uint64_t serial;
	uint64_t finisher_start;
	uint32_t finisher_pid;
	uint32_t user;
};
_Static_assert(sizeof(struct px_log_status) == 64, "log status");

#endif
