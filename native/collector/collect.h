/* SPDX-License-Identifier: MIT */
/* collect.h - libpttcollect: makes the shared segment, drains it into CTF packets, and takes over segments of dead recorders. */
/*
 * The order of calls:
 *
 *     create                    before the program starts; a thread of this process now holds segment.collector
 *     wait, pass, wait, pass…   while processes live; process_gone() for each dead process
 *     close                     no thread may write any more
 *     finish                    the last drain; afterwards the files are complete
 *     destroy                   frees everything; the segment file itself belongs to the caller
 *
 * After a recorder was killed, call ptt_collector_attach() in place of create. It drops a torn packet at the end of a stream
 * and continues after the last whole packet. So each event gets to disk exactly once.
 *
 * Call the functions of a collector one at a time. They block on files, allocate, and are not safe in signal handlers. They
 * return 0 or a count, or -errno. After an error, @message has one line about it, if @message is not NULL. No function keeps
 * a pointer from its caller.
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
#define PTT_COLLECT_ABI 8u

struct ptt_collector;

struct ptt_message {
	char text[512];
};

struct ptt_collector_options {
	const char *segment;    /* path of the segment file */
	const char *trace;      /* trace directory; it must exist */
	uint64_t budget;        /* bytes of all buffers together; 0 = 64 MiB */
	uint64_t max_file_size; /* begin another stream file before a file gets bigger; 0 = no limit */
	uint32_t max_files;     /* keep that many files of a stream; 0 = all */
	uint32_t chunk_size;    /* 0 = PTT_CHUNK_SIZE; a power of two, 8 KiB to 1 MiB */
	uint32_t policy;        /* enum ptt_policy */
	uint32_t when_full;     /* enum ptt_when_full */
	uint32_t stack_depth;   /* frames of a stack, at most PTT_STACK_DEPTH_MAX; 0 = no stacks */
	uint32_t stack_all;     /* 1 = every event has a stack; 0 = only waits */
	uint32_t sched;         /* 1 = threads record that they have lost the processor, see readings.h */
	uint32_t python;        /* 1 = stacks have Python functions in place of functions of the interpreter */
	uint32_t stack_user;    /* 1 = events of the program itself have stacks, too */
	uint32_t compact;       /* 1 = write compact stream files, see compact/compact.h; also for attach */
};

struct ptt_collector_stats {
	uint64_t events;       /* events in the trace */
	uint64_t packets;
	uint64_t bytes;        /* bytes of all stream files */
	uint64_t threads;      /* threads with events in the trace */
	uint64_t lost_full;    /* events lost: there was no room */
	uint64_t lost_closed;  /* events lost: there was no collector */
	uint64_t lost_threads; /* events lost: their threads found no free thread entry */
	uint64_t lost_write;   /* events lost: they could not be written to disk */
	uint64_t lost_sites;   /* call sites lost: the journal was full when a thread first saw the site */
	uint64_t overwritten;  /* LOOP: bytes of older events */
	uint64_t removed;      /* events in files that rotation has deleted */
	uint64_t wait_ns;      /* time that writers waited for room */
	uint32_t chunks;
	uint32_t free_chunks;
	uint32_t freed_chunks; /* chunks that the last pass freed */
	uint32_t live_threads;
	int32_t write_error; /* errno of the last write that failed, or 0 */
	uint32_t stopped;    /* 1 = UNTIL_FULL: the buffers are full */
	uint32_t lost_processes; /* processes that ran untraced: too many processes ran at a time */
	uint64_t lost_real_time; /* part of lost_full: events of real-time threads, which do not wait for room */
	uint64_t without_site;   /* events without a call site: their process has too many call sites */
	uint64_t without_stack;  /* events without the wanted stack: it was not found, or there were too many stacks */
	uint64_t lost_reported;  /* lost events that events of the trace report */
	uint64_t lost_stalled;   /* part of lost_full: the recorder stood still, so threads stopped waiting for room */
	uint32_t cut;            /* 1 = somebody has shortened the segment: its contents are lost */
	uint32_t unjoined;       /* processes that ran untraced: they could not use the segment */
};

/* A thread that has an entry now. */
struct ptt_collector_thread {
	uint32_t pid;
	uint32_t tid;
	uint32_t process;
	uint32_t index;
	uint64_t serial;
};

/* A process entry and its index. */
struct ptt_collector_process {
	struct ptt_process entry;
	uint32_t index;
	uint32_t reserved;
};

/* One reading of all clocks, as near to the same moment as possible. */
struct ptt_collector_time {
	uint64_t clock; /* the trace's clock */
	uint64_t monotonic_ns;
	int64_t unix_ns;
	uint32_t kind; /* enum ptt_clock */
	uint32_t spread_ns; /* the readings are at most so far apart */
};

