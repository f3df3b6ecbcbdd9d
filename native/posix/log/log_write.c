/* SPDX-License-Identifier: MIT */
/* log_write.c - writes logs; layout.h declares their contents. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "layout/crc32c.h"
#include "log.h"

/* Places of a LOOP log. */
#define HEAD_AT 0u
#define STATUS_AT 512u
#define STATUS_STEP 128u /* bytes of a STATUS block */
#define NAMES_AT 768u
#define NAME_STEP 192u
#define RING_AT (NAMES_AT + PX_EVENT_COUNT * NAME_STEP)
#define BLOCK_ROOM (64u << 10)
/* The STOP record is one cell long. */
#define STOP_SIZE PX_CELL

/* The progress of the log. It changes in one step, so a finisher finds either the old or the new state. */
struct progress {
	uint64_t at;	 /* offset of the next block in the log; in LOOP: in the ring */
	uint64_t number; /* number of the next EVENTS block */
	uint64_t used;	 /* bytes of events in the log */
	uint64_t taken;	 /* place in the stream behind the last record of the log */
	size_t events;	 /* bytes of records in the current block */
	size_t done;	 /* bytes of these records that are written */
};

struct px_log {
	int fd;
	bool seekable; /* false: each write continues at the end of the last write */
	uint32_t policy;
	uint64_t id;
	uint64_t base;	/* offset of the log in the file */
	uint64_t ring;	/* LOOP: bytes of the ring */
	uint64_t limit; /* UNTIL_FULL: bytes of events */
	struct progress progress[2];
	uint32_t current; /* index of the valid progress */
	uint64_t status_number;
	uint64_t names_at;
	uint32_t names_system; /* number of names in the log */
	uint32_t names_user;
	/* calls that ask for the status read these flags while the agent writes them */
	bool wrapped;
	bool stopped; /* UNTIL_FULL: the last event is in */
	bool overran;
	size_t whole; /* bytes of this struct and the block */
	char block[]; /* room for a block's head, then the records */
};

static void set(bool *flag, bool value)
{
	/* relaxed, and so are the loads: no flag says anything about other data */
	__atomic_store_n(flag, value, __ATOMIC_RELAXED);
}

static struct progress *now(struct px_log *log)
{
	return &log->progress[log->current];
}

static void step(struct px_log *log, const struct progress *next)
{
	uint32_t other = !log->current;

	log->progress[other] = *next;
	/* release: a finisher, which begins when we are dead, finds the current progress complete */
	__atomic_store_n(&log->current, other, __ATOMIC_RELEASE);
}

static uint64_t round_up(uint64_t value)
{
	return (value + PX_CELL - 1) / PX_CELL * PX_CELL;
}

/* ------------------------------------------------------------ bytes */

/* A write past the file size limit, or to a pipe without a reader, raises a signal. It is blocked: take it from the program. */
static void swallow_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigaddset(&set, SIGPIPE);
	sigtimedwait(&set, NULL, &(struct timespec){0, 0});
}

/* Return: 0, EFBIG, or ENOSPC for any other error. */
static int write_all(struct px_log *log, const void *bytes, size_t size, uint64_t offset)
{
	const char *from = bytes;

	while (size) {
		ssize_t n = log->seekable ? pwrite(log->fd, from, size, (off_t)(log->base + offset))
					  : write(log->fd, from, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			bool too_big = n < 0 && errno == EFBIG;

			if (n < 0 && (errno == EFBIG || errno == EPIPE))
				swallow_signals();
			return too_big ? EFBIG : ENOSPC;
		}
		from += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
		if (!log->seekable)
			now(log)->at += (uint64_t)n;
	}
	return 0;
}

/*
 * Write a block. @bytes begin with room for the head of the block, and end with room up to the next multiple of 64.
 * @offset: place of the block in the log; unused if the file is not seekable
 */
