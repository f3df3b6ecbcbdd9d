/* SPDX-License-Identifier: MIT */
/* ptt_abi.h - every layout that leaves a process: the shared segment, the control page, CTF packets, records. */
/*
 * The one source of truth for bytes that two programs must agree on. All numbers are little endian, all structs naturally
 * aligned with named padding; shared memory holds offsets, never pointers. Structs grow at the end; readers honour
 * struct_size.
 *
 * Writers and readers of the segment:
 *
 *   field                     written by                      read by
 *   ------------------------  ------------------------------  ------------------------------
 *   segment head              collector, before anyone maps   all
 *   segment.closed            collector                       writers (slow path)
 *   segment.space, .doorbell  both (futex words)              both
 *   segment.collector         collector; the kernel           writers (slow path)
 *   segment.beat              collector                       writers that wait
 *   segment.stalled           writers that wait               writers that wait
 *   chunk_state[i]            writers claim, collector frees  both (compare and swap)
 *   chunk head and slots      the owning thread               collector
 *   thread.head, .t_base      the owning thread               collector
 *   thread.revoke             both (compare and swap)         both
 *   thread_owner[i]           writers claim, collector frees  both (compare and swap)
 *   process[i]                the process claims, collector frees  both (compare and swap)
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
#define PTT_ID_MORE 0x3ffu /* continuation slot; bits 10-15 = how many of the event still follow, 63 = 63 or more */
#define PTT_ID_END 0x3feu  /* the rest of the chunk is unused */
#define PTT_ID_STACK 0x3fdu /* after the last slot of an event: its stack, see below; time and cpu are those of the event */
#define PTT_CPU_SHIFT 50
#define PTT_CPU_MASK 0x3fffu
#define PTT_CPU_NONE 0x3fffu
#define PTT_TIME_SHIFT 10
#define PTT_TIME_BITS 40
#define PTT_TIME_MASK ((UINT64_C(1) << PTT_TIME_BITS) - 1)
/*
 * The processor comes last so that a CTF reader takes it for the beginning of the event's context: in the header, where
 * only id and time mean something, babeltrace2 warns of it.
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
 * Chunk states. A chunk is claimed with one compare and swap that carries the claimant, so that no kill can orphan it.
 * FREE -> CLAIMED (writer) -> OWNED (writer: head is valid) -> FULL (writer: has moved on) -> FREE (collector; in LOOP a
 * writer takes FULL -> CLAIMED itself).
 */
#define PTT_CHUNK_FREE 0u
#define PTT_CHUNK_CLAIMED 1u
#define PTT_CHUNK_OWNED 2u
#define PTT_CHUNK_FULL 3u
#define PTT_CHUNK_STATUS(state) ((state) & 3u)
#define PTT_CHUNK_THREAD(state) ((state) >> 2 & 0x7fffu)
/* With FULL: the collector took the chunk from an idle thread, and what that thread had reserved but not written is void. */
#define PTT_CHUNK_TAKEN 0x80000000u
/* The low bits of the head's count of chunk changes keep a late compare and swap from hitting a chunk that has come back. */
#define PTT_CHUNK_STATE(thread, changes, status) \
	(((uint32_t)(changes) & 0x3fffu) << 17 | ((uint32_t)(thread) & 0x7fffu) << 2 | (status))
#define PTT_THREAD_COUNT_MAX 32768u
/* CLAIMED with a change, as no writer claims: the file has no pages for this chunk yet. The collector makes it FREE. */
#define PTT_CHUNK_ABSENT PTT_CHUNK_STATE(PTT_THREAD_COUNT_MAX - 1, 1, PTT_CHUNK_CLAIMED)

/* First bytes of a chunk; the slots follow. */
struct ptt_chunk {
	uint64_t t_base;     /* full clock value when it was claimed; no event in it is older */
	uint32_t pid;
	uint32_t tid;
	uint32_t process;    /* process image */
	uint32_t dirty_end;  /* bytes that the next owner has to clear; kept by collector and LOOP writers */
	uint64_t serial;     /* counts the chunks of a thread entry, in order */
};
_Static_assert(sizeof(struct ptt_chunk) == 32, "chunk head is two slots");
_Static_assert(offsetof(struct ptt_chunk, dirty_end) == 20, "read by collector");
#define PTT_CHUNK_HEAD 32u
_Static_assert(PTT_CHUNK_HEAD + PTT_EVENT_SLOTS_MAX * PTT_SLOT_SIZE <= PTT_CHUNK_SIZE_MIN, "every event fits in a chunk");

