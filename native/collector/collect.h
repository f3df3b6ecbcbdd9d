/* SPDX-License-Identifier: MIT */
/* collect.h - libpttcollect: makes the shared segment, drains it into CTF packets, and finishes what was left behind. */
/*
 * The recorder's life:
 *
 *     create                    before the program starts; a thread of this process now holds segment.collector
 *     wait, pass, wait, pass…   while processes live; process_gone() for each that has died
 *     close                     nobody may write any more
 *     finish                    the last drain; files are whole afterwards
 *     destroy                   gives everything back; the segment file itself belongs to the caller
 *
 * ptt_collector_attach() takes the place of create where a recorder was killed: it drops a torn packet at the end of a
 * stream and goes on after the last whole one, so that each event gets to disk exactly once.
 *
 * All functions of one collector must be called one at a time. Functions return 0 or a count, or -errno and, if @message
 * is not NULL, one line that says what failed. No function keeps pointers that it was given.
 */
#ifndef PTT_COLLECT_H
#define PTT_COLLECT_H

#include <stddef.h>
#include <stdint.h>

#include "layout/ptt_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PTT_COLLECT_API __attribute__((visibility("default")))
#define PTT_COLLECT_ABI 6u

struct ptt_collector;

struct ptt_message {
	char text[512];
};

struct ptt_collector_options {
	const char *segment;    /* path of the segment file */
	const char *trace;      /* trace directory, which exists */
	uint64_t budget;        /* bytes of all buffers together; 0 = 64 MiB */
	uint64_t max_file_size; /* begin another stream file before one gets bigger; 0 = no limit */
	uint32_t max_files;     /* keep that many files of a stream; 0 = all */
	uint32_t chunk_size;    /* 0 = PTT_CHUNK_SIZE; a power of two, 8 KiB to 1 MiB */
	uint32_t policy;        /* enum ptt_policy */
	uint32_t when_full;     /* enum ptt_when_full */
	uint32_t stack_depth;   /* frames of a stack, at most PTT_STACK_DEPTH_MAX; 0 = no stacks */
	uint32_t stack_all;     /* with every event, not only where somebody waits */
	uint32_t sched;         /* 1 = threads say when they have lost the processor, see readings.h */
	uint32_t python;        /* 1 = stacks have the functions of Python in place of the interpreter's */
	uint32_t stack_user;    /* 1 = events of the program itself have stacks, too */
	uint32_t pad;
};

struct ptt_collector_stats {
	uint64_t events;       /* in the trace */
	uint64_t packets;
	uint64_t bytes;        /* of all stream files */
	uint64_t threads;      /* that have events in the trace */
	uint64_t lost_full;    /* no room */
	uint64_t lost_closed;  /* nobody collected */
	uint64_t lost_threads; /* no thread entry was free */
	uint64_t lost_write;   /* could not be written to disk */
	uint64_t lost_sites;   /* call sites that found the journal full when first seen */
	uint64_t overwritten;  /* LOOP: bytes of older events */
	uint64_t removed;      /* events in files that rotation has deleted */
	uint64_t wait_ns;      /* writers waited for room */
	uint32_t chunks;
	uint32_t free_chunks;
	uint32_t freed_chunks; /* by the last pass */
	uint32_t live_threads;
	int32_t write_error; /* errno of the last write that failed, or 0 */
	uint32_t stopped;    /* UNTIL_FULL: the buffers have filled */
	uint32_t lost_processes; /* that ran untraced, since there were too many at one time */
	uint64_t lost_real_time; /* of lost_full: by real-time threads, which do not wait for room */
	uint64_t without_site;   /* events whose process has more call sites than can be distinguished */
	uint64_t without_stack;  /* events whose stack was wanted, and not found, or one too many */
	uint64_t lost_reported;  /* events of the trace say that so many others were lost */
	uint64_t lost_stalled;   /* of lost_full: the recorder stood still, so threads stopped waiting for room */
	uint32_t cut;            /* 1 = somebody has shortened the segment: what was in it is lost */
	uint32_t unjoined;       /* processes that ran untraced, since they could not use the segment */
};

/* A thread that has an entry now. */
struct ptt_collector_thread {
	uint32_t pid;
	uint32_t tid;
	uint32_t process;
	uint32_t index;
	uint64_t serial;
};

/* A process entry, and where it is. */
struct ptt_collector_process {
	struct ptt_process entry;
	uint32_t index;
	uint32_t reserved;
};

/* One reading of all clocks, as near to the same moment as can be had. */
struct ptt_collector_time {
	uint64_t clock; /* the trace's clock */
	uint64_t monotonic_ns;
	int64_t unix_ns;
	uint32_t kind; /* enum ptt_clock */
	uint32_t spread_ns; /* how far apart they may be */
};

/* What was found in the shared buffer instead of a record. */
enum ptt_fault_kind {
	PTT_FAULT_UNFINISHED = 1, /* the thread that wrote here was killed, or did not go on */
	PTT_FAULT_DAMAGED = 2,    /* the checksum is wrong */
};

struct ptt_collector_fault {
	uint64_t word;  /* place in the stream of words, counted from the beginning of the recording */
	uint64_t words; /* left out */
	uint32_t kind;  /* enum ptt_fault_kind */
	uint32_t pid;   /* of the writer, if that is known, else 0 */
};

