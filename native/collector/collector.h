/* SPDX-License-Identifier: MIT */
/* collector.h - the base of all parts of the collector: the collector itself, the current packet, streams. */
#ifndef PTT_COLLECTOR_INTERNAL_H
#define PTT_COLLECTOR_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "collect.h"
#include "platform/clock.h"

#define PTT_MUST_CHECK __attribute__((warn_unused_result))

#define PACKET_SIZE_MAX (1024u * 1024u)
/* A packet head of 128 bytes is 0.2 % of this size. Smaller packets are written only if waiting would cost more. */
#define PACKET_SIZE_WANTED (96u * 1024u)
#define PACKET_PIECES_MAX 512u

/* The collector's notes about a chunk, in addition to the segment. */
struct chunk_note {
	uint64_t serial;  /* serial of the chunk that this note describes */
	uint32_t drained; /* offset of the first slot that is not on disk */
	uint64_t hole_serial; /* serial of the chunk with a missing slot, and since when this collector has seen the hole */
	uint64_t hole_ns;
	bool kept;        /* the chunk is on disk, but not free while its thread lives: see drain.c */
};

/* A thread entry, and its stream: all threads of the entry are written to this stream, one after the other. */
struct stream {
	uint64_t sequence;       /* number of the next packet */
	uint64_t file_size;      /* bytes of the current file, whole packets only */
	uint64_t chunk_serial;   /* last chunk on disk, */
	uint32_t chunk_end;      /* and its end on disk */
	uint32_t generation;     /* generation of the current file */
	uint64_t discarded_base; /* events lost before the present thread, or by failed writes */
	uint64_t discarded;      /* lost events that the last packet on disk reports */
	uint64_t time_end;       /* end of the last packet */
	uint64_t thread_serial;  /* thread of the last packet with events */
	uint64_t last_serial;    /* thread_serial of the last packet that a former collector wrote */
	uint64_t *generation_events; /* events of the last max_files files, by generation modulo max_files */
	uint64_t idle_head;      /* thread.head at the last revocation */
	uint32_t pid;            /* process and thread of the last packet */
	uint32_t tid;
	uint32_t process;
	uint32_t open;           /* 1 + index in the table of open files; 0 = its file is not open */
	uint8_t used;            /* 1 = there is a file */
	uint8_t gone;            /* 1 = its process is dead: holes are final */
	uint8_t ended;           /* 1 = the thread has ended, or its process is dead; each pass sets it anew */
	uint8_t checked;         /* 1 = recover.c has read the files of a former collector */
};

/* A chunk on its way to disk. */
struct ready {
	uint64_t serial;
	uint32_t thread;
	uint32_t chunk;
};

struct packet {
	struct ptt_packet head;
	struct iovec piece[PACKET_PIECES_MAX]; /* piece 0 is the head */
	uint32_t pieces;
	uint32_t size;
	uint32_t crc; /* of the pieces after the head */
	/* chunks that are free once the packet is on disk, with their dirty_end */
	struct {
		uint32_t chunk;
		uint32_t dirty_end;
	} done[PACKET_PIECES_MAX];
	uint32_t done_count;
	/* the end of each chunk on disk, once the packet is on disk */
	struct {
		uint32_t chunk;
		uint32_t drained;
	} mark[PACKET_PIECES_MAX];
	uint32_t marks;
};

struct open_file {
	int fd;
	uint32_t stream;
	bool open;
	bool used; /* since the hand of free_slot() last passed */
};

