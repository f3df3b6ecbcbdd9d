/* SPDX-License-Identifier: MIT */
/* ptt_abi.h - every layout that leaves a process: the shared segment, the control page, CTF packets, records. */
/*
 * This file defines all bytes that two programs must agree on. All numbers are little endian. All structs are naturally
 * aligned and have named padding. Shared memory holds offsets, never pointers. Structs grow at the end; readers honour
 * struct_size.
 *
 * Writers and readers of the segment:
 *
 *   field                     written by                         read by
 *   ------------------------  ---------------------------------  ------------------------------
 *   segment head              collector, before anyone maps      all
 *   segment.closed            collector                          writers (slow path)
 *   segment.space, .doorbell  both (futex words)                 both
 *   segment.collector         collector; the kernel              writers (slow path)
 *   segment.beat              collector                          writers that wait
 *   segment.stalled           writers that wait                  writers that wait
 *   chunk_state[i]            writers claim, collector frees     both (compare and swap)
 *   chunk head and slots      the owning thread                  collector
 *   thread.head, .t_base      the owning thread                  collector
 *   thread.revoke             both (compare and swap)            both
 *   thread_owner[i]           writers claim, collector frees     both (compare and swap)
 *   process[i]                processes claim, collector frees   both (compare and swap)
 *
 * A segment can also be a black box: private memory of one process, without a collector. Then the writers do the
 * collector's part, and readers read the memory of the running process, or a core file: see struct ptt_black_box.
 */
#ifndef PTT_ABI_H
#define PTT_ABI_H

#include <stddef.h>
#include <stdint.h>

#define PTT_ABI_MAJOR 1
#define PTT_ABI_MINOR 0

struct ptt_abi_head {
	char magic[8];
	uint16_t major;
	uint16_t minor;
	uint32_t struct_size;
};
_Static_assert(sizeof(struct ptt_abi_head) == 16, "abi head");

/* ------------------------------------------------------------------ slots */

/* A slot is 16 bytes: one event, or 14 more bytes of the event before it. */
struct ptt_slot {
	uint64_t w0; /* id:10 time:40 cpu:14; 0 = not written yet; stored last */
	uint64_t w1; /* object:48 site:16 */
};
_Static_assert(sizeof(struct ptt_slot) == 16, "slot");

#define PTT_SLOT_SIZE 16u
#define PTT_ID_BITS 10
#define PTT_ID_MASK 0x3ffu
#define PTT_ID_MORE 0x3ffu /* continuation slot; bits 10-15 count the continuation slots that follow, 63 = 63 or more */
#define PTT_ID_END 0x3feu  /* the rest of the chunk is unused */
#define PTT_ID_STACK 0x3fdu /* follows the last slot of an event and names its stack, see below; time and cpu as in the event */
#define PTT_CPU_SHIFT 50
#define PTT_CPU_MASK 0x3fffu
#define PTT_CPU_NONE 0x3fffu
#define PTT_TIME_SHIFT 10
#define PTT_TIME_BITS 40
#define PTT_TIME_MASK ((UINT64_C(1) << PTT_TIME_BITS) - 1)
/*
 * The processor comes last, so a CTF reader takes it for the beginning of the event's context. In the event header, which
 * defines only id and time, babeltrace2 would warn about it.
 */
#define PTT_SLOT_W0(id, cpu, time) \
	((uint64_t)(cpu) << PTT_CPU_SHIFT | \
	 (uint64_t)(time) << (64 - PTT_TIME_BITS) >> (64 - PTT_TIME_BITS - PTT_TIME_SHIFT) | (id))
#define PTT_OBJECT_MASK ((UINT64_C(1) << 48) - 1)
#define PTT_SITE_SHIFT 48
#define PTT_SITE_NONE 0u
#define PTT_PIECE_SIZE 14u       /* payload bytes of a continuation slot */
#define PTT_BYTES_MAX 4074u      /* longest variable field that is recorded: 291 pieces */
#define PTT_EVENT_SLOTS_MAX 297u /* head, fixed slots, pieces, stack */

/* ---------------------------------------------------------------- segment */

enum ptt_policy { PTT_POLICY_FLUSH = 0, PTT_POLICY_LOOP = 1, PTT_POLICY_UNTIL_FULL = 2 };
enum ptt_when_full { PTT_WHEN_FULL_WAIT = 0, PTT_WHEN_FULL_DROP = 1 };
enum ptt_clock { PTT_CLOCK_TSC = 1, PTT_CLOCK_MONOTONIC = 2 };

#define PTT_CHUNK_SIZE 16384u    /* default; a power of two */
#define PTT_CHUNK_SIZE_MIN 8192u /* holds the longest event */

/*
 * Chunk states. A writer claims a chunk with one compare and swap that carries the writer's entry, so no kill can orphan
 * the chunk. FREE -> CLAIMED (writer) -> OWNED (writer: head is valid) -> FULL (writer: has moved on) -> FREE (collector;
 * in LOOP a writer takes FULL -> CLAIMED itself).
 */
