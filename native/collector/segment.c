/* SPDX-License-Identifier: MIT */
/* segment.c - makes, maps, takes over and frees the shared segment; begins and ends the collector. */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "mapping/segment_map.h"
#include "mapping/truncation.h"

#define BUDGET_DEFAULT (UINT64_C(64) << 20)
#define SHARED_SIZE_DEFAULT (UINT64_C(16) << 20)
#define PROCESS_COUNT 16384u
#define THREAD_COUNT PTT_THREAD_COUNT_MAX
#define CHUNK_SIZE_MAX (1u << 20)
#define RESERVE_PART 8u /* if threads wait for room, one of so many chunks is kept for real-time threads */

uint32_t ptt_collector_abi(void)
{
	return PTT_COLLECT_ABI;
}


/* ------------------------------------------------------------------ layout */

static void lay_out(struct ptt_segment *seg, uint64_t budget, uint32_t chunk_size)
{
	uint64_t at = sizeof(*seg);

	memcpy(seg->abi.magic, PTT_SEGMENT_MAGIC, sizeof(seg->abi.magic));
	seg->abi.major = PTT_ABI_MAJOR;
	seg->abi.minor = PTT_ABI_MINOR;
	seg->abi.struct_size = sizeof(*seg);
	seg->chunk_size = chunk_size;
	seg->chunk_count = (uint32_t)(budget / chunk_size);
	seg->chunk_reserve = seg->policy == PTT_POLICY_FLUSH ? seg->chunk_count / RESERVE_PART : 0;
	seg->chunk_reserve_at = grow_first_count(seg);
	seg->thread_count = THREAD_COUNT;
	seg->process_count = PROCESS_COUNT;
	seg->process_offset = at;
	at = align_up(at + (uint64_t)seg->process_count * sizeof(struct ptt_process), 64);
	seg->thread_owner_offset = at;
	at = align_up(at + (uint64_t)seg->thread_count * sizeof(uint32_t), 128);
	seg->thread_offset = at;
	at = align_up(at + (uint64_t)seg->thread_count * sizeof(struct ptt_thread), 64);
	seg->chunk_state_offset = at;
	at = align_up(at + (uint64_t)seg->chunk_count * sizeof(uint32_t), 64);
	seg->site_offset = at;
	at += PTT_SITE_JOURNAL * sizeof(struct ptt_site_entry);
	seg->chunk_offset = align_up(at, chunk_size);
	seg->size = seg->chunk_offset + (uint64_t)seg->chunk_count * chunk_size;
}

/* @seg: a private copy of the head of the segment at @base. */
static bool is_sound(const struct ptt_segment *seg, const char *base, uint64_t size)
{
	return memcmp(seg->abi.magic, PTT_SEGMENT_MAGIC, sizeof(seg->abi.magic)) == 0 &&
	       seg->abi.major == PTT_ABI_MAJOR && seg->abi.struct_size >= sizeof(*seg) && seg->size == size &&
	       seg->chunk_size >= PTT_CHUNK_SIZE_MIN && !(seg->chunk_size & (seg->chunk_size - 1)) &&
	       seg->thread_count <= PTT_THREAD_COUNT_MAX && seg->chunk_count <= size / seg->chunk_size &&
	       seg->chunk_reserve <= seg->chunk_count && seg->chunk_reserve_at <= seg->chunk_count - seg->chunk_reserve &&
	       seg->process_count <= PTT_PROCESS_COUNT_MAX &&
	       seg->process_count <= size / sizeof(struct ptt_process) && seg->chunk_offset <= size &&
	       seg->chunk_offset + (uint64_t)seg->chunk_count * seg->chunk_size <= size &&
	       seg->process_offset + (uint64_t)seg->process_count * sizeof(struct ptt_process) <= size &&
	       seg->thread_offset + (uint64_t)seg->thread_count * sizeof(struct ptt_thread) <= size &&
	       seg->thread_owner_offset + (uint64_t)seg->thread_count * sizeof(uint32_t) <= size &&
	       seg->chunk_state_offset + (uint64_t)seg->chunk_count * sizeof(uint32_t) <= size &&
	       seg->site_offset + PTT_SITE_JOURNAL * sizeof(struct ptt_site_entry) <= size && shared_is_sound(seg, base);
}