/* A part of the shared buffer that is no valid record. */
enum ptt_fault_kind {
	PTT_FAULT_UNFINISHED = 1, /* the thread that wrote here was killed, or did not continue */
	PTT_FAULT_DAMAGED = 2,    /* the checksum is wrong */
};

struct ptt_collector_fault {
	uint64_t word;  /* place in the stream of words, counted from the beginning of the recording */
	uint64_t words; /* number of words left out */
	uint32_t kind;  /* enum ptt_fault_kind */
	uint32_t pid;   /* pid of the writer; 0 = not known */
};

/* What ptt_collector_look() looks for in new events. */
struct ptt_collector_alarm {
	uint64_t min_wait_ns; /* a wait for a lock of this time or longer; 0 = none */
	uint64_t frequency;   /* of the trace's clock, in Hz */
	const char *texts;    /* beginnings of texts of user events, each with a NUL, and a NUL behind the last; NULL = none */
};

enum ptt_reason_kind {
	PTT_REASON_WAIT = 1, /* a wait for a lock, which may go on */
	PTT_REASON_TEXT = 2, /* a user event */
};

/* An event that ptt_collector_look() has found. */
struct ptt_collector_reason {
	uint32_t kind; /* enum ptt_reason_kind; 0 = nothing was found */
	uint32_t pid;
	uint32_t tid;
	uint32_t pad;
	uint64_t wait_ns; /* duration of the wait so far */
};

/* Flags of ptt_collector_pass(). */
#define PTT_PASS_FLUSH 1u /* write partly filled chunks too, even if the packets get small */

/* ptt_collector_abi - the value of PTT_COLLECT_ABI when the library was built. */
PTT_COLLECT_API uint32_t ptt_collector_abi(void);

/*
 * ptt_collector_create - make and map the segment file, and begin to collect
 * @collector: set on success; free it with ptt_collector_destroy()
 *
 * -ENOSPC: the file system of @options->segment has no room for the segment. -EEXIST: there is such a file.
 */
PTT_COLLECT_API int ptt_collector_create(const struct ptt_collector_options *options,
					 struct ptt_collector **collector, struct ptt_message *message);

/*
 * ptt_collector_create_shared - the same with one buffer for all threads, for the handler `shared`
 * @options: as for ptt_collector_create(); the function ignores budget and chunk_size
 * @size: bytes of the buffer, rounded up to a power of two; 0 = 16 MiB
 *
 * All other functions work as with ptt_collector_create(). Such a recording has no journal of call sites.
 */
PTT_COLLECT_API int ptt_collector_create_shared(const struct ptt_collector_options *options, uint64_t size,
						struct ptt_collector **collector, struct ptt_message *message);

/*
 * ptt_collector_attach - take over the segment of a dead collector
 *
 * @options: the function uses segment, trace and the file limits only
 *
 * -EBUSY: its collector lives. -EPROTO: a segment of another version. -ENODATA: the file is no segment, or is damaged.
 */
PTT_COLLECT_API int ptt_collector_attach(const struct ptt_collector_options *options,
					 struct ptt_collector **collector, struct ptt_message *message);

/*
 * ptt_collector_sched - have the kernel record context switches into streams of this trace
 * @pid: a process that is about to execute the program; the kernel also records the processes that it starts
 *
 * -EACCES, -EPERM: the kernel does not allow this to the user. -EINVAL: the collector has one buffer for all threads, or
 * records context switches already.
 */
PTT_COLLECT_API int ptt_collector_sched(struct ptt_collector *collector, uint32_t pid, struct ptt_message *message);

/*
 * ptt_collector_pass - drain chunks that are ready, and recycle entries of threads and processes that have ended
 * @flags: PTT_PASS_FLUSH or 0
 * @stats: NULL, or where to store the counts so far
 *
 * A full disk is no error: see stats.write_error.
 */
PTT_COLLECT_API int ptt_collector_pass(struct ptt_collector *collector, uint32_t flags,
				       struct ptt_collector_stats *stats);

/*
 * ptt_collector_turn - continue in another trace directory, and leave the files so far to the caller
 * @trace: the next directory; it must exist, and have no stream files
 *
 * Call it after a pass with PTT_PASS_FLUSH: then the files so far have all events that were complete before that pass. All
 * files so far are closed, and no later function changes them. Packets keep counting across directories. A thread has no
 * file in a directory without an event of it. -EINVAL: one buffer for all threads, files of limited size, or context
 * switches, which have files of their own. Other errors are those of open(2) for @trace; the collector stays where it is.
 */
PTT_COLLECT_API int ptt_collector_turn(struct ptt_collector *collector, const char *trace, struct ptt_message *message);