#define PTT_CHUNK_FREE 0u
#define PTT_CHUNK_CLAIMED 1u
#define PTT_CHUNK_OWNED 2u
#define PTT_CHUNK_FULL 3u
#define PTT_CHUNK_STATUS(state) ((state) & 3u)
#define PTT_CHUNK_THREAD(state) ((state) >> 2 & 0x7fffu)
/* With FULL: the collector took the chunk from an idle thread. Slots that the thread had reserved but not written are void. */
#define PTT_CHUNK_TAKEN 0x80000000u
/* The low bits of the head's count of chunk changes keep a late compare and swap from changing a reused chunk. */
#define PTT_CHUNK_STATE(thread, changes, status) \
	(((uint32_t)(changes) & 0x3fffu) << 17 | ((uint32_t)(thread) & 0x7fffu) << 2 | (status))
#define PTT_THREAD_COUNT_MAX 32768u
/* CLAIMED with change 1, which no writer uses: the file has no pages for this chunk yet. The collector makes the chunk FREE. */
#define PTT_CHUNK_ABSENT PTT_CHUNK_STATE(PTT_THREAD_COUNT_MAX - 1, 1, PTT_CHUNK_CLAIMED)

/* First bytes of a chunk; the slots follow. */
struct ptt_chunk {
	uint64_t t_base;     /* full clock value when it was claimed; no event in it is older */
	uint32_t pid;
	uint32_t tid;
	uint32_t process;    /* process image */
	uint32_t dirty_end;  /* bytes that the next owner must clear; kept by the collector and by LOOP writers */
	uint64_t serial;     /* counts the chunks of a thread entry, in order */
};
_Static_assert(sizeof(struct ptt_chunk) == 32, "chunk head is two slots");
_Static_assert(offsetof(struct ptt_chunk, dirty_end) == 20, "read by collector");
#define PTT_CHUNK_HEAD 32u
_Static_assert(PTT_CHUNK_HEAD + PTT_EVENT_SLOTS_MAX * PTT_SLOT_SIZE <= PTT_CHUNK_SIZE_MIN, "every event fits in a chunk");

/*
 * thread.head: bits 0-39 are the byte offset in the segment of the next slot to write. Bits 40-63 count chunk changes, so
 * no stale compare can succeed. An offset that is a multiple of the chunk size means "no room": chunk heads keep valid
 * slots off that boundary.
 */
#define PTT_HEAD_OFFSET_BITS 40
#define PTT_HEAD_OFFSET_MASK ((UINT64_C(1) << PTT_HEAD_OFFSET_BITS) - 1)
/* Shifts in place of a mask, because a mask would need a register. */
#define PTT_HEAD_OFFSET(head) ((head) << (64 - PTT_HEAD_OFFSET_BITS) >> (64 - PTT_HEAD_OFFSET_BITS))
#define PTT_HEAD_CHANGE (UINT64_C(1) << 40)

#define PTT_HEAD_CHANGES(head) ((uint32_t)((head) >> 40)) /* 24 bits */

/*
 * thread.revoke: how the collector takes the chunk of an idle thread back. The word holds a state and a count of chunk
 * changes. Both sides replace it by compare and swap only, and only the exact word. NONE keeps the count, so no question
 * goes unnoticed.
 *
 *   collector                                        writer
 *   NONE|x -> ASKED|c, c = changes of head           reads revoke, reserves (moves head), reads revoke: the same word, in
 *   membarrier(GLOBAL)                                 state NONE, means that the slot is its own. Else:
 *   reads head: changes are still c, and all slots   ASKED|c -> NONE|c, which keeps the chunk; look again
 *   below it are committed; else ASKED|c -> NONE|c   TAKEN|c, and head's changes are c: the chunk's state becomes
 *   ASKED|c -> TAKEN|c                                 FULL|TAKEN, head -> boundary with changes + 1; in any case
 *   the chunk, if it is still OWNED, becomes           TAKEN|c -> NONE|c+1; look again
 *   FULL|TAKEN; if its writer had moved on, it is    NONE: the slot is the writer's own if the chunk is still OWNED or
 *   a full chunk like any other                        FULL, not TAKEN, with the changes of its reservation; else void
 *
 * Either the writer sees the word, or the collector sees the reservation. The last step is for a writer that finds the
 * question already answered by its own signal handler. tests/models/ring.pml checks the protocol.
 */
#define PTT_REVOKE_NONE 0u
#define PTT_REVOKE_ASKED 1u
#define PTT_REVOKE_TAKEN 2u
#define PTT_REVOKE_STATE_MASK 3u
#define PTT_REVOKE_STATE(word) ((word) & PTT_REVOKE_STATE_MASK)
#define PTT_REVOKE_WORD(state, changes) ((uint32_t)(changes) << 2 | (state))

/* thread.state */
#define PTT_THREAD_LIVE 1u
#define PTT_THREAD_ENDED 2u
#define PTT_THREAD_LEFT 3u /* its losses are on disk: the next owner of the entry, or the collector, clears it */

