/* SPDX-License-Identifier: MIT */
/* collector.h - what the parts of the collector share: the collector itself, a packet in the making, a stream. */
#ifndef PTT_COLLECTOR_INTERNAL_H
#define PTT_COLLECTOR_INTERNAL_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "collect.h"

#define PTT_MUST_CHECK __attribute__((warn_unused_result))

#define PACKET_SIZE_MAX (1024u * 1024u)
/* A packet head of 128 bytes is 0.2 % of this; smaller packets are written only where waiting would cost more. */
#define PACKET_SIZE_WANTED (96u * 1024u)
#define PACKET_PIECES_MAX 512u

/* What the collector knows of a chunk beyond what the segment says. */
struct chunk_note {
	uint64_t serial;  /* of the chunk that the rest speaks of */
	uint32_t drained; /* offset of the first slot that is not on disk */
	uint64_t hole_serial; /* something was missing in it, and since when, as this collector has seen it */
	uint64_t hole_ns;
	bool kept;        /* on disk, and not free while its thread lives: see drain.c */
};

/* A thread entry, and the stream that all threads of this entry are written to, one after the other. */
struct stream {
	uint64_t sequence;       /* of the next packet */
	uint64_t file_size;      /* of the current file, whole packets only */
	uint64_t chunk_serial;   /* last chunk on disk, and how far */
	uint32_t chunk_end;
	uint32_t generation;     /* of the current file */
	uint64_t discarded_base; /* lost before the present thread, or by failed writes */
	uint64_t discarded;      /* as the last packet on disk says */
	uint64_t time_end;       /* of the last packet */
	uint64_t thread_serial;  /* of the last packet with events */
	uint64_t last_serial;    /* thread_serial of the last packet that a former collector wrote */
	uint64_t *generation_events; /* of the last max_files files, by generation modulo max_files */
	uint64_t idle_head;      /* thread.head as a revocation saw it last */
	uint32_t pid;            /* of the last packet */
	uint32_t tid;
	uint32_t process;
	uint32_t open;           /* 1 + index in the table of open files; 0 = its file is not open */
	uint8_t used;            /* has a file */
	uint8_t gone;            /* its process is dead: holes are final */
	uint8_t ended;           /* the thread said good-bye, or its process is dead; set anew by each pass */
	uint8_t checked;         /* files of a former collector have been looked at */
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
	/* how far each chunk will have been drained then */
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
	bool used; /* since the hand of free_slot() came by last */
};

struct ptt_collector {
	struct ptt_segment *segment;
	struct ptt_segment head; /* as it was made: any wild store of the program's may change the shared one */
	char *base;
	struct ptt_process *process;
	uint32_t *thread_owner;
	struct ptt_thread *thread;
	uint32_t *chunk_state;
	struct ptt_site_entry *site;
	int trace_fd;
	uint64_t max_file_size;
	uint32_t max_files;
	struct chunk_note *note;   /* one a chunk */
	struct stream *stream;     /* one a thread entry */
	struct ready *ready;       /* one a chunk */
	uint64_t *wanted;          /* one a thread entry: 1 + highest serial to drain, 0 = none */
	uint32_t *full;            /* one a thread entry: FULL chunks seen by this pass */
	uint32_t looked;           /* entries of these two below this may be set */
	uint32_t *asked;           /* one a chunk: threads whose chunks are being taken back */
	struct open_file *open;
	uint32_t open_count;
	uint32_t open_hand;
	struct packet *packet;
	uint32_t packet_max; /* bytes */
	struct shared_drain *shared; /* NULL unless there is one buffer for all */
	struct ptt_shared_process *shared_process; /* then: one a process entry */
	struct sched *sched; /* NULL unless context switches are recorded */
	struct ptt_collector_stats stats;
	uint32_t doorbell_seen;
	struct process_note *process_note; /* one a process entry */
	uint8_t *process_used; /* one a process entry: threads of it have entries */
	uint32_t reap_at; /* so many threads, and it is looked which of them there are */
	uint32_t gone_processes; /* whose entries have not been given back */
	uint64_t lost_threads; /* of process entries that have been given back */
	uint32_t pid_namespace;
	char device_and_inode[48]; /* of the segment, as /proc/PID/maps has them */
	uint64_t site_stuck_ns;
	uint64_t site_stuck_at;
	uint64_t site_lost_below; /* entries that were given up below this have been counted */
	uint64_t revoked_ns; /* when chunks were revoked last */
	uint32_t kept;       /* chunks whose note says so */
	uint32_t room;       /* chunks that were free for any thread when the last pass began; 0 while the reserve is in use */
	pthread_t grower;    /* the thread that brings the rest of the chunks, if there is one */
	pid_t grower_tid;
	int grow_fd;
	uint32_t there;      /* chunks that the file has pages for */
	uint32_t grow_word;  /* futex: how many chunks there shall be, or GROW_STOP */
	bool grows;
	bool final;          /* whatever is missing now will never come */
	struct hold *hold;   /* shows that somebody collects, see hold.c */
	uint32_t beat;
	struct ptt_guard *guard; /* of the segment */
	bool cut;            /* somebody had shortened the segment before it was taken over */
	bool prompt;         /* be_prompt() has been called */
};