struct ptt_collector {
	struct ptt_segment *segment;
	struct ptt_segment head; /* a copy from the beginning: a wild store of the program may change the shared head */
	char *base;
	struct ptt_process *process;
	uint32_t *thread_owner;
	struct ptt_thread *thread;
	uint32_t *chunk_state;
	struct ptt_site_entry *site;
	int trace_fd;
	uint64_t max_file_size;
	uint32_t max_files;
	struct chunk_note *note;   /* by chunk */
	struct stream *stream;     /* by thread entry */
	struct ready *ready;       /* room for all chunks */
	uint64_t *wanted;          /* by thread entry: 1 + highest serial to drain, 0 = none */
	uint32_t *full;            /* by thread entry: FULL chunks that this pass has seen */
	uint32_t looked;           /* entries of wanted and full from here on are 0 */
	uint32_t *asked;           /* room for all chunks: threads that are asked for their chunks */
	struct open_file *open;
	uint32_t open_count;
	uint32_t open_hand;
	struct packet *packet;
	uint32_t packet_max; /* bytes */
	struct coding *coding; /* NULL unless stream files are compact */
	struct shared_drain *shared; /* NULL unless all threads share one buffer */
	struct ptt_shared_process *shared_process; /* with one buffer: by process entry */
	struct sched *sched; /* NULL unless context switches are recorded */
	struct ptt_collector_stats stats;
	uint32_t doorbell_seen;
	struct process_note *process_note; /* by process entry */
	uint8_t *process_used; /* by process entry: 1 = threads of the process have entries */
	uint32_t reap_at;      /* with so many threads, reap() looks for dead threads */
	uint32_t gone_processes; /* dead processes with an entry */
	uint64_t lost_threads; /* lost threads of process entries that have been given back */
	uint32_t pid_namespace;
	char device_and_inode[48]; /* device and inode of the segment, in the form of /proc/PID/maps */
	uint64_t site_stuck_ns;
	uint64_t site_stuck_at;
	uint64_t site_lost_below; /* lost entries of the journal below this have been counted */
	uint64_t revoked_ns; /* time of the last revocation */
	uint32_t kept;       /* number of chunks with note.kept */
	uint32_t room;       /* chunks that were free for any thread when the last pass began; 0 while the reserve is in use */
	pthread_t grower;    /* the thread that adds the rest of the chunks, if there is such a thread */
	pid_t grower_tid;
	int grow_fd;
	uint32_t there;      /* number of chunks with pages in the file */
	uint32_t grow_word;  /* futex: wanted number of chunks, or GROW_STOP */
	bool grows;
	bool final;          /* no thread writes any more: holes are final */
	struct hold *hold;   /* shows that a collector lives, see hold.c */
	uint32_t beat;
	struct ptt_guard *guard; /* guard of the segment */
	bool cut;            /* somebody had shortened the segment before it was taken over */
	bool prompt;         /* be_prompt() has been called */
	struct alarm_note *alarm_note; /* by chunk, for alarm.c; NULL until the first look */
};

static inline uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/*
 * with_room - @items with room for one more than @count items of @size bytes; @room: items that fit
 * Return: @items, or its new place; NULL without memory, and then @items is unchanged.
 */
static inline void *with_room(void *items, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 64;

	if (count < *room)
		return items;
	items = realloc(items, more * size);
	if (items)
		*room = more;
	return items;
}

static inline struct ptt_chunk *chunk_at(const struct ptt_collector *c, uint32_t index)
{
	return (struct ptt_chunk *)(c->base + c->head.chunk_offset + (uint64_t)index * c->head.chunk_size);
}

static inline uint32_t state_of(const struct ptt_collector *c, uint32_t index)
{
	/* acquire: pairs with the writer's release of OWNED and FULL: we see its head and its slots */
	return __atomic_load_n(&c->chunk_state[index], __ATOMIC_ACQUIRE);
}

static inline uint64_t serial_of(const struct ptt_collector *c, uint32_t chunk)
{
	/* acquire: pairs with the release of install_chunk(); an empty chunk may get a new owner between two looks at its state */
	return __atomic_load_n(&chunk_at(c, chunk)->serial, __ATOMIC_ACQUIRE);
}

static inline bool holds_data(uint32_t state)
{
	return PTT_CHUNK_STATUS(state) == PTT_CHUNK_OWNED || PTT_CHUNK_STATUS(state) == PTT_CHUNK_FULL;
}