struct ptt_thread {
	/* the owner's line */
	uint64_t head;
	uint64_t t_base; /* of the current chunk */
	uint32_t revoke;
	uint32_t state;
	uint64_t lost_full;   /* events dropped because no chunk was free */
	uint64_t lost_closed; /* events that came while nobody collected */
	uint64_t wait_ns;     /* time spent waiting for room */
	uint32_t pid;
	uint32_t tid;
	uint32_t process;
	uint32_t hint; /* chunk where the owner looks first */
	/* the collector's line */
	uint64_t serial; /* counts the threads that had this entry */
	uint64_t chunks; /* next chunk.serial; written by the owner */
	uint64_t lost_real_time; /* part of lost_full: the thread has a real-time policy, so it did not wait */
	uint32_t waiting; /* how often the thread and its signal handlers count in segment.waiters; written by the owner */
	uint32_t pad;
	uint64_t lost_stalled; /* part of lost_full: the collector stood still */
	uint32_t own[2]; /* black box: 1 + index of the chunks that the owner uses in turn, 0 = none; written by the owner */
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct ptt_thread) == 128, "thread entry is two cache lines");
_Static_assert(offsetof(struct ptt_thread, serial) == 64, "second line");

/* process.state */
#define PTT_PROCESS_FREE 0u
#define PTT_PROCESS_CLAIMED 1u
#define PTT_PROCESS_LIVE 2u
#define PTT_PROCESS_EXECING 3u /* about to execute another program; back to LIVE if that fails */
#define PTT_PROCESS_ENDED 4u   /* left in an orderly way */

/*
 * A process image begins when a process starts, forks or executes a program. Each image has a number of its own for the
 * whole recording. Its entry is free for another image once this image has ended and everything that it left is on disk.
 */
struct ptt_process {
	uint32_t state;
	uint32_t pid;    /* as the process itself sees it: identity.h */
	uint32_t ppid;
	uint32_t parent; /* image of the parent if this image is the child of a fork, or UINT32_MAX */
	uint64_t start;  /* clock value when it attached */
	uint64_t lost_threads; /* events of threads that found no free thread entry */
	uint32_t image;
	uint32_t pid_namespace; /* inode number, 0 = unknown */
};
_Static_assert(sizeof(struct ptt_process) == 40, "process entry");
#define PTT_NO_IMAGE UINT32_MAX
#define PTT_PROCESS_COUNT_MAX 65536u /* the journal of call sites has 16 bits for an entry's index */

#define PTT_SEGMENT_MAGIC "PTTSEGM2"

struct ptt_segment {
	struct ptt_abi_head abi;
	uint64_t size;
	uint32_t chunk_size;
	uint32_t chunk_count;
	uint32_t thread_count;
	uint32_t process_count;
	uint64_t process_offset;      /* struct ptt_process[process_count] */
	uint64_t thread_owner_offset; /* uint32_t[thread_count]: 1 + index of the owner's process entry, 0 = free */
	uint64_t thread_offset;       /* struct ptt_thread[thread_count] */
	uint64_t chunk_state_offset;  /* uint32_t[chunk_count] */
	uint64_t chunk_offset;        /* chunks, aligned on their size */
	uint64_t site_offset;         /* struct ptt_site_entry[PTT_SITE_JOURNAL] */
	uint32_t policy;
	uint32_t when_full;
	uint32_t clock;
	uint32_t recorder_pid;
	uint64_t start_clock;
	int64_t start_unix_ns;
	uint8_t uuid[16];
	uint64_t shared_offset; /* struct ptt_shared; 0 = events go to chunks */
	uint32_t chunk_reserve; /* number of chunks that only real-time threads may take, if no other chunk is free */
	uint32_t chunk_reserve_at; /* index of the first chunk of the reserve */
	uint32_t stack_depth; /* frames of a stack, at most PTT_STACK_DEPTH_MAX; 0 = no stacks */
	uint32_t stack_all;   /* 1 = every event has a stack, not only events around waits */
	uint32_t sched; /* 1 = record when a thread lost its processor between two events, if the kernel tells */
	uint32_t python; /* 1 = stacks have the functions of Python in place of the interpreter's frames */
	uint32_t slow_barrier; /* set by a process that the quick barrier of the collector does not reach, see revoke.c */
	uint32_t stack_user; /* 1 = events that the program itself sends have stacks, too */
	uint64_t lost_reported; /* lost events that EVENTS_LOST events report */
	uint64_t without_stack; /* events that should have a stack but have none: no call was found, or no room */
	/* line 3: slow paths of writers */
	uint32_t closed;      /* 1 = recording is over */
	uint32_t thread_high; /* entries below this have been used */
	uint32_t chunk_hand;  /* LOOP: where the search for the oldest chunk begins */
	uint32_t stopped;     /* UNTIL_FULL: the buffers have filled */
	uint64_t overwritten; /* LOOP: bytes of slots that were overwritten */
	uint64_t site_head;   /* entries ever reserved in the site journal */
	uint64_t site_tail;   /* entries ever taken out by the collector */
	uint64_t site_lost;   /* sites that found the journal full and are announced at a later call; and entries given up */
	uint32_t chunks_there; /* chunks, from the first, that have pages in the file */
	uint32_t real_time;    /* set by the first real-time thread */
	uint64_t without_site; /* events without a call site, because the table of their process or the journal was full */
	/* line 4: futex words */
	uint32_t space;    /* changes when chunks have been freed */
	uint32_t waiters;  /* writers waiting for space */
	uint32_t doorbell; /* changes when a writer wants the collector now */
	uint32_t lost_processes; /* processes that found no free process entry */
	uint32_t process_hint;   /* where the search for a free process entry begins */
	uint32_t images;         /* process images ever counted */
	uint32_t process_high;   /* process entries below this have been used */
	uint32_t thread_hint;    /* the same for thread entries */
	uint32_t unjoined;       /* processes that could not map the segment, or found no memory for it */
	uint32_t box;            /* 1 = a black box */
	uint32_t ended;          /* black box: entries of threads that have ended, below thread_high */
	uint32_t ends;           /* recorder: threads that have ended, ever; */
	uint32_t taken_back;     /* those of them whose entries the collector has given back */
	uint32_t pad6;
	uint64_t pad3;
	/* line 5: does anybody collect? */
	uint32_t collector;   /* tid of a thread of the collector, 0 = none; the kernel sets FUTEX_OWNER_DIED in it when that thread dies */
	uint32_t beat;        /* the collector counts it up while it works; never 0 */
	uint32_t stalled;     /* the beat at which a writer waited patience_ms for the next beat, in vain; 0 = none */
	uint32_t patience_ms; /* writers stop waiting for a collector if its beat stands still for this long */
	/* black box: two readings of clocks, from which a reader of a core file computes how fast the trace's clock goes */
	uint64_t start_monotonic_ns; /* with start_clock */
	uint64_t later_clock;
	uint64_t later_monotonic_ns;
	uint32_t later_busy; /* 1 = a thread writes the two fields before */
	uint32_t pad4;
	uint64_t pad5[2];
};
#define PTT_PATIENCE_MS 20000u
_Static_assert(offsetof(struct ptt_segment, shared_offset) == 136, "segment head");
_Static_assert(offsetof(struct ptt_segment, closed) == 192, "line 3");
_Static_assert(offsetof(struct ptt_segment, space) == 256, "line 4");
_Static_assert(offsetof(struct ptt_segment, collector) == 320, "line 5");
_Static_assert(sizeof(struct ptt_segment) == 384, "segment head");