static int check_options(const struct ptt_collector_options *o, uint64_t *budget, uint32_t *chunk_size,
			 struct ptt_message *message)
{
	*budget = o->budget ? o->budget : BUDGET_DEFAULT;
	*chunk_size = o->chunk_size ? o->chunk_size : PTT_CHUNK_SIZE;
	if (*chunk_size < PTT_CHUNK_SIZE_MIN || *chunk_size > CHUNK_SIZE_MAX || (*chunk_size & (*chunk_size - 1)))
		return fail(message, -EINVAL, "a buffer of %u bytes is not a power of two from 8 KiB to 1 MiB",
			    *chunk_size);
	if (o->policy > PTT_POLICY_UNTIL_FULL || o->when_full > PTT_WHEN_FULL_DROP)
		return fail(message, -EINVAL, "unknown policy");
	if (o->stack_depth > PTT_STACK_DEPTH_MAX)
		return fail(message, -EINVAL, "stacks of %u frames are more than %u", o->stack_depth, PTT_STACK_DEPTH_MAX);
	if (*budget / *chunk_size < 4 || *budget / *chunk_size > UINT32_MAX)
		return fail(message, -EINVAL, "a budget of %llu bytes gives too few or too many buffers",
			    (unsigned long long)*budget);
	return 0;
}

static int check_shared(const struct ptt_collector_options *o, uint64_t size, struct ptt_message *message)
{
	if (o->policy != PTT_POLICY_FLUSH || o->when_full > PTT_WHEN_FULL_DROP)
		return fail(message, -EINVAL, "one buffer for all threads supports only the policy FLUSH");
	if (size > PTT_SHARED_SIZE_MAX)
		return fail(message, -EINVAL, "a shared buffer of %llu bytes is too large", (unsigned long long)size);
	return 0;
}

/* ---------------------------------------------------------------- mapping */

static int map(struct ptt_collector *c, int fd, uint64_t size, struct ptt_message *message)
{
	void *base = ptt_segment_map(fd, size);

	if (!base)
		return fail(message, -errno, "cannot map the segment");
	c->base = base;
	c->segment = base;
	c->guard = ptt_guard_add(base, size);
	if (!c->guard) {
		c->head.size = size;
		return fail(message, -ENOMEM, "cannot map the segment");
	}
	c->head = *c->segment;
	identity_init(c, fd);
	return 0;
}

static void find_tables(struct ptt_collector *c)
{
	c->process = (void *)(c->base + c->head.process_offset);
	c->thread_owner = (void *)(c->base + c->head.thread_owner_offset);
	c->thread = (void *)(c->base + c->head.thread_offset);
	c->chunk_state = (void *)(c->base + c->head.chunk_state_offset);
	c->site = (void *)(c->base + c->head.site_offset);
}

int collector_allocate(struct ptt_collector *c, struct ptt_message *message)
{
	find_tables(c);
	c->note = calloc(c->head.chunk_count, sizeof(*c->note));
	c->ready = calloc(c->head.chunk_count, sizeof(*c->ready));
	c->stream = calloc(c->head.thread_count, sizeof(*c->stream));
	c->wanted = calloc(c->head.thread_count, sizeof(*c->wanted));
	c->full = calloc(c->head.thread_count, sizeof(*c->full));
	c->asked = calloc(c->head.chunk_count, sizeof(*c->asked));
	c->packet = calloc(1, sizeof(*c->packet));
	if (!c->note || !c->ready || !c->stream || !c->wanted || !c->full || !c->asked || !c->packet ||
	    processes_init(c))
		return fail(message, -ENOMEM, "cannot allocate the tables of the collector");
	for (uint32_t i = 0; i < c->head.chunk_count; i++)
		c->note[i].serial = UINT64_MAX;
	return streams_init(c, message);
}