static int write_block(struct px_log *log, void *bytes, uint32_t type, uint64_t number, size_t size, uint64_t offset)
{
	struct px_block *head = bytes;
	size_t whole = round_up(sizeof(*head) + size);
	static const char zeros[PX_CELL];
	int err = 0;

	*head = (struct px_block){.magic = PX_BLOCK_MAGIC,
				  .log = log->id,
				  .number = number,
				  .type = type,
				  .size = (uint32_t)size,
				  .version = PX_LOG_VERSION};
	memset((char *)bytes + sizeof(*head) + size, 0, whole - sizeof(*head) - size);
	head->crc = ptt_crc32c(0, bytes, sizeof(*head) + size);
	/* the last write may have been cut short */
	if (!log->seekable && now(log)->at % PX_CELL)
		err = write_all(log, zeros, PX_CELL - now(log)->at % PX_CELL, 0);
	return err ? err : write_all(log, bytes, whole, offset);
}

/* Write a small block, in a LOOP log at @place, else at the end of the log. */
static int write_small(struct px_log *log, uint32_t type, uint64_t number, const void *content, size_t size,
		       uint64_t place)
{
	union {
		struct px_block head;
		char bytes[1024];
	} block;
	int err;

	if (size)
		memcpy(block.bytes + sizeof(block.head), content, size);
	err = write_block(log, &block, type, number, size, log->ring ? place : now(log)->at);
	if (!err && !log->ring && log->seekable)
		now(log)->at += round_up(sizeof(block.head) + size);
	return err;
}

/* ------------------------------------------------------------ beginning and end */

/* Check and duplicate the descriptor. Return: 0, EBADF or EINVAL. */
static int use_file(struct px_log *log, int fd)
{
	struct stat status;
	int flags = fcntl(fd, F_GETFL);
	off_t at;

	if (flags < 0 || fstat(fd, &status) < 0 || flags & O_PATH || (flags & O_ACCMODE) == O_RDONLY)
		return EBADF;
	log->seekable = S_ISREG(status.st_mode) && !(flags & O_APPEND);
	if (log->policy == POSIX_TRACE_LOOP && !log->seekable)
		return EINVAL;
	at = lseek(fd, 0, SEEK_CUR);
	log->base = at > 0 ? (uint64_t)at : 0;
	if (S_ISREG(status.st_mode) && !log->seekable)
		now(log)->at = (uint64_t)status.st_size; /* so that blocks lie at multiples of 64 */
	log->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return log->fd < 0 ? EBADF : 0;
}

static int write_head(struct px_log *log, const struct px_attr *attr, uint32_t pid, int64_t real_offset)
{
	struct px_log_head head = {
		.create_sec = attr->create_time.tv_sec,
		.create_nsec = attr->create_time.tv_nsec,
		.real_offset = real_offset,
		.resolution_nsec = attr->clock_resolution.tv_nsec,
		.stream_size = attr->stream_size,
		.max_data = attr->max_data,
		.log_size = attr->log_size,
		.stream_policy = attr->stream_policy,
		.log_policy = attr->log_policy,
		.inheritance = attr->inheritance,
		.pid = pid,
	};
	struct px_log_status status = {
		.stream_status = POSIX_TRACE_SUSPENDED,
		.stream_full = POSIX_TRACE_NOT_FULL,
		.stream_overrun = POSIX_TRACE_NO_OVERRUN,
		.log_overrun = POSIX_TRACE_NO_OVERRUN,
		.log_full = POSIX_TRACE_NOT_FULL,
	};
	int err;

	memcpy(head.version, attr->version, sizeof(head.version));
	memcpy(head.name, attr->name, sizeof(head.name));
	gethostname(head.host, sizeof(head.host) - 1);
	err = write_small(log, PX_BLOCK_HEAD, 0, &head, sizeof(head), HEAD_AT);
	return err ? err : px_log_write_status(log, &status);
}

static uint64_t longest_record(const struct px_attr *attr)
{
	return (uint64_t)px_cells(attr->max_data) * PX_CELL + 16 * PX_CELL;
}