/*
 * is_same_life - does a chunk still hold the data of the owner that the caller saw, as state @seen and @serial?
 * Serials count for each thread entry, so the state is compared, too. Call it after you read the chunk.
 */
static inline bool is_same_life(const struct ptt_collector *c, uint32_t chunk, uint32_t seen, uint64_t serial)
{
	uint32_t now;

	/* acquire: pairs with the release fence of claim_index(): if we have read a word of the next owner, we see its claim here */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	now = state_of(c, chunk);
	return holds_data(now) && serial_of(c, chunk) == serial && !((now ^ seen) & ~(PTT_CHUNK_TAKEN | PTT_CHUNK_FULL));
}

/* Is the chunk reserved for real-time threads? */
static inline bool is_reserved(const struct ptt_collector *c, uint32_t index)
{
	return index - c->head.chunk_reserve_at < c->head.chunk_reserve;
}

/* The chunk that a head points into; the number of chunks or more if there is no chunk. */
static inline uint32_t chunk_of_head(const struct ptt_collector *c, uint64_t head)
{
	uint64_t offset = head & PTT_HEAD_OFFSET_MASK;

	if (offset <= c->head.chunk_offset)
		return UINT32_MAX;
	return (uint32_t)((offset - 1 - c->head.chunk_offset) / c->head.chunk_size);
}

/* grow.c */
uint32_t grow_first_count(const struct ptt_segment *seg);
uint64_t grow_first_part(const struct ptt_segment *seg);
void grow_begin(struct ptt_collector *c, int fd);
void grow_more(struct ptt_collector *c);
void grow_to_the_end(struct ptt_collector *c);
bool grow_is_on(const struct ptt_collector *c);
void grow_stop(struct ptt_collector *c);
void grow_end(struct ptt_collector *c);

/* hold.c */
int hold_begin(struct ptt_collector *c, struct ptt_message *message) PTT_MUST_CHECK;
void hold_end(struct ptt_collector *c);
void hold_beat(struct ptt_collector *c);