/* Of ptt_collector_pass(). */
#define PTT_PASS_FLUSH 1u /* write partly filled chunks too, however small the packets get */

/* ptt_collector_abi - PTT_COLLECT_ABI that the library was built with. */
PTT_COLLECT_API uint32_t ptt_collector_abi(void);

/*
 * ptt_collector_create - make the segment file with room for all of it, map it, and begin to collect
 * @collector: set on success; give it to ptt_collector_destroy()
 *
 * -ENOSPC: the file system of @options->segment has not that much room. -EEXIST: there is such a file.
 */
PTT_COLLECT_API int ptt_collector_create(const struct ptt_collector_options *options,
					 struct ptt_collector **collector, struct ptt_message *message);

/*
 * ptt_collector_create_shared - the same with one buffer for all threads, for the handler `shared`
 * @size: bytes of the buffer, rounded up to a power of two; 0 = 16 MiB. @options->budget and chunk_size do not matter.
 *
 * All other functions work as with ptt_collector_create(). Such a recording has no journal of call sites.
 */
PTT_COLLECT_API int ptt_collector_create_shared(const struct ptt_collector_options *options, uint64_t size,
						struct ptt_collector **collector, struct ptt_message *message);

/*
 * ptt_collector_attach - take over a segment whose collector has died
 *
 * Of @options only segment, trace and the file limits are used. -EBUSY: its collector lives. -EPROTO: a segment of another
 * version. -ENODATA: nothing can be got out of it.
 */
PTT_COLLECT_API int ptt_collector_attach(const struct ptt_collector_options *options,
					 struct ptt_collector **collector, struct ptt_message *message);

/*
 * ptt_collector_sched - have the kernel record context switches of process @pid, which is about to execute the program, and of
 * all that it starts, for streams of this trace
 *
 * -EACCES, -EPERM: the kernel does not allow it to this user. Not with one buffer for all.
 */
PTT_COLLECT_API int ptt_collector_sched(struct ptt_collector *collector, uint32_t pid, struct ptt_message *message);

/*
 * ptt_collector_pass - drain chunks that are ready, and recycle entries of threads and processes that have ended; @stats may be NULL.
 * Never fails for a full disk.
 */
PTT_COLLECT_API int ptt_collector_pass(struct ptt_collector *collector, uint32_t flags,
				       struct ptt_collector_stats *stats);

/* ptt_collector_wait - sleep until a writer rings (since the last pass began), a signal comes, or the time is over. */
PTT_COLLECT_API int ptt_collector_wait(struct ptt_collector *collector, uint32_t timeout_ms);

/* ptt_collector_close - recording is over: writers drop and count from now on. */
PTT_COLLECT_API int ptt_collector_close(struct ptt_collector *collector);

/* ptt_collector_finish - after close: drain everything, holes or not, and close all files. */
PTT_COLLECT_API int ptt_collector_finish(struct ptt_collector *collector, struct ptt_collector_stats *stats);

PTT_COLLECT_API void ptt_collector_destroy(struct ptt_collector *collector);

/*
 * ptt_collector_processes - copy process entries that have come, or changed their state, since they were copied last
 * Return: how many were copied; @count means that there may be more.
 */
PTT_COLLECT_API int ptt_collector_processes(struct ptt_collector *collector, struct ptt_collector_process *processes,
					    uint32_t count);

/*
 * ptt_collector_process_pid - the pid by which the calling process knows the process of entry @index
 * Return: 0 if it does not run, or did not fill in its entry. Of a process in another PID namespace this reads /proc.
 */
PTT_COLLECT_API uint32_t ptt_collector_process_pid(struct ptt_collector *collector, uint32_t index);

/*
 * ptt_collector_process_gone - the process image of entry @index does not run any more
 *
 * What it left unfinished is final now: its threads are drained by the next pass and their entries used again, as is its
 * own once its call sites have been taken.
 */
PTT_COLLECT_API int ptt_collector_process_gone(struct ptt_collector *collector, uint32_t index);

/* ptt_collector_threads - copy the entries of threads that have not said that they end, as many as @count. Return: how many. */
PTT_COLLECT_API int ptt_collector_threads(struct ptt_collector *collector, struct ptt_collector_thread *threads,
					  uint32_t count);

/* ptt_collector_sites - look at announced call sites and stacks, oldest first. Return: how many; they stay until they are taken. */
PTT_COLLECT_API int ptt_collector_sites(struct ptt_collector *collector, struct ptt_site *sites, uint32_t count);

/* ptt_collector_sites_taken - the first @count of the sites that were looked at are on disk. */
PTT_COLLECT_API int ptt_collector_sites_taken(struct ptt_collector *collector, uint32_t count);

/* ptt_collector_faults - the first @count, 64 at most, of what was no record in the shared buffer. Return: how many in all. */
PTT_COLLECT_API uint64_t ptt_collector_faults(const struct ptt_collector *collector, struct ptt_collector_fault *faults,
					      uint32_t count);

/* ptt_collector_read_clock - read all clocks together; @kind 0 means the clock that a new segment would use. */
PTT_COLLECT_API int ptt_collector_read_clock(uint32_t kind, struct ptt_collector_time *now);

/* ptt_collector_segment - the segment's head as it was made, for what it says about itself; valid until destroy. */
PTT_COLLECT_API const struct ptt_segment *ptt_collector_segment(const struct ptt_collector *collector);

#ifdef __cplusplus
}
#endif

#endif