/* ------------------------------------------------------- one buffer for all */

/*
 * The shared buffer of the write-and-read mechanism: all threads of all processes write classic records to one array of
 * 32-bit words. The array lies in a segment of its own kind, which has a process table and neither chunks nor threads.
 * reserved, written and beg_read count words since the beginning and never go back. The index of a word in the array is its
 * count modulo the size. Every process maps the array twice, end to end, so a record that wraps is in one piece.
 *
 *   field                    written by                               read by
 *   -----------------------  ---------------------------------------  ----------------------
 *   first line               the reading process, before all others   all
 *   reserved                 writers (compare and swap)               both
 *   written                  writers; the reader when it gives up     both (compare and swap)
 *   beg_read, given_up       the reader                               writers
 *   pause, fini              the reader                               writers; pause is a futex word
 *   words of the array       writers, within their reservations       the reader, which zeroes them afterwards
 *   process[i].writing       the process                              the reader
 *
 * Always written <= reserved. Where the two are equal, all words below them are complete.
 */
#define PTT_SHARED_SIZE_MIN (UINT64_C(64) << 10) /* bytes of the array; a power of two */
#define PTT_SHARED_SIZE_MAX (UINT64_C(1) << 34)
#define PTT_SHARED_ALIGN 65536u /* alignment of the array in the segment: no page is larger */

struct ptt_shared {
	uint64_t size;           /* of the array, in words; a power of two */
	uint64_t array_offset;   /* in the segment, as all offsets */
	uint64_t process_offset; /* struct ptt_shared_process[segment.process_count] */
	uint64_t headroom;       /* words for writers in signal handlers that interrupted another writer of their thread */
	uint64_t pad0[4];
	uint64_t reserved;
	uint64_t pad1[7];
	uint64_t written;
	uint64_t pad2[7];
	uint64_t beg_read;
	uint64_t given_up; /* words reserved below this and not written count as written: their writer is dead or stuck */
	uint64_t pad3[6];
	uint32_t pause; /* 1 = writers wait; the reader announces changes with a futex wake */
	uint32_t fini;  /* 1 = nobody reads any more */
	uint64_t pad4[7];
	uint64_t lost_full;
	uint64_t lost_closed;
	uint64_t wait_ns;  /* time that writers waited for room */
	uint64_t pause_ns; /* time that writers waited while PAUSE */
	uint64_t lost_stalled; /* part of lost_full: the reader stood still */
	uint64_t pad5[3];
};
_Static_assert(offsetof(struct ptt_shared, reserved) == 64, "line 2");
_Static_assert(offsetof(struct ptt_shared, written) == 128, "line 3");
_Static_assert(offsetof(struct ptt_shared, beg_read) == 192, "line 4");
_Static_assert(offsetof(struct ptt_shared, pause) == 256, "line 5");
_Static_assert(offsetof(struct ptt_shared, lost_full) == 320, "line 6");
_Static_assert(sizeof(struct ptt_shared) == 384, "shared buffer head");