/* message.c: fail - put a line in @message, if it is not NULL. Return: @error. */
int fail(struct ptt_message *message, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* output/chunks.c */
void chunk_free(struct ptt_collector *c, uint32_t index, uint32_t dirty_end);
void wake_writers(struct ptt_collector *c, uint32_t count);
bool be_prompt(const struct ptt_collector *c, pid_t tid);

enum run_end {
	RUN_OPEN,     /* the next slot is not written yet */
	RUN_FINISHED, /* the chunk has no more slots */
};
struct run {
	uint32_t begin; /* offsets in the chunk */
	uint32_t end;
	uint32_t events;
	enum run_end how;
	uint32_t dirty_end; /* RUN_FINISHED: bytes that have been written to */
};
void run_scan(const struct ptt_chunk *chunk, uint32_t chunk_size, uint32_t begin, struct run *run);
uint32_t run_skip_hole(const struct ptt_chunk *chunk, uint32_t chunk_size, uint32_t at);
uint32_t run_until(const struct ptt_chunk *chunk, uint32_t chunk_size, uint64_t until);
void run_times(const struct ptt_chunk *chunk, const struct run *run, uint64_t *first, uint64_t *last);

/* packet.c: packet_store - write the sealed packet, unless there was an error @err before; count the packet or its loss. */
void packet_begin(struct ptt_collector *c, uint32_t thread);
void packet_add(struct ptt_collector *c, uint32_t thread, uint32_t chunk, const struct run *run);
void packet_chunk_done(struct ptt_collector *c, uint32_t thread, uint32_t chunk, uint32_t dirty_end);
void packet_write(struct ptt_collector *c, uint32_t thread);
void packet_write_losses(struct ptt_collector *c, uint32_t thread);
void packet_store(struct ptt_collector *c, uint32_t thread, int err);
int packet_open_stream(struct ptt_collector *c, uint32_t index) PTT_MUST_CHECK;

/* stream_file.c */
int streams_init(struct ptt_collector *c, struct ptt_message *message) PTT_MUST_CHECK;
void streams_close(struct ptt_collector *c);
/* streams_leave - close all files, and write into another directory from now on. @trace_fd: that directory, now the collector's */
void streams_leave(struct ptt_collector *c, int trace_fd);
void streams_free(struct ptt_collector *c, uint32_t count); /* @count: streams from here on were never used */
int stream_write(struct ptt_collector *c, uint32_t index, struct iovec *piece, uint32_t pieces, uint32_t size,
		 uint32_t events) PTT_MUST_CHECK;
void stream_name(const struct ptt_collector *c, uint32_t index, uint32_t generation, char name[static 32]);

/* coding.c: the pieces of a sealed packet in fewer bytes, for compact files; they are valid until the next packet */
int coding_init(struct ptt_collector *c, struct ptt_message *message) PTT_MUST_CHECK;
uint32_t code_packet(struct ptt_collector *c, struct iovec **pieces, uint32_t *count, uint32_t size);

/* drain.c */
void drain(struct ptt_collector *c, uint32_t flags);

/* identity.c: identity_pid - the pid of @process in our PID namespace; 0 if it does not run. May read all of /proc. */
void identity_init(struct ptt_collector *c, int segment_fd);
uint32_t identity_pid(const struct ptt_collector *c, const struct ptt_process *process);

/* process_entries.c */
int processes_init(struct ptt_collector *c) PTT_MUST_CHECK;
uint32_t process_high(const struct ptt_collector *c);
uint32_t process_image(const struct ptt_collector *c, uint32_t index);
bool process_is_gone(const struct ptt_collector *c, uint32_t index);
void processes_recycle(struct ptt_collector *c); /* gives back entries of dead processes that process_used does not mark */
uint64_t processes_lost_threads(const struct ptt_collector *c);

/* shared/: in place of chunks and threads if all threads share one buffer */
void shared_lay_out(struct ptt_segment *segment, struct ptt_shared *shared, uint64_t size);
bool shared_is_sound(const struct ptt_segment *segment, const char *base);
int shared_open(struct ptt_collector *c, const char *path, struct ptt_message *message) PTT_MUST_CHECK;
void shared_take_up(struct ptt_collector *c);
void shared_pass(struct ptt_collector *c, uint32_t flags);
int shared_threads(const struct ptt_collector *c, struct ptt_collector_thread *threads, uint32_t count);
void shared_close(struct ptt_collector *c);
void shared_finish(struct ptt_collector *c);
void shared_destroy(struct ptt_collector *c);

/* thread_entries.c */
uint32_t threads_high(const struct ptt_collector *c); /* entries below this have been used */
void threads_look(struct ptt_collector *c);
void threads_recycle(struct ptt_collector *c);
void threads_sum_losses(struct ptt_collector *c);
void threads_take_up(struct ptt_collector *c);
int threads_list(const struct ptt_collector *c, struct ptt_collector_thread *threads, uint32_t count);
void threads_mark_processes(struct ptt_collector *c); /* sets process_used */

/* revoke.c */
void revoke_idle(struct ptt_collector *c);

/* sched/switches.c: sched_pass - write records that are old enough; @everything: also partly filled packets */
void sched_read(struct ptt_collector *c);
void sched_pass(struct ptt_collector *c, bool everything);
void sched_end(struct ptt_collector *c);

/* segment.c: collector_allocate - finds the tables of the segment, and allocates the collector's own */
int collector_allocate(struct ptt_collector *c, struct ptt_message *message) PTT_MUST_CHECK;

/* recover.c */
int recover_streams(struct ptt_collector *c, struct ptt_message *message) PTT_MUST_CHECK;

#endif