static int open_trace(struct ptt_collector *c, const struct ptt_collector_options *o, struct ptt_message *message)
{
	c->max_file_size = o->max_file_size;
	c->max_files = o->max_files;
	c->packet_max = o->max_file_size && o->max_file_size < PACKET_SIZE_MAX ? (uint32_t)o->max_file_size : PACKET_SIZE_MAX;
	/* a packet that does not get smaller gets a few bytes larger */
	if (o->compact)
		c->packet_max -= sizeof(struct ptt_compact);
	if (o->compact && coding_init(c, message))
		return -ENOMEM;
	c->trace_fd = open(o->trace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->trace_fd < 0)
		return fail(message, -errno, "%s", o->trace);
	return 0;
}

/*
 * Reserve pages: a missing page would kill the program with SIGBUS, so nobody may touch a page that is not reserved. This
 * function reserves the first part. It also checks that there is room for the rest, which grow.c adds later.
 * Return: 0 or errno.
 */
static int reserve(int fd, const struct ptt_segment *seg)
{
	uint64_t first = grow_first_part(seg);
	struct statvfs room;

	if (ftruncate(fd, (off_t)seg->size) < 0)
		return errno;
	if (first < seg->size && fstatvfs(fd, &room) == 0 && room.f_blocks && room.f_bavail < seg->size / room.f_frsize)
		return ENOSPC;
	return posix_fallocate(fd, 0, (off_t)first);
}

static int make_segment(struct ptt_collector *c, const struct ptt_collector_options *o, uint64_t shared_size,
			struct ptt_message *message)
{
	struct ptt_collector_time now;
	struct ptt_segment seg = {
		.policy = o->policy,
		.when_full = o->when_full,
		.stack_depth = o->stack_depth,
		.stack_all = o->stack_all,
		.sched = o->sched,
		.python = o->python,
		.stack_user = o->stack_user,
		.patience_ms = PTT_PATIENCE_MS,
	};
	struct ptt_shared shared = {0};
	uint64_t budget;
	uint32_t chunk_size;
	int err, fd;

	err = shared_size ? check_shared(o, shared_size, message) : check_options(o, &budget, &chunk_size, message);
	if (err)
		return err;
	if (shared_size) {
		/* one buffer for all threads: no chunks, and one stream, which belongs to no thread */
		lay_out(&seg, 0, PTT_CHUNK_SIZE);
		seg.thread_count = 1;
		shared_lay_out(&seg, &shared, shared_size);
	} else {
		lay_out(&seg, budget, chunk_size);
	}
	ptt_collector_read_clock(0, &now);
	seg.clock = now.kind;
	seg.start_clock = now.clock;
	seg.start_unix_ns = now.unix_ns;
	seg.recorder_pid = (uint32_t)getpid();
	if (getrandom(seg.uuid, sizeof(seg.uuid), GRND_NONBLOCK) != sizeof(seg.uuid))
		memcpy(seg.uuid, &now, sizeof(seg.uuid));
	seg.uuid[6] = (seg.uuid[6] & 0x0f) | 0x40; /* version 4, a random UUID (RFC 9562, section 5.4) */
	seg.uuid[8] = (seg.uuid[8] & 0x3f) | 0x80;