/* One for each process entry, with the same index. */
struct ptt_shared_process {
	uint32_t writing;    /* threads between reserving and having written */
	uint32_t gone;       /* set by the reader: the process does not run any more */
	uint64_t start_time; /* as in /proc/PID/stat; distinguishes the process from a later process with the same pid */
};
_Static_assert(sizeof(struct ptt_shared_process) == 16, "shared process entry");

/* -------------------------------------------------------------- black box */

/*
 * The root of a black box, under the name __nptl_trace_black_box in the handler "ring". A reader finds the segment and the
 * tables of call sites and stacks by it, in the memory of a process or in a core file. All addresses are of that process.
 *
 * The segment has the policy LOOP, one process entry, and no journal of call sites: readers take the tables. Only the first
 * chunks_there chunks have memory; a writer adds more. Each thread fills two chunks in turn, so its newest events are there
 * without a gap: chunk.serial counts. The entry of a thread that has ended stays as it is until a new thread needs it.
 *
 *   field          written by                                        read by
 *   -------------  ------------------------------------------------  ----------------------------
 *   all of these   the process, before its first event; in a forked  readers of a black box
 *                  child, before its first event there
 *
 * A reader of a running process reads all that it wants twice. It uses a slot if w0 was written at the first look, and if
 * state and serial of the chunk were the same at both looks: a written slot never changes until its chunk changes.
 */
#define PTT_BLACK_BOX_MAGIC "PTTBBOX1"

struct ptt_black_box {
	struct ptt_abi_head abi;
	uint64_t segment; /* 0 = this process has no black box */
	uint64_t sites;   /* uint64_t[site_count]: addresses, as in the private table of call sites below */
	uint64_t stacks;  /* uint64_t[stack_count]: the caller's stack in the high 17 bits, the return address below */
	uint32_t site_count;
	uint32_t stack_count;
	uint64_t reserved[2];
};
_Static_assert(offsetof(struct ptt_black_box, segment) == 16, "segment of a black box");
_Static_assert(offsetof(struct ptt_black_box, site_count) == 40, "counts of a black box");
_Static_assert(sizeof(struct ptt_black_box) == 64, "black box");

#define PTT_BOX_NAME "black-box"               /* in place of the session directory, in the arguments of the handler */
/*
 * Default: about so many events of two slots are the least that a thread keeps. A thread always keeps a whole chunk, which is
 * PTT_BOX_EVENTS * 2 slots less the head of the chunk, and at times a slot that marks the end.
 */
#define PTT_BOX_EVENTS 256u
#define PTT_BOX_EVENTS_MAX 16384u
#define PTT_BOX_MEMORY (UINT64_C(256) << 20)   /* default: all chunks together, at most */
#define PTT_BOX_MEMORY_MIN (UINT64_C(1) << 20)
#define PTT_BOX_MEMORY_MAX (UINT64_C(1) << 30)
#define PTT_BOX_CHUNKS_MIN 4u /* no box has fewer chunks */
#define PTT_BOX_STACK_DEPTH 16u
#define PTT_BOX_ENDED 256u /* threads that have ended and are kept, unless there is no room for others */

/* ------------------------------------------------------------- call sites */

/*
 * A process numbers its call sites itself, in a private hash table of PTT_SITE_COUNT entries. The index in the table is the
 * site id. A forked child begins with an empty table, or with its parent's table if the kernel cannot clear it. The process
 * announces each new site in the journal of the segment, a ring. Writers append to the ring by compare and swap of
 * site_head, and the collector empties it.
 *
 * Stacks have numbers too, in a table of their own. A stack is a return address and the stack of its caller, so stacks that
 * begin alike share the common part. Stack 0 means no stack. Stacks 1 and 2 have no frames: nobody called the caller of
 * stack 1; unknown frames, or too many frames, called the caller of stack 2.
 *
 * Each word of an entry carries the lap of the journal in its high 16 bits. An entry is complete once all three words bear
 * the lap that is due. A writer may stop for so long that the collector gives its entry up and another writer gets the
 * entry. If the late writer then goes on, the wrong lap shows the damage. tests/models/sites.pml checks it.
 */
#define PTT_SITE_COUNT 65536u
/* In the private table: the address still has its number, but the site must be looked up before the number is used again. */
#define PTT_SITE_STALE (UINT64_C(1) << 62)
#define PTT_SITE_JOURNAL 16384u

#define PTT_STACK_COUNT 131072u /* a stack's number has 17 bits */
#define PTT_STACK_NONE 0u
#define PTT_STACK_WHOLE 1u
#define PTT_STACK_CUT 2u
#define PTT_STACK_FIRST 3u
#define PTT_STACK_DEPTH_MAX 64u
#define PTT_NO_PARENT 0xffffffu /* the entry is a call site, not a stack */

/*
 * In a stack, a function of Python is an address where no code lies: PTT_PYTHON_PLACE, plus the number of its code object
 * shifted left by PTT_PYTHON_SHIFT bits, plus the number of the instruction (at most the highest number that has room). The
 * process describes each code object in python-<image> in the session directory: in hexadecimal, separated by spaces, its
 * number, the minor version of Python 3, the first line, the width of a character and the bytes of the file name, the same
 * for the function name, the bytes of the line table; a newline; then file, function and line table; a newline.
 */
