/* SPDX-License-Identifier: MIT */
/* log_read.c - reads logs: the valid blocks of a file, in the order of writing. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "layout/crc32c.h"
#include "log.h"
#include "platform/raw_syscall.h"
#include "records.h"

struct events {
	uint64_t number;
	uint64_t offset; /* offset of the first record in the file */
	uint64_t size;
};

struct px_log_reader {
	const char *bytes;
	uint64_t size;
	struct px_log_head head;
	struct px_log_status status;
	uint64_t status_number;
	uint64_t cleared; /* blocks with lower numbers are void */
	struct px_names *names;
	struct events *events;
	size_t count;
	size_t room;
	/* the position of reading */
	size_t block;
	uint64_t at;
};

/* ------------------------------------------------------------ bytes */

static int get_bytes(struct px_log_reader *r, int fd)
{
	struct stat status;
	void *bytes;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size < (off_t)sizeof(struct px_block))
		return EINVAL;
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return errno == ENOMEM ? ENOMEM : EINVAL;
	r->bytes = bytes;
	r->size = (uint64_t)status.st_size;
	return 0;
}

/* The block at @offset, a multiple of 64 bytes from the log's beginning; NULL if there is no valid block. */
static const struct px_block *block_at(const struct px_log_reader *r, uint64_t offset)
{
	const struct px_block *block = (const void *)(r->bytes + offset);
	struct px_block head;
	uint32_t crc;

	if (r->size - offset < sizeof(head))
		return NULL;
	memcpy(&head, block, sizeof(head));
	if (head.magic != PX_BLOCK_MAGIC || head.version != PX_LOG_VERSION ||
	    head.size > r->size - offset - sizeof(head))
		return NULL;
	crc = head.crc;
	head.crc = 0;
	if (ptt_crc32c(ptt_crc32c(0, &head, sizeof(head)), block + 1, head.size) != crc)
		return NULL;
	return block;
}

static uint64_t length_of(const struct px_block *block)
{
	return block ? sizeof(*block) + (block->size + PX_CELL - 1) / PX_CELL * PX_CELL : PX_CELL;
}

/* ------------------------------------------------------------ finding the newest log */

/* Find the newest log from @from on. Return: false if there is no log. */
static bool find_log(struct px_log_reader *r, uint64_t from, uint64_t *id)
{
	bool found = false;

	for (uint64_t at = from; at + sizeof(struct px_block) <= r->size;) {
		const struct px_block *block = block_at(r, at);
		struct px_log_head head;

		at += length_of(block);
		if (!block || block->type != PX_BLOCK_HEAD || block->size < sizeof(head))
			continue;
		memcpy(&head, block + 1, sizeof(head));
		if (found && (head.create_sec < r->head.create_sec ||
			      (head.create_sec == r->head.create_sec && head.create_nsec < r->head.create_nsec)))
			continue;
		r->head = head;
		*id = block->log;
		found = true;
	}
	return found;
}

static bool note_events(struct px_log_reader *r, const struct px_block *block)
{
	if (r->count == r->room) {
		size_t room = r->room ? 2 * r->room : 64;
		struct events *larger = realloc(r->events, room * sizeof(*larger));

		if (!larger)
			return false;
		r->events = larger;
		r->room = room;
	}
	r->events[r->count++] =
		(struct events){block->number, (uint64_t)((const char *)(block + 1) - r->bytes), block->size};
	return true;
}

static void note_name(struct px_names *names, const struct px_log_name *name)
{
	uint32_t *count = name->id < PX_EVENT_USER ? &names->system_count : &names->user_count;
	uint32_t first = name->id < PX_EVENT_USER ? PX_EVENT_SYSTEM : PX_EVENT_USER;

	if (name->id < PX_EVENT_SYSTEM || name->id >= PX_EVENT_COUNT)
		return;
	memcpy(names->name[name->id], name->name, PX_NAME_SIZE - 1);
	if (*count <= name->id - first)
		*count = name->id - first + 1;
}

static bool note(struct px_log_reader *r, const struct px_block *block)
{
	switch (block->type) {
	case PX_BLOCK_EVENTS:
		return note_events(r, block);
	case PX_BLOCK_NAMES:
		for (uint64_t i = 0; i < block->size / sizeof(struct px_log_name); i++)
			note_name(r->names, (const struct px_log_name *)(const void *)(block + 1) + i);
		return true;
	case PX_BLOCK_STATUS:
		if (block->size >= sizeof(r->status) && block->number >= r->status_number) {
			r->status_number = block->number;
			memcpy(&r->status, block + 1, sizeof(r->status));
		}
		return true;
	case PX_BLOCK_CLEAR:
		if (block->number > r->cleared)
			r->cleared = block->number;
		return true;
	default:
		return true;
	}
}