/*
 * ptt_collector_wait - sleep until a writer has rung the doorbell since the last pass began, or the time is over
 * Return: 0, or -EINTR after a signal.
 */
PTT_COLLECT_API int ptt_collector_wait(struct ptt_collector *collector, uint32_t timeout_ms);

/*
 * ptt_collector_look - in the policy LOOP: look for a reason to make a snapshot in the events since the last look
 * @reason: the first reason found
 * Return: 1 if there is a reason, else 0; -ENOMEM. -EINVAL: another policy, one buffer for all threads, or no frequency.
 * Events that are overwritten between two looks are not seen.
 */
PTT_COLLECT_API int ptt_collector_look(struct ptt_collector *collector, const struct ptt_collector_alarm *alarm,
				       struct ptt_collector_reason *reason);

/*
 * ptt_collector_snapshot - in the policy LOOP: write the present contents of the buffers as a trace of their own
 * @trace: directory of that trace; it must exist
 * @uuid: 16 bytes, the UUID of that trace
 * @stats: the counts of that trace; its write_error says whether something could not be written
 *
 * The recording goes on, and writers do not wait. The trace has all events up to the call that are complete and not
 * overwritten, and no later event. The function needs as much memory as the buffers for a while. -EINVAL: another policy, or
 * one buffer for all threads. -ENOMEM: no memory for the copy. Other errors are those of open(2) for @trace.
 */
PTT_COLLECT_API int ptt_collector_snapshot(struct ptt_collector *collector, const char *trace, const uint8_t *uuid,
					   struct ptt_collector_stats *stats, struct ptt_message *message);

/* ptt_collector_close - recording is over: from now on writers drop and count their events. */
PTT_COLLECT_API int ptt_collector_close(struct ptt_collector *collector);

/* ptt_collector_finish - after close: drain all chunks, also chunks with holes, and close all files. */
PTT_COLLECT_API int ptt_collector_finish(struct ptt_collector *collector, struct ptt_collector_stats *stats);

PTT_COLLECT_API void ptt_collector_destroy(struct ptt_collector *collector);

/*
 * ptt_collector_processes - copy process entries that are new, or have a new state since the last copy
 * @count: room in @processes
 * Return: number of copied entries. If it is @count, there may be more entries: call again.
 */
PTT_COLLECT_API int ptt_collector_processes(struct ptt_collector *collector, struct ptt_collector_process *processes,
					    uint32_t count);

/*
 * ptt_collector_process_pid - the pid of the process of entry @index, in the PID namespace of the calling process
 * Return: 0 if the process does not run, or did not fill in its entry. Reads /proc for a process in another PID namespace.
 */
PTT_COLLECT_API uint32_t ptt_collector_process_pid(struct ptt_collector *collector, uint32_t index);

/*
 * ptt_collector_process_gone - tell the collector that the process image of entry @index does not run any more
 *
 * Unfinished events of the image are final now. The next pass drains its threads and recycles their entries. The process entry
 * is recycled once its call sites have been taken. -EINVAL: there is no such entry.
 */
PTT_COLLECT_API int ptt_collector_process_gone(struct ptt_collector *collector, uint32_t index);

/* ptt_collector_threads - copy at most @count entries of threads that have not reported their end. Return: number of copies. */
PTT_COLLECT_API int ptt_collector_threads(struct ptt_collector *collector, struct ptt_collector_thread *threads,
					  uint32_t count);

/*
 * ptt_collector_sites - copy announced call sites and stacks, oldest first, at most @count
 * Return: number of copied sites. They stay in the journal until ptt_collector_sites_taken().
 */
PTT_COLLECT_API int ptt_collector_sites(struct ptt_collector *collector, struct ptt_site *sites, uint32_t count);

/* ptt_collector_sites_taken - remove the first @count copied sites from the journal: they are on disk. */
PTT_COLLECT_API int ptt_collector_sites_taken(struct ptt_collector *collector, uint32_t count);

/* ptt_collector_faults - copy the first @count faults of the shared buffer, at most 64. Return: number of all faults. */
PTT_COLLECT_API uint64_t ptt_collector_faults(const struct ptt_collector *collector, struct ptt_collector_fault *faults,
					      uint32_t count);

/* ptt_collector_read_clock - read all clocks together. @kind: enum ptt_clock; 0 = the clock that a new segment would use */
PTT_COLLECT_API int ptt_collector_read_clock(uint32_t kind, struct ptt_collector_time *now);

/* ptt_collector_segment - a private copy of the segment's head, as it was made; valid until destroy. */
PTT_COLLECT_API const struct ptt_segment *ptt_collector_segment(const struct ptt_collector *collector);

#ifdef __cplusplus
}
#endif

#endif