#define PTT_PYTHON_PLACE UINT64_C(0x400000000000)
#define PTT_PYTHON_PLACE_END UINT64_C(0x500000000000)
#define PTT_PYTHON_SHIFT 20
#define PTT_PYTHON_CODES 32768u

/*
 * A method of Java is an address of the same kind, with the number of its bytecode. Its entry has one of the numbers below
 * in place of the minor version of Python 3. Its line table is pairs of 16 bits: the first bytecode of a line, and the
 * line. The width of a character is 0 in such texts: they are UTF-8.
 */
#define PTT_TEXT_UTF8 0
#define PTT_CODE_JAVA 0
#define PTT_CODE_JAVA_OBJECT 1 /* no code: the first line is the number of an object, the function name is its class */

/*
 * Java moves objects about in memory. In events, such an object is an address where nothing lies: PTT_NUMBERED_PLACE plus
 * its number shifted left by PTT_NUMBERED_SHIFT bits. Operations on the object without a wait are not in the trace.
 */
#define PTT_NUMBERED_PLACE UINT64_C(0x500000000000)
#define PTT_NUMBERED_PLACE_END UINT64_C(0x510000000000)
#define PTT_NUMBERED_SHIFT 4
/*
 * The test is short because every change of a lock makes it: only these addresses, of all addresses of 48 bits, have this
 * highest byte.
 */
#define PTT_IS_NUMBERED(object) ((uint8_t)((uint64_t)(object) >> 40) == PTT_NUMBERED_PLACE >> 40)
_Static_assert(PTT_NUMBERED_PLACE_END - PTT_NUMBERED_PLACE == UINT64_C(1) << 40 && (PTT_NUMBERED_PLACE << 24) == 0,
	       "addresses of objects that have numbers");

struct ptt_site_entry {
	uint64_t address; /* 0 = nothing to report; stored last */
	uint64_t ids;     /* the id of the entry in the low 24 bits, the id of the caller's stack above */
	uint32_t process; /* index of the process entry */
	uint32_t pad;
};
_Static_assert(sizeof(struct ptt_site_entry) == 24, "site journal entry");
#define PTT_SITE_IDS(id, parent) ((uint64_t)(parent) << 24 | (id))

/* A site or stack as the collector hands it out. */
struct ptt_site {
	uint64_t address;
	uint32_t process; /* image */
	uint32_t id;
	uint32_t parent; /* id of the caller's stack; PTT_NO_PARENT for a call site */
	uint32_t reserved;
};
_Static_assert(sizeof(struct ptt_site) == 24, "site");
#define PTT_SITE_VOID UINT64_MAX /* a site without an address, as the collector hands it out */
/* The lap of journal entry @at, counted since the beginning. Never 0, because new entries hold 0. */
#define PTT_SITE_LAP(at) (1 + (uint32_t)((at) / PTT_SITE_JOURNAL % 0xffff))
#define PTT_SITE_LAP_SHIFT 48      /* in address and ids */
#define PTT_SITE_LAP_SHIFT_SMALL 16 /* in process */

/*
 * Beside the segment, the session directory holds maps-<image>, cmdline-<image> and exe-<image>: the contents of
 * /proc/self/maps and /proc/self/cmdline, and the target of /proc/self/exe. Process image <image> writes them when it
 * attaches. It writes exe-<image> only if it is no child of a fork, and maps-<image> anew when it ends. It writes each file
 * under a name that ends in .new and then renames it.
 *
 * modules-<image> has a line for each module when a call first comes from it, or first comes from it again after the module
 * was loaded again. A line has, in hexadecimal, the time in ticks, the begin and the end of the module, the bias to add to
 * addresses of its symbol table; then its build-id and a -; then its path, empty for the program itself.
 */

/* In the trace directory during a recording: one byte for each process that did not find the segment. */
#define PTT_UNTRACED_FILE ".untraced"

/* ---------------------------------------------------------- level control */

/*
 * The level control page, control-<PID namespace>-<pid> in the directory named by the tracing argument control=DIR. A
 * process always makes a new file: another process may have the old file mapped, and that file must not shrink.
 */
#define PTT_CONTROL_MAGIC "PTTCTRL1"

struct ptt_control {
	struct ptt_abi_head abi;
	uint32_t pid;
	uint32_t changes;      /* counts the changes that others wrote */
	uint32_t level[16];    /* by domain id; the hot path tests this very word; entry 0 is the highest of the others */
	uint32_t reserved[10];
};
_Static_assert(offsetof(struct ptt_control, level) == 24, "levels");
_Static_assert(sizeof(struct ptt_control) == 128, "control page");

/* --------------------------------------------------------------- attaching */

/*
 * The file `attach` in the session directory of a process that was attached while it ran. The recorder and its agent, a
 * thread that the recorder put into the process, talk to each other by it. The agent writes state and all fields after
 * beat; the recorder writes wanted and beat. wanted is a futex word.
 */
#define PTT_ATTACH_MAGIC "PTTATTC1"