/*
 * thread.head: bits 0-39 byte offset in the segment of the next slot to write, bits 40-63 a count of chunk changes, so
 * that no stale compare can succeed. An offset that is a multiple of the chunk size means "no room": chunk heads keep
 * valid slots off that boundary.
 */
#define PTT_HEAD_OFFSET_BITS 40
#define PTT_HEAD_OFFSET_MASK ((UINT64_C(1) << PTT_HEAD_OFFSET_BITS) - 1)
/* The same as masking, by shifts, which need no register for the mask. */
#define PTT_HEAD_OFFSET(head) ((head) << (64 - PTT_HEAD_OFFSET_BITS) >> (64 - PTT_HEAD_OFFSET_BITS))
#define PTT_HEAD_CHANGE (UINT64_C(1) << 40)

#define PTT_HEAD_CHANGES(head) ((uint32_t)((head) >> 40)) /* 24 bits */

/*
 * thread.revoke: how the collector gets the chunk of an idle thread back. The word is a state and a chunk-change count;
 * only the exact word may be replaced, by compare and swap. NONE keeps the count, so that no question goes unnoticed.
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
 * Either the writer sees the word, or the collector sees the reservation. The last step is for a writer whose signal
 * handler has already answered the question. tests/models/ring.pml checks all of it.
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
#define PTT_THREAD_LEFT 3u /* its losses are on disk: whoever collects, or takes over, clears the entry */