static int by_number(const void *a, const void *b)
{
	const struct events *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Keep the blocks that belong together. */
static void select_events(struct px_log_reader *r)
{
	size_t first = 0, kept = 0;

	if (r->count)
		qsort(r->events, r->count, sizeof(*r->events), by_number);
	/* a finisher may write a block a second time: keep the second */
	for (size_t i = 0; i < r->count; i++) {
		if (kept && r->events[kept - 1].number == r->events[i].number)
			kept--;
		r->events[kept++] = r->events[i];
	}
	r->count = kept;
	for (size_t i = 1; i < r->count; i++)
		if (r->head.log_policy == POSIX_TRACE_LOOP && r->events[i].number != r->events[i - 1].number + 1)
			first = i;
	while (first < r->count && r->events[first].number < r->cleared)
		first++;
	r->count -= first;
	if (r->count)
		memmove(r->events, r->events + first, r->count * sizeof(*r->events));
}

static int scan(struct px_log_reader *r, uint64_t from)
{
	uint64_t id;

	if (!find_log(r, from, &id))
		return EINVAL;
	for (uint64_t at = from; at + sizeof(struct px_block) <= r->size;) {
		const struct px_block *block = block_at(r, at);

		at += length_of(block);
		if (block && block->log == id && !note(r, block))
			return ENOMEM;
	}
	select_events(r);
	return 0;
}

static int read_once(struct px_log_reader **made, int fd)
{
	struct px_log_reader *r = calloc(1, sizeof(*r));
	off_t from = lseek(fd, 0, SEEK_CUR);
	int err;

	if (!r)
		return ENOMEM;
	r->names = calloc(1, sizeof(*r->names));
	err = r->names ? get_bytes(r, fd) : ENOMEM;
	/* the log begins at the file position, or at the beginning of the file */
	if (!err && from > 0 && scan(r, (uint64_t)from) == 0)
		from = -1;
	else if (!err)
		err = scan(r, 0);
	if (err) {
		px_log_read_end(r);
		return err;
	}
	*made = r;
	return 0;
}

static int read_log(struct px_log_reader **made, int fd)
{
	int err = read_once(made, fd);
	struct stat status;

	if (err || !(*made)->status.final || fstat(fd, &status) < 0 || (uint64_t)status.st_size <= (*made)->size)
		return err;
	/* the file has grown since we took its size, and its status says now that the log is complete: read again */
	px_log_read_end(*made);
	return read_once(made, fd);
}

void px_log_read_end(struct px_log_reader *r)
{
	if (r->bytes)
		munmap((void *)r->bytes, r->size);
	free(r->names);
	free(r->events);
	free(r);
}

/* ------------------------------------------------------------ the contents of a log */

const struct px_log_head *px_log_head_of(const struct px_log_reader *reader)
{
	return &reader->head;
}

const struct px_log_status *px_log_status_of(const struct px_log_reader *reader)
{
	return &reader->status;
}

const struct px_names *px_log_names_of(const struct px_log_reader *reader)
{
	return reader->names;
}

const struct px_record *px_log_next(struct px_log_reader *r)
{
	for (; r->block < r->count; r->block++, r->at = 0) {
		const struct events *e = &r->events[r->block];
		const struct px_record *record = (const void *)(r->bytes + e->offset + r->at);

		if (r->at + PX_CELL > e->size)
			continue;
		/* the checksum is right, but any program may have made the file */
		if (!record->cells || record->cells > PX_CELLS_MAX ||
		    record->cells * (uint64_t)PX_CELL > e->size - r->at ||
		    record->size > (uint64_t)record->cells * PX_CELL - PX_RECORD_HEAD)
			continue;
		r->at += (uint64_t)record->cells * PX_CELL;
		return record;
	}
	return NULL;
}

void px_log_rewind(struct px_log_reader *r)
{
	r->block = 0;
	r->at = 0;
}

/* ------------------------------------------------------------ logs of controllers that died */

#define FINISHER_WAIT_NS UINT64_C(30000000000)

static const struct timespec moment = {.tv_nsec = 1000000};

/* Does the controller still hold the stream of this log? True if the directory cannot be opened. */
static bool is_held(const struct px_log_status *status)
{
	struct px_path directory, path;

	if (px_directory(&directory, status->user, false) < 0)
		return true;
	px_path_add(&path, &directory, 's', status->serial, 0);
	return px_is_held(&path);
}

int px_log_read_whole(struct px_log_reader **reader, int fd)
{
	uint64_t since = px_now();
	struct px_log_status status;
	int err = read_log(reader, fd);

	if (err)
		return err;
	status = *px_log_status_of(*reader);
	if (status.final || !status.finisher_pid || is_held(&status))
		return 0;
	while (px_process_lives(status.finisher_pid, status.finisher_start) && px_now() - since < FINISHER_WAIT_NS)
		ptt_raw_syscall(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
	/* read again even if the finisher had already ended: it may have written after our first read */
	px_log_read_end(*reader);
	return read_log(reader, fd);
}