/* attach.state */
#define PTT_ATTACH_BEGUN 0u
#define PTT_ATTACH_RECORDS 1u
#define PTT_ATTACH_LEFT 2u   /* no call leads to the tracer any more, and the process writes nothing; reason if it left unasked */
#define PTT_ATTACH_REFUSED 3u /* reason says why; nothing was changed */
#define PTT_ATTACH_AWAY 4u    /* the process records, and the agent has no thread in it for a moment */

/* attach.wanted */
#define PTT_ATTACH_WANT_RECORD 0u
#define PTT_ATTACH_WANT_LEAVE 1u
#define PTT_ATTACH_WANT_TIDY 2u /* the same; nobody else uses the memory in which the agent began any more */

struct ptt_attach {
	struct ptt_abi_head abi;
	uint32_t state;
	uint32_t wanted;
	uint32_t beat; /* counts up; if it stands still for PTT_ATTACH_PATIENCE_S, the recorder is stuck */
	uint32_t modules; /* modules that the agent looked at */
	uint32_t calls;	  /* entries in the import tables of these modules that lead to the tracer */
	uint32_t refused; /* entries that the agent could not change */
	char reason[216];
};
_Static_assert(offsetof(struct ptt_attach, state) == 16, "attach state");
_Static_assert(sizeof(struct ptt_attach) == 256, "attach file");
#define PTT_ATTACH_PATIENCE_S 20u
/* The memory that recorders put into a process: its size, and where the text for the agent lies in it. */
#define PTT_ATTACH_MEMORY 131072u
#define PTT_ATTACH_TEXT_AT 8800u

/* ---------------------------------------------------------------- steering */

/*
 * The file that the variable PTT_STEER names: a plan that says where threads are held back, and what became of it. ptt confirm
 * and ptt explore write the plan before the program starts. All processes of the program map the file and write the fields
 * marked with a *; the command reads them at any time. No field holds a pointer.
 */
#define PTT_STEER_MAGIC "PTTSTER1"

/* steer.mode */
#define PTT_STEER_MEET 1u   /* threads wait at the sites of the roles */
#define PTT_STEER_RANDOM 2u /* threads wait at random, by the seed */

#define PTT_STEER_SITES 32u
#define PTT_STEER_ROLES 16u
#define PTT_STEER_PLACES 64u
#define PTT_STEER_HELD 8u /* locks of a thread that count */
#define PTT_STEER_ID 32u   /* bytes of a build-id that count */
#define PTT_STEER_NAME 40u /* bytes of a file's name, with a final 0 */

/*
 * A call site in a module: a return address minus the bias of the module. Or a place in a program of Python: a number that follows
 * from file, function and instruction; see ptt_python_place().
 */
struct ptt_steer_site {
	uint64_t offset;
	uint64_t passed;       /* * requests for locks and events at the site; a lock may count twice. 0: no thread came here */
	uint32_t id_size;      /* bytes of the build-id, at most PTT_STEER_ID; 0: the module has none, so its name counts */
	uint32_t python;       /* 1: offset is a place in a program of Python */
	uint8_t id[PTT_STEER_ID];
	char name[PTT_STEER_NAME]; /* of the file, without directory, cut */
};
_Static_assert(sizeof(struct ptt_steer_site) == 96, "steer site");

/* role.meets */
#define PTT_STEER_BY_LOCKS 0u	  /* each thread asks for a lock that the next thread holds; all in one process */
#define PTT_STEER_BY_PROCESSES 1u /* one thread for each role, in several processes, which have the locks at different addresses */
#define PTT_STEER_BY_ROLES 2u	  /* one thread for each role */
#define PTT_STEER_FIRST 3u	  /* with `after`: only one thread at a time waits, and the others go past it */

/*
 * A thread has a role when it asks for a lock at the site `asked` while it holds a lock that it took at the site `held`; or, if
 * `asked` is 0, when it has taken a lock at the site `held`. Sites count from 1. If `held` is 0, it need hold no lock.
 */
struct ptt_steer_role {
	uint32_t asked;
	uint32_t held;
	uint32_t after; /* the thread waits until another thread passes this site; 0: until all roles meet */
	uint32_t meets; /* how the threads of all roles meet; the same in all roles */
	uint64_t came;	/* * how often a thread was held back in the role */
	uint64_t met;	/* * how often it did not wait in vain */
};
_Static_assert(sizeof(struct ptt_steer_role) == 32, "steer role");

/* place.state: a serial number, and one of these in the low bits. A futex word. */
#define PTT_STEER_FREE 0u
#define PTT_STEER_TAKEN 1u /* the owner fills in the place */
#define PTT_STEER_WAITS 2u
#define PTT_STEER_GOES 3u
#define PTT_STEER_STATE 3u

/* * A thread that is held back. The owner writes it; any thread may change the state from WAITS to GOES. */
struct ptt_steer_place {
	uint32_t state;
	uint32_t role;	   /* from 0 */
	uint32_t pid;
	uint32_t held_count;
	uint64_t until_ns; /* of the monotonic clock. Long after this time the owner has died, and others may take the place. */
	uint64_t wanted;   /* address of the lock */
	uint64_t held[PTT_STEER_HELD];
};
_Static_assert(sizeof(struct ptt_steer_place) == 96, "steer place");