/* Allocate the log in memory that the finisher of this process shares. */
static struct px_log *allocate(const struct px_attr *attr)
{
	size_t whole = sizeof(struct px_log) + sizeof(struct px_block) + BLOCK_ROOM + longest_record(attr) + STOP_SIZE +
		       PX_CELL;
	struct px_log *log;
	int err;

	log = px_raw_mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0, &err);
	if (log)
		log->whole = whole;
	return log;
}

static void set_up(struct px_log *log, const struct px_attr *attr)
{
	if (getrandom(&log->id, sizeof(log->id), 0) != sizeof(log->id))
		log->id =
			(uint64_t)attr->create_time.tv_sec << 30 ^ (uint64_t)attr->create_time.tv_nsec ^ (uintptr_t)log;
	log->fd = -1;
	log->policy = attr->log_policy;
	log->limit = attr->log_size;
	log->names_at = NAMES_AT;
	if (log->policy != POSIX_TRACE_LOOP)
		return;
	log->ring = round_up(attr->log_size < UINT64_MAX - PX_CELL ? attr->log_size : UINT64_MAX - PX_CELL);
	/* the longest event always fits */
	if (log->ring < longest_record(attr) + 2 * PX_CELL)
		log->ring = longest_record(attr) + 2 * PX_CELL;
}

int px_log_begin(struct px_log **made, int fd, const struct px_attr *attr, uint32_t pid, int64_t real_offset)
{
	struct px_log *log = allocate(attr);
	int err;

	if (!log)
		return ENOMEM;
	set_up(log, attr);
	err = use_file(log, fd);
	if (!err && log->seekable && ftruncate(log->fd, (off_t)log->base) < 0)
		err = 0; /* such as a sealed file: the bytes that stay in it mean nothing */
	if (!err && write_head(log, attr, pid, real_offset))
		err = ENOSPC;
	if (err)
		px_log_end(log);
	else
		*made = log;
	return err;
}

int px_log_descriptor(const struct px_log *log)
{
	return log->fd;
}

void px_log_end(struct px_log *log)
{
	if (!log)
		return;
	if (log->fd >= 0)
		close(log->fd);
	munmap(log, log->whole);
}

/* ------------------------------------------------------------ events */

static void append(struct px_log *log, const struct px_record *record, uint64_t taken)
{
	struct progress next = *now(log);
	size_t size = (size_t)record->cells * PX_CELL;

	memcpy(log->block + sizeof(struct px_block) + next.events, record, size);
	next.events += size;
	next.used += size;
	next.taken = taken;
	step(log, &next);
}

/* UNTIL_FULL: add the last event of the log, in place of an event that finds no room. */
static void append_stop(struct px_log *log, const struct px_record *instead)
{
	static const int automatic = 1;
	struct px_record stop = *instead;

	stop.event = POSIX_TRACE_STOP;
	stop.truncated = 0;
	stop.cells = 1;
	stop.size = sizeof(automatic);
	memset(stop.data, 0, sizeof(stop.data));
	memcpy(stop.data, &automatic, sizeof(automatic));
	append(log, &stop, now(log)->taken);
	set(&log->stopped, true);
}

uint64_t px_log_taken(const struct px_log *log)
{
	return log->progress[log->current].taken;
}

bool px_log_add(struct px_log *log, const struct px_record *record, uint64_t taken)
{
	if (log->policy == POSIX_TRACE_UNTIL_FULL && !log->stopped &&
	    now(log)->used + (uint64_t)record->cells * PX_CELL + STOP_SIZE > log->limit)
		append_stop(log, record);
	if (log->stopped)
		set(&log->overran, true);
	else
		append(log, record, taken);
	return now(log)->events < BLOCK_ROOM;
}

/* The bytes of the records from @from on that fit into @room bytes. */
static size_t whole_records(const char *from, size_t size, size_t room)
{
	size_t fit = 0;

	while (fit < size) {
		size_t length = (size_t)((const struct px_record *)(const void *)(from + fit))->cells * PX_CELL;

		if (fit + length > room)
			break;
		fit += length;
	}
	return fit;
}