static inline struct ptt_chunk *chunk_at(const struct ptt_collector *c, uint32_t index)
{
	return (struct ptt_chunk *)(c->base + c->head.chunk_offset + (uint64_t)index * c->head.chunk_size);
}

static inline uint32_t state_of(const struct ptt_collector *c, uint32_t index)
{
	/* acquire: pairs with the writer's release of OWNED and FULL, so that head and slots are seen */
	return __atomic_load_n(&c->chunk_state[index], __ATOMIC_ACQUIRE);
}

/* Is the chunk reserved for real-time threads? */
static inline bool is_reserved(const struct ptt_collector *c, uint32_t index)
{
	return index - c->head.chunk_reserve_at < c->head.chunk_reserve;
}

/* Chunk that a head points into; the chunk count or more if none. */
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
int grow_begin(struct ptt_collector *c, int fd);
void grow_more(struct ptt_collector *c);
void grow_to_the_end(struct ptt_collector *c);
bool grow_is_on(const struct ptt_collector *c);
void grow_stop(struct ptt_collector *c);
void grow_end(struct ptt_collector *c);

/* hold.c */
int hold_begin(struct ptt_collector *c, struct ptt_message *message) PTT_MUST_CHECK;
void hold_end(struct ptt_collector *c);
void hold_beat(struct ptt_collector *c);

/* message.c */
int fail(struct ptt_message *message, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint64_t now_ns(void);

/* release.c */
void chunk_free(struct ptt_collector *c, uint32_t index, uint32_t dirty_end);
void wake_writers(struct ptt_collector *c, uint32_t chunks);
bool be_prompt(const struct ptt_collector *c, pid_t tid);

/* scan.c */
enum run_end {
	RUN_OPEN,     /* the next slot is not written yet */
	RUN_FINISHED, /* there is nothing more in this chunk */
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
void run_times(const struct ptt_chunk *chunk, const struct run *run, uint64_t *first, uint64_t *last);

/* packet.c */
void packet_begin(struct ptt_collector *c, uint32_t thread);
void packet_add(struct ptt_collector *c, uint32_t thread, uint32_t chunk, const struct run *run);
void packet_chunk_done(struct ptt_collector *c, uint32_t thread, uint32_t chunk, uint32_t dirty_end);
void packet_write(struct ptt_collector *c, uint32_t thread);
void packet_write_losses(struct ptt_collector *c, uint32_t thread);
int packet_open_stream(struct ptt_collector *c, uint32_t index) PTT_MUST_CHECK;

/* stream_file.c */
int streams_init(struct ptt_collector *c, struct ptt_message *message) PTT_MUST_CHECK;
void streams_close(struct ptt_collector *c);
void streams_free(struct ptt_collector *c, uint32_t count); /* @count: of the streams that were there */
int stream_write(struct ptt_collector *c, uint32_t index, struct iovec *piece, uint32_t pieces, uint32_t size,
		 uint32_t events) PTT_MUST_CHECK;
void stream_name(const struct ptt_collector *c, uint32_t index, uint32_t generation, char name[static 32]);

/* drain.c */
void drain(struct ptt_collector *c, uint32_t flags);

/* identity.c: identity_pid - @process's pid here; 0 if no such process runs. May read all of /proc. */
void identity_init(struct ptt_collector *c, int segment_fd);
uint32_t identity_pid(const struct ptt_collector *c, const struct ptt_process *process);

/* process_entries.c */
int processes_init(struct ptt_collector *c) PTT_MUST_CHECK;
uint32_t process_high(const struct ptt_collector *c);
uint32_t process_image(const struct ptt_collector *c, uint32_t index);
bool process_is_gone(const struct ptt_collector *c, uint32_t index); /* index of its entry */
void processes_recycle(struct ptt_collector *c); /* gives back entries that process_used says no thread has */
uint64_t processes_lost_threads(const struct ptt_collector *c);

/* shared/: in place of chunks and threads where there is one buffer for all */
uint64_t shared_lay_out(struct ptt_segment *segment, struct ptt_shared *shared, uint64_t size);
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
void threads_mark_processes(struct ptt_collector *c); /* in process_used */

/* revoke.c */
void revoke_idle(struct ptt_collector *c);

/* sched/switches.c: sched_pass - write what has settled; @everything: partly filled packets, too. */
void sched_read(struct ptt_collector *c);
void sched_pass(struct ptt_collector *c, bool everything);
void sched_end(struct ptt_collector *c);

/* recover.c */
int recover_streams(struct ptt_collector *c, struct ptt_message *message) PTT_MUST_CHECK;

#endif