struct ptt_thread {
	/* the owner's line */
	uint64_t head;
	uint64_t t_base; /* of the current chunk */
	uint32_t revoke;
	uint32_t state;
	uint64_t lost_full;   /* events dropped because no chunk was free */
	uint64_t lost_closed; /* events that came when nobody collected any more */
	uint64_t wait_ns;     /* time spent waiting for room */
	uint32_t pid;
	uint32_t tid;
	uint32_t process;
	uint32_t hint; /* chunk where the owner looks first */
	/* the collector's line */
	uint64_t serial; /* counts the threads that had this entry */
	uint64_t chunks; /* next chunk.serial; written by the owner */
	uint64_t lost_real_time; /* of lost_full: the thread was of a real-time policy, so it did not wait */
	uint32_t waiting; /* how often the thread, and its signal handlers, count in segment.waiters; written by the owner */
	uint32_t pad;
	uint64_t lost_stalled; /* of lost_full: the collector stood still */
	uint64_t reserved[3];
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
 * A process image is what a process runs from its start, its fork or its exec on. Images are counted, and known by their
 * number for ever; an entry is free for another image once this one has ended and all that it left is on disk.
 */
struct ptt_process {
	uint32_t state;
	uint32_t pid;    /* as the process itself sees it: identity.h */
	uint32_t ppid;
	uint32_t parent; /* image that forked it, or UINT32_MAX */
	uint64_t start;  /* clock value when it attached */
	uint64_t lost_threads; /* events of threads that found no thread entry */
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
	uint32_t chunk_reserve; /* so many chunks are only for real-time threads that find no other */
	uint32_t chunk_reserve_at; /* the first of them */
	uint32_t stack_depth; /* frames of a stack, at most PTT_STACK_DEPTH_MAX; 0 = no stacks */
	uint32_t stack_all;   /* with every event, not only where somebody waits */
	uint32_t sched; /* 1 = events say whether their thread lost the processor before them, where that can be known */
	uint32_t python; /* 1 = stacks have the functions of Python in place of the interpreter's */
	uint32_t slow_barrier; /* set by a process that a quick barrier of the collector's does not reach, see revoke.c */
	uint32_t stack_user; /* 1 = events of the program itself have stacks, too */
	uint64_t lost_reported; /* events of which EVENTS_LOST says that they were lost */
	uint64_t without_stack; /* events that were to have one, and for which nothing was found, or no room */
	/* line 3: slow paths of writers */
	uint32_t closed;      /* 1 = recording is over */
	uint32_t thread_high; /* entries below this have been used */
	uint32_t chunk_hand;  /* LOOP: where to look for the oldest chunk */
	uint32_t stopped;     /* UNTIL_FULL: the buffers have filled */
	uint64_t overwritten; /* LOOP: bytes of slots that were overwritten */
	uint64_t site_head;   /* entries ever reserved in the site journal */
	uint64_t site_tail;   /* entries ever taken out by the collector */
	uint64_t site_lost;   /* sites that found the journal full, to be announced at a later call; and entries given up */
	uint32_t chunks_there; /* the first ones; the file has no pages for those behind them yet */
	uint32_t real_time;    /* set by the first real-time thread */
	uint64_t without_site; /* events that have none, because the table of their process or the journal was full */
	/* line 4: futex words */
	uint32_t space;    /* changes when chunks have been freed */
	uint32_t waiters;  /* writers waiting for space */
	uint32_t doorbell; /* changes when a writer wants the collector now */
	uint32_t lost_processes; /* that found no process entry */
	uint32_t process_hint;   /* where to look for a free one first */
	uint32_t images;         /* process images ever counted */
	uint32_t process_high;   /* process entries below this have been used */
	uint32_t thread_hint;    /* as process_hint */
	uint32_t unjoined;       /* processes that could not map the segment, or found no memory for it */
	uint32_t pad6;
	uint64_t pad3[3];
	/* line 5: is anybody collecting? */
	uint32_t collector;   /* tid of a thread of the collector's, 0 = none; the kernel marks it with FUTEX_OWNER_DIED when that dies */
	uint32_t beat;        /* the collector counts it up while it works; never 0 */
	uint32_t stalled;     /* the beat at which a writer has waited patience_ms for the next one, in vain; 0 = none */
	uint32_t patience_ms; /* a collector whose beat stands still for so long is not waited for */
	uint64_t pad5[6];
};
#define PTT_PATIENCE_MS 20000u
_Static_assert(offsetof(struct ptt_segment, shared_offset) == 136, "segment head");
_Static_assert(offsetof(struct ptt_segment, closed) == 192, "line 3");
_Static_assert(offsetof(struct ptt_segment, space) == 256, "line 4");
_Static_assert(offsetof(struct ptt_segment, collector) == 320, "line 5");
_Static_assert(sizeof(struct ptt_segment) == 384, "segment head");

/* ------------------------------------------------------- one buffer for all */

/*
 * The shared buffer of the write-and-read mechanism: one array of 32-bit words that all threads of all processes write
 * classic records to. It lies in a segment of its own kind, which has a process table and neither chunks nor threads.
 * reserved, written and beg_read count words since the beginning and never go back; a word of the array is found at the
 * count modulo the size. Whoever maps the array maps it twice, end to end, so that a record that wraps is in one piece.
 *
 *   field                    written by                              read by
 *   -----------------------  --------------------------------------  ----------------------
 *   first line               the reading process, before all others  all
 *   reserved                 writers (compare and swap)              both
 *   written                  writers; the reader where it gives up   both (compare and swap)
 *   beg_read, given_up       the reader                              writers
 *   pause, fini              the reader                              writers; pause is a futex word
 *   words of the array       writers, within what they reserved      the reader, which zeroes them afterwards
 *   process[i].writing       the process                             the reader
 *
 * written <= reserved always. Where the two are equal, all below them is whole.
 */
#define PTT_SHARED_SIZE_MIN (UINT64_C(64) << 10) /* bytes of the array; a power of two */
#define PTT_SHARED_SIZE_MAX (UINT64_C(1) << 34)
#define PTT_SHARED_ALIGN 65536u /* of the array in the segment: no page is larger */

struct ptt_shared {
	uint64_t size;           /* of the array, in words; a power of two */
	uint64_t array_offset;   /* in the segment, as all offsets */
	uint64_t process_offset; /* struct ptt_shared_process[segment.process_count] */
	uint64_t headroom;       /* words that only writers take which interrupted another writer of their thread */
	uint64_t pad0[4];
	uint64_t reserved;
	uint64_t pad1[7];
	uint64_t written;
	uint64_t pad2[7];
	uint64_t beg_read;
	uint64_t given_up; /* what was reserved below this and not written counts as written: its writer is dead or stuck */
	uint64_t pad3[6];
	uint32_t pause; /* 1 = writers wait; changes are announced with a futex wake */
	uint32_t fini;  /* 1 = nobody reads any more */
	uint64_t pad4[7];
	uint64_t lost_full;
	uint64_t lost_closed;
	uint64_t wait_ns;  /* waited for room */
	uint64_t pause_ns; /* waited while PAUSE */
	uint64_t lost_stalled; /* of lost_full: the reader stood still */
	uint64_t pad5[3];
};
_Static_assert(offsetof(struct ptt_shared, reserved) == 64, "line 2");
_Static_assert(offsetof(struct ptt_shared, written) == 128, "line 3");
_Static_assert(offsetof(struct ptt_shared, beg_read) == 192, "line 4");
_Static_assert(offsetof(struct ptt_shared, pause) == 256, "line 5");
_Static_assert(offsetof(struct ptt_shared, lost_full) == 320, "line 6");
_Static_assert(sizeof(struct ptt_shared) == 384, "shared buffer head");

/* Beside the process entry of the same index. */
struct ptt_shared_process {
	uint32_t writing;    /* threads between reserving and having written */
	uint32_t gone;       /* the reader: it does not run any more */
	uint64_t start_time; /* as /proc/PID/stat has it: a later process of the same pid has another */
};
_Static_assert(sizeof(struct ptt_shared_process) == 16, "shared process entry");

/* ------------------------------------------------------------- call sites */

/*
 * A process numbers its call sites itself, in a private hash table of PTT_SITE_COUNT entries whose index is the site id; a
 * forked child begins with an empty one, or with its parent's where the kernel cannot clear it. Each new site is announced
 * in the journal of the segment, a ring that writers append to by compare and swap of site_head and the collector empties.
 *
 * Stacks are numbered alike, in a table of their own: a stack is a return address and the stack of its caller, so that
 * those that begin alike share what they have in common. Stack 0 is none; 1 and 2 have no frames: what was called from 1 was
 * called by nobody, what was called from 2 by frames that are not known, or too many.
 *
 * Each word of an entry carries the lap of the journal in its high 16 bits: an entry is written once all three bear the lap
 * that is due. A writer that was stopped for so long that the collector has given its entry up, and that goes on when the
 * entry is somebody else's, thus spoils it where all can see. tests/models/sites.pml checks it.
 */
#define PTT_SITE_COUNT 65536u
/* In the private table: the address has its number still, but is to be asked for before the number is used again. */
#define PTT_SITE_STALE (UINT64_C(1) << 62)
#define PTT_SITE_JOURNAL 16384u

#define PTT_STACK_COUNT 131072u /* a stack's number has 17 bits */
#define PTT_STACK_NONE 0u
#define PTT_STACK_WHOLE 1u
#define PTT_STACK_CUT 2u
#define PTT_STACK_FIRST 3u
#define PTT_STACK_DEPTH_MAX 64u
#define PTT_NO_PARENT 0xffffffu /* of what is a call site, and no stack */

/*
 * A function of Python stands in a stack by an address where no code is: PTT_PYTHON_PLACE, the number of its code object, which
 * has PTT_PYTHON_SHIFT bits to the right, and there the number of the instruction, or the highest that there is room for. What
 * a code object is, the process writes to python-<image> in the session directory: in hexadecimal, with spaces between them,
 * its number, the minor version of Python 3, the first line, for file and function each the bytes of a character and of all,
 * the bytes of the line table; a newline; then file, function and line table; a newline.
 */
#define PTT_PYTHON_PLACE UINT64_C(0x400000000000)
#define PTT_PYTHON_PLACE_END UINT64_C(0x500000000000)
#define PTT_PYTHON_SHIFT 20
#define PTT_PYTHON_CODES 32768u

/*
 * A method of Java stands there in the same way, with the number of its bytecode; where a minor version of Python 3 would be,
 * its entry has one of these. Its line table is pairs of 16 bits: the first bytecode of a line, and the line. The bytes of a
 * character of such texts are 0: they are UTF-8.
 */
#define PTT_TEXT_UTF8 0
#define PTT_CODE_JAVA 0
#define PTT_CODE_JAVA_OBJECT 1 /* no code: the first line is the number of an object, the function is its class */

/*
 * An object that is moved about in memory stands in events by an address where nothing is: PTT_NUMBERED_PLACE and its
 * number, which has PTT_NUMBERED_SHIFT bits to the right. What is done to it without a wait is not in the trace.
 */
#define PTT_NUMBERED_PLACE UINT64_C(0x500000000000)
#define PTT_NUMBERED_PLACE_END UINT64_C(0x510000000000)
#define PTT_NUMBERED_SHIFT 4
/* As short as this, for every change of a lock is asked: of these addresses, and no others of 48 bits, the highest byte is that. */
#define PTT_IS_NUMBERED(object) ((uint8_t)((uint64_t)(object) >> 40) == PTT_NUMBERED_PLACE >> 40)
_Static_assert(PTT_NUMBERED_PLACE_END - PTT_NUMBERED_PLACE == UINT64_C(1) << 40 && (PTT_NUMBERED_PLACE << 24) == 0,
	       "addresses of objects that have numbers");

struct ptt_site_entry {
	uint64_t address; /* 0 = nothing to report; stored last */
	uint64_t ids;     /* its own in the low 24 bits, that of the caller's stack above */
	uint32_t process; /* index of its entry */
	uint32_t pad;
};
_Static_assert(sizeof(struct ptt_site_entry) == 24, "site journal entry");
#define PTT_SITE_IDS(id, parent) ((uint64_t)(parent) << 24 | (id))

/* As the collector hands it out. */
struct ptt_site {
	uint64_t address;
	uint32_t process; /* image */
	uint32_t id;
	uint32_t parent; /* PTT_NO_PARENT, or of a stack that of the caller */
	uint32_t reserved;
};
_Static_assert(sizeof(struct ptt_site) == 24, "site");
#define PTT_SITE_VOID UINT64_MAX /* as the collector hands out what has no address */
/* The lap of entry number @at since the beginning: never 0, which is what entries hold at first. */
#define PTT_SITE_LAP(at) (1 + (uint32_t)((at) / PTT_SITE_JOURNAL % 0xffff))
#define PTT_SITE_LAP_SHIFT 48      /* in address and ids */
#define PTT_SITE_LAP_SHIFT_SMALL 16 /* in process */

/*
 * Beside the segment, the session directory holds maps-<image>, cmdline-<image> and exe-<image>: what /proc/self/maps and
 * /proc/self/cmdline say and what /proc/self/exe leads to. Process image <image> writes them when it attaches, exe-<image>
 * only where it is no child of a fork, and maps-<image> anew when it ends; each under a name with .new at its end, which is
 * then renamed. modules-<image> has a line for each module that a call was first seen from,
 * or seen from anew after it was loaded again: the time in ticks, where it begins and ends, what to add to addresses of its
 * own symbol table, all in hexadecimal; its build-id with a - behind it; its path, empty for the program itself.
 */

/* In the trace directory while it is recorded: a byte for each process that did not find the segment. */
#define PTT_UNTRACED_FILE ".untraced"

/* ---------------------------------------------------------- level control */

/*
 * The level control page, control-<PID namespace>-<pid> in the directory named by the tracing argument control=DIR. A
 * process makes a new file, whatever is there: another one may have the old file mapped, which must not shrink.
 */
#define PTT_CONTROL_MAGIC "PTTCTRL1"

struct ptt_control {
	struct ptt_abi_head abi;
	uint32_t pid;
	uint32_t changes;      /* counts what others wrote */
	uint32_t level[16];    /* by domain id; the hot path tests this very word; at 0, the highest of the others */
	uint32_t reserved[10];
};
_Static_assert(offsetof(struct ptt_control, level) == 24, "levels");
_Static_assert(sizeof(struct ptt_control) == 128, "control page");

/* --------------------------------------------------------------- attaching */

/*
 * The file `attach` in the session directory of a process that was attached while it ran: what its agent, a thread that was
 * put into it, and the recorder say to each other. state, and what stands behind beat, is written by the agent; wanted and
 * beat by the recorder. wanted is a futex word.
 */
#define PTT_ATTACH_MAGIC "PTTATTC1"

/* attach.state */
#define PTT_ATTACH_BEGUN 0u
#define PTT_ATTACH_RECORDS 1u
#define PTT_ATTACH_LEFT 2u   /* no call leads to the tracer any more, and the process writes nothing; reason if not asked to */
#define PTT_ATTACH_REFUSED 3u /* reason says why; nothing was changed */
#define PTT_ATTACH_AWAY 4u    /* the process writes, and has no thread of the agent for a moment */

/* attach.wanted */
#define PTT_ATTACH_WANT_RECORD 0u
#define PTT_ATTACH_WANT_LEAVE 1u
#define PTT_ATTACH_WANT_TIDY 2u /* the same; the memory that the agent began in is not used by anybody else any more */

struct ptt_attach {
	struct ptt_abi_head abi;
	uint32_t state;
	uint32_t wanted;
	uint32_t beat; /* counts up; when it stands still for PTT_ATTACH_PATIENCE_S, the recorder does */
	uint32_t modules; /* that were looked at */
	uint32_t calls;	  /* entries of their tables of imported functions that lead to the tracer */
	uint32_t refused; /* that could not be changed */
	char reason[216];
};
_Static_assert(offsetof(struct ptt_attach, state) == 16, "attach state");
_Static_assert(sizeof(struct ptt_attach) == 256, "attach file");
#define PTT_ATTACH_PATIENCE_S 20u
/* The memory that recorders put into a process: its size, and where in it the text is that the agent is given. */
#define PTT_ATTACH_MEMORY 131072u
#define PTT_ATTACH_TEXT_AT 8800u

/* ------------------------------------------------------------ CTF packets */

#define PTT_CTF_MAGIC 0xC1FC1FC1u
#define PTT_STREAM_SLOTS 0u   /* 16-byte slots, one stream a thread entry */
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
	uint64_t chunk_serial; /* last chunk that went in, and how far: where recovery goes on */
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
#define PTT_RECORD_UNFINISHED 0xffffu /* id while the record is being written; becomes the true one last */
#define PTT_RECORD_WORDS_MAX 1100u

#endif