/* Find the place @at of the next block in the ring. Return: bytes of records that the block may hold. */
static size_t ring_room(struct px_log *log, const char *from, size_t size, uint64_t *at)
{
	size_t first = (size_t)((const struct px_record *)(const void *)from)->cells * PX_CELL;
	size_t part = log->ring / 8 > 2 * PX_CELL ? log->ring / 8 : 2 * PX_CELL;
	size_t fit = whole_records(from, size, part - PX_CELL);

	if (fit < first)
		fit = first;
	if (*at + PX_CELL + fit > log->ring && *at + PX_CELL + first <= log->ring)
		fit = whole_records(from, size, log->ring - *at - PX_CELL);
	if (*at + PX_CELL + fit > log->ring) {
		*at = 0;
		set(&log->wrapped, true);
	}
	return fit;
}

static int write_events(struct px_log *log)
{
	char *records = log->block + sizeof(struct px_block);

	while (now(log)->done < now(log)->events) {
		struct progress next = *now(log);
		char *from = records + next.done;
		size_t size = next.events - next.done;
		int err;

		if (log->ring)
			size = ring_room(log, from, size, &next.at);
		/* the head goes into the room of records that are already written */
		err = write_block(log, from - sizeof(struct px_block), PX_BLOCK_EVENTS, next.number, size,
				  (log->ring ? RING_AT : 0) + next.at);
		if (err)
			return err;
		next.at = log->seekable ? next.at + sizeof(struct px_block) + size : now(log)->at;
		next.number++;
		next.done += size;
		if (next.done == next.events)
			next.done = next.events = 0;
		step(log, &next);
		if (log->wrapped)
			set(&log->overran, true);
	}
	return 0;
}

static int write_names(struct px_log *log, const struct px_names *names, uint32_t *written, uint32_t count,
		       trace_event_id_t first)
{
	int err = 0;

	while (*written < count && !err) {
		struct px_log_name name = {.id = first + *written};

		memcpy(name.name, names->name[name.id], sizeof(name.name));
		err = write_small(log, PX_BLOCK_NAMES, 0, &name, sizeof(name), log->names_at);
		if (err)
			break;
		++*written;
		log->names_at += NAME_STEP;
	}
	return err;
}

int px_log_write(struct px_log *log, const struct px_names *names)
{
	int err = write_names(log, names, &log->names_system, px_system_count(names), PX_EVENT_SYSTEM);

	if (!err)
		err = write_names(log, names, &log->names_user, px_user_count(names), PX_EVENT_USER);
	return err ? err : write_events(log);
}

/* ------------------------------------------------------------ status */

int px_log_write_status(struct px_log *log, const struct px_log_status *status)
{
	uint64_t number = log->status_number++;

	return write_small(log, PX_BLOCK_STATUS, number, status, sizeof(*status), STATUS_AT + number % 2 * STATUS_STEP);
}

int px_log_clear(struct px_log *log)
{
	struct progress next = *now(log);
	int err;

	next.events = next.done = 0;
	next.used = 0;
	next.at = log->ring ? 0 : next.at;
	step(log, &next);
	set(&log->wrapped, false);
	set(&log->stopped, false);
	set(&log->overran, false);
	err = write_small(log, PX_BLOCK_CLEAR, next.number, NULL, 0, RING_AT);
	if (!err && log->ring)
		now(log)->at = sizeof(struct px_block);
	return err;
}

bool px_log_is_full(const struct px_log *log)
{
	return __atomic_load_n(log->policy == POSIX_TRACE_LOOP ? &log->wrapped : &log->stopped, __ATOMIC_RELAXED);
}

bool px_log_overran(struct px_log *log, bool reset)
{
	bool overran = __atomic_load_n(&log->overran, __ATOMIC_RELAXED);

	if (overran && reset)
		set(&log->overran, false);
	return overran;
}