	fd = open(o->segment, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(message, -errno, "%s", o->segment);
	err = reserve(fd, &seg);
	err = err ? fail(message, -err, "cannot reserve %llu MB for the buffers at %s",
			 (unsigned long long)(seg.size / 1000000), o->segment)
		  : map(c, fd, seg.size, message);
	if (err) {
		unlink(o->segment);
		close(fd);
		return err;
	}
	*c->segment = c->head = seg;
	if (shared_size) {
		*(struct ptt_shared *)(c->base + seg.shared_offset) = shared;
		*(uint32_t *)(c->base + seg.thread_owner_offset) = UINT32_MAX;
	}
	grow_begin(c, fd);
	return 0;
}

/*
 * The original size of the segment. If somebody has shortened the file, extend it with zeros: these are free chunks and unused
 * entries.
 */
static int whole_size(struct ptt_collector *c, int fd, uint64_t *size, const char *path, struct ptt_message *message)
{
	struct ptt_segment head;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail(message, -errno, "%s", path);
	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.abi.magic, PTT_SEGMENT_MAGIC, sizeof(head.abi.magic) - 1) != 0)
		return fail(message, -ENODATA, "%s is not a segment of buffers", path);
	if (memcmp(head.abi.magic, PTT_SEGMENT_MAGIC, sizeof(head.abi.magic)) != 0 || head.abi.major != PTT_ABI_MAJOR)
		return fail(message, -EPROTO, "%s is not a segment of buffers of this version", path);
	*size = head.size;
	c->cut = (uint64_t)st.st_size < head.size;
	if (c->cut && ftruncate(fd, (off_t)head.size) < 0)
		return fail(message, -ENODATA, "%s is damaged", path);
	return 0;
}