struct ptt_steer {
	struct ptt_abi_head abi;
	uint32_t mode;
	uint32_t roles;	      /* number */
	uint32_t sites;	      /* number */
	uint32_t over;	      /* 1: hold nobody back any more */
	uint32_t processes;   /* * number of processes that have mapped the file */
	uint32_t reserved;
	uint64_t seed;
	uint64_t patience_ns; /* of one delay, at most */
	uint64_t total_ns;    /* of all delays of all threads, at most, apart from delays that have begun */
	uint64_t spent_ns;    /* * */
	uint64_t delays;      /* * number */
	uint64_t met;	      /* * how often all roles met */
	struct ptt_steer_site site[PTT_STEER_SITES];
	struct ptt_steer_role role[PTT_STEER_ROLES];
	struct ptt_steer_place place[PTT_STEER_PLACES];
};
_Static_assert(offsetof(struct ptt_steer, site) == 88, "steer sites");
_Static_assert(offsetof(struct ptt_steer, role) == 3160, "steer roles");
_Static_assert(offsetof(struct ptt_steer, place) == 3672, "steer places");
_Static_assert(sizeof(struct ptt_steer) == 9816, "steer file");

/* ------------------------------------------------------------ CTF packets */

#define PTT_CTF_MAGIC 0xC1FC1FC1u
#define PTT_STREAM_SLOTS 0u   /* 16-byte slots, one stream for each thread entry */
#define PTT_STREAM_RECORDS 1u /* classic records, all threads in one stream */

/* Packet header and context of both stream classes. */
struct ptt_packet {
	/* packet.header */
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;
	uint64_t stream_instance_id;
	/* packet.context */
	uint64_t timestamp_begin;
	uint64_t timestamp_end;
	uint64_t content_size; /* bits */
	uint64_t packet_size;  /* bits */
	uint64_t events_discarded; /* of the stream so far */
	uint64_t packet_seq_num;
	uint32_t pid;
	uint32_t tid;
	uint32_t process;   /* process image, key into info/processes.jsonl */
	uint32_t crc;       /* CRC-32C of the packet with this field zero */
	uint64_t chunk_serial; /* last chunk in the packet and its end in that chunk: recovery goes on there */
	uint32_t chunk_end;
	uint32_t event_count; /* events in the packet, continuation slots not counted */
	uint64_t thread_serial; /* distinguishes the threads that shared this stream */
	uint64_t discarded_before; /* part of events_discarded that earlier threads of the stream, or failed writes, lost */
};
_Static_assert(sizeof(struct ptt_packet) == 128, "packet head is eight slots");
_Static_assert(offsetof(struct ptt_packet, timestamp_begin) == 32, "packet.context");
_Static_assert(offsetof(struct ptt_packet, pid) == 80, "pid");
_Static_assert(offsetof(struct ptt_packet, crc) == 92, "crc");
_Static_assert(offsetof(struct ptt_packet, chunk_serial) == 96, "chunk serial");
_Static_assert(offsetof(struct ptt_packet, event_count) == 108, "event count");
_Static_assert(offsetof(struct ptt_packet, thread_serial) == 112, "thread serial");

/* ------------------------------------------------------- compact packets */

/* The first bytes of a packet in a compact stream file; the head of the plain packet and the codes follow: ring/compact. */
struct ptt_compact {
	uint32_t magic;
	uint32_t size;    /* bytes of the whole coded packet; a multiple of 8 */
	uint32_t coding;  /* enum ptt_coding */
	uint32_t padding; /* bytes of zeros behind the codes */
};
_Static_assert(sizeof(struct ptt_compact) == 16, "begin of a coded packet");
#define PTT_COMPACT_MAGIC 0xC0DAC7EDu
enum ptt_coding { PTT_CODING_NONE = 0, PTT_CODING_SLOTS = 1 };
#define PTT_COMPACT_PLAIN_MAX (UINT64_C(1) << 26) /* bytes of a plain packet */
/* Room for a coded packet, from the size of the plain packet; a slot has no more than 19 bytes of codes. */
#define PTT_COMPACT_MAX(size) (sizeof(struct ptt_compact) + (uint64_t)(size) / 16 * 19 + 64)

/* ---------------------------------------------------------------- records */

/*
 * The record of PTT's write-and-read mechanism, in 32-bit words; 64-bit values take two words, low one first:
 *
 *   word 0      event id in the low half, length of the record in words in the high half
 *   words 1-2   time stamp
 *   word 3      pid
 *   word 4      tid
 *   words 5-6   object
 *   words 7-8   call site
 *   …           the event's fields, each in one or two words; variable data as a length in bytes, then the bytes,
 *               padded to a word
 *   last        checksum: the sum of all words before it, rotated left by one bit at each step
 */
#define PTT_RECORD_HEAD_WORDS 9u
#define PTT_RECORD_UNFINISHED 0xffffu /* id while the record is being written; the writer stores the true id last */
#define PTT_RECORD_WORDS_MAX 1100u

#endif