static int take_segment(struct ptt_collector *c, const struct ptt_collector_options *o, struct ptt_message *message)
{
	uint64_t size;
	int err, fd = open(o->segment, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return fail(message, -errno, "%s", o->segment);
	err = whole_size(c, fd, &size, o->segment, message);
	if (!err)
		err = map(c, fd, size, message);
	close(fd);
	if (!err && !is_sound(&c->head, c->base, size)) {
		c->head.size = size;
		err = fail(message, -ENODATA, "%s is damaged", o->segment);
	}
	return err;
}

/* ---------------------------------------------------------------- life */

static int begin(const struct ptt_collector_options *o, bool fresh, uint64_t shared_size,
		 struct ptt_collector **collector, struct ptt_message *message)
{
	struct ptt_collector *c = calloc(1, sizeof(*c));
	int err;

	*collector = NULL;
	if (!c)
		return fail(message, -ENOMEM, "cannot start the collector");
	c->trace_fd = -1;
	err = open_trace(c, o, message);
	if (!err)
		err = fresh ? make_segment(c, o, shared_size, message) : take_segment(c, o, message);
	if (!err) {
		find_tables(c);
		err = hold_begin(c, message);
	}
	if (!err && c->head.shared_offset)
		err = shared_open(c, o->segment, message);
	if (!err)
		err = collector_allocate(c, message);
	if (!err && !fresh)
		err = recover_streams(c, message);
	if (!err && !fresh && c->shared)
		shared_take_up(c);
	if (err) {
		if (fresh && c->base)
			unlink(o->segment);
		ptt_collector_destroy(c);
		return err;
	}
	c->stats.chunks = c->head.chunk_count;
	*collector = c;
	return 0;
}

int ptt_collector_create(const struct ptt_collector_options *o, struct ptt_collector **collector,
			 struct ptt_message *message)
{
	return begin(o, true, 0, collector, message);
}

int ptt_collector_create_shared(const struct ptt_collector_options *o, uint64_t size, struct ptt_collector **collector,
				struct ptt_message *message)
{
	return begin(o, true, size ? size : SHARED_SIZE_DEFAULT, collector, message);
}

int ptt_collector_attach(const struct ptt_collector_options *o, struct ptt_collector **collector,
			 struct ptt_message *message)
{
	return begin(o, false, 0, collector, message);
}

int ptt_collector_threads(struct ptt_collector *c, struct ptt_collector_thread *threads, uint32_t count)
{
	return c->shared ? shared_threads(c, threads, count) : threads_list(c, threads, count);
}

static void recycle_processes(struct ptt_collector *c)
{
	if (!c->gone_processes)
		return;
	threads_mark_processes(c);
	processes_recycle(c);
}

int ptt_collector_pass(struct ptt_collector *c, uint32_t flags, struct ptt_collector_stats *stats)
{
	struct ptt_collector_stats ended;

	hold_beat(c);
	/* acquire: pairs with ptt_ring_the_bell(), which comes after the writer's change */
	c->doorbell_seen = __atomic_load_n(&c->segment->doorbell, __ATOMIC_ACQUIRE);
	c->stats.freed_chunks = 0;
	c->stats.lost_processes = __atomic_load_n(&c->segment->lost_processes, __ATOMIC_RELAXED);
	c->stats.unjoined = __atomic_load_n(&c->segment->unjoined, __ATOMIC_RELAXED);
	c->stats.lost_reported = __atomic_load_n(&c->segment->lost_reported, __ATOMIC_RELAXED);
	c->stats.cut = c->cut || ptt_guard_cut(c->guard);
	if (c->shared) {
		shared_pass(c, flags);
		recycle_processes(c);
		if (stats)
			*stats = c->stats;
		return 0;
	}
	/* first, while the entries of ended processes exist */
	if (c->sched)
		sched_pass(c, flags & PTT_PASS_FLUSH || c->final);
	threads_look(c);
	if (c->head.policy == PTT_POLICY_FLUSH || c->final) {
		drain(c, flags);
		if (!c->final)
			revoke_idle(c);
	}
	threads_recycle(c);
	recycle_processes(c);
	if (!stats)
		return 0;
	/* c->stats has the losses of ended threads; add the present losses of live threads for the caller only. */
	ended = c->stats;
	threads_sum_losses(c);
	/* relaxed: counts and a flag, which order nothing */
	c->stats.overwritten = __atomic_load_n(&c->segment->overwritten, __ATOMIC_RELAXED);
	c->stats.lost_sites = __atomic_load_n(&c->segment->site_lost, __ATOMIC_RELAXED);
	c->stats.without_site = __atomic_load_n(&c->segment->without_site, __ATOMIC_RELAXED);
	c->stats.without_stack = __atomic_load_n(&c->segment->without_stack, __ATOMIC_RELAXED);
	c->stats.stopped = __atomic_load_n(&c->segment->stopped, __ATOMIC_RELAXED);
	*stats = c->stats;
	c->stats = ended;
	return 0;
}

int ptt_collector_turn(struct ptt_collector *c, const char *trace, struct ptt_message *message)
{
	int fd;

	if (c->shared || c->sched || c->max_file_size)
		return fail(message, -EINVAL, "these files cannot continue in another directory");
	fd = open(trace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail(message, -errno, "%s", trace);
	streams_leave(c, fd);
	return 0;
}

int ptt_collector_close(struct ptt_collector *c)
{
	/* seq_cst: before wake_writers() changes space; a thread that wakes up sees closed */
	__atomic_store_n(&c->segment->closed, 1, __ATOMIC_SEQ_CST);
	if (c->shared)
		shared_close(c);
	wake_writers(c, UINT32_MAX);
	grow_stop(c);
	return 0;
}

int ptt_collector_finish(struct ptt_collector *c, struct ptt_collector_stats *stats)
{
	uint32_t i;

	c->final = true;
	ptt_collector_pass(c, PTT_PASS_FLUSH, stats);
	if (c->shared)
		shared_finish(c);
	for (i = 0; !c->shared && i < threads_high(c); i++)
		if (c->thread_owner[i])
			packet_write_losses(c, i);
	if (stats) {
		stats->packets = c->stats.packets;
		stats->bytes = c->stats.bytes;
	}
	streams_close(c);
	return 0;
}

void ptt_collector_destroy(struct ptt_collector *c)
{
	if (!c)
		return;
	grow_end(c);
	sched_end(c);
	streams_close(c);
	hold_end(c);
	if (c->stream)
		streams_free(c, c->shared ? c->head.thread_count : threads_high(c));
	shared_destroy(c);
	ptt_guard_remove(c->guard);
	if (c->base)
		munmap(c->base, c->head.size);
	if (c->trace_fd >= 0)
		close(c->trace_fd);
	free(c->note);
	free(c->ready);
	free(c->wanted);
	free(c->full);
	free(c->asked);
	free(c->alarm_note);
	free(c->coding);
	free(c->open);
	free(c->packet);
	free(c->process_note);
	free(c->process_used);
	free(c);
}

const struct ptt_segment *ptt_collector_segment(const struct ptt_collector *c)
{
	return &c->head;
}
