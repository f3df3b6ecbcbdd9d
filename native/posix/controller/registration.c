/* SPDX-License-Identifier: MIT */
/* registration.c - makes a stream, and enters it in the registry and in the page of the traced process. */
#include "controller.h"

#include <sys/mman.h>

#include "platform/raw_syscall.h"

/* Cells in addition to the requested size: room for START and FILTER, which an application does not count. */
#define EXTRA_CELLS 16u
/* Cells that ordinary events never fill: room for events that report a full stream or a flush. */
#define KEPT_CELLS 32u

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static void lay_out(struct px_stream *stream, const struct px_attr *attr)
{
	uint64_t cells = round_up(attr->stream_size, PX_CELL) / PX_CELL + EXTRA_CELLS, ring = PX_PAGE / PX_CELL;

	/* the longest event always fits */
	if (cells < px_cells(attr->max_data) + 2 * EXTRA_CELLS)
		cells = px_cells(attr->max_data) + 2 * EXTRA_CELLS;
	while (ring < cells + KEPT_CELLS)
		ring *= 2;
	stream->limit = (uint32_t)cells;
	stream->ring_cells = (uint32_t)ring;
	stream->max_data = (uint32_t)attr->max_data;
	stream->policy = attr->stream_policy;
	stream->inherited = attr->inheritance == POSIX_TRACE_INHERITED;
	stream->mark_offset = PX_PAGE;
	stream->ring_offset = PX_PAGE + round_up(ring * sizeof(uint64_t), PX_PAGE);
	stream->size = stream->ring_offset + ring * PX_CELL;
	stream->head = PX_HEAD_STOPPED;
}

/* Make and map the stream's file. Return: 0 or an error number. */
static int make_file(struct px_trace *t, uint64_t serial, uint32_t slot)
{
	struct px_stream stream = {.magic = PX_STREAM_MAGIC, .serial = serial, .slot = slot};
	struct px_path path;
	long err;
	int fd;

	lay_out(&stream, &t->attr);
	px_path_add(&path, &t->directory, 's', serial, 0);
	unlink(path.text);
	fd = px_file_open(&path, stream.size, t->user);
	if (fd < 0)
		return fd == -EACCES || fd == -EPERM ? EPERM : ENOMEM;
	/* allocate now: without memory, a later write to the mapping would raise a fatal signal */
	err = px_file_grow(fd, stream.size, true);
	if (!err)
		err = ptt_raw_syscall(SYS_pwrite64, fd, (long)&stream, sizeof(stream), 0, 0, 0) == sizeof(stream)
			      ? 0
			      : -ENOMEM;
	if (!err)
		err = px_buffer_map(&t->buffer, fd);
	if (!err)
		err = -px_shared_mutex_init(t->buffer.stream->life);
	px_raw_close(fd);
	if (err)
		unlink(path.text);
	return err ? ENOMEM : 0;
}

int px_page_map(struct px_trace *t)
{
	int fd = -ENOENT, err;

	t->page_directory = t->directory;
	t->page_user = t->user;
	if (geteuid() == 0)
		fd = px_control_find(&t->page_directory, &t->page_user, t->pid, t->start);
	if (fd < 0)
		fd = px_control_open(&t->page_directory, t->pid, t->start, t->page_user);
	if (fd < 0)
		return fd == -EACCES || fd == -EPERM ? EPERM : ENOMEM;
	t->control = px_raw_mmap(NULL, PX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &err);
	px_raw_close(fd);
	return err ? ENOMEM : 0;
}

static uint32_t user_in_page(const struct px_trace *t)
{
	return t->user == t->page_user ? 0 : t->user + 1;
}

/*
 * The slot that has been free for longest: traced processes may still have the last stream of a slot mapped. A stream of
 * another directory must not have the slot in the page.
 */
static int find_slot(const struct px_trace *t, const struct px_registry *registry)
{
	for (uint32_t i = 0; i < PX_SLOTS; i++) {
		uint32_t slot = (uint32_t)((registry->serials + i) % PX_SLOTS);

		if (!registry->slot[slot].serial &&
		    (!t->control->serial[slot] || t->control->user[slot] == user_in_page(t)))
			return (int)slot;
	}
	return -1;
}

void px_stream_enter(struct px_trace *t)
{
	uint32_t slot = t->buffer.stream->slot;

	__atomic_store_n(&t->control->user[slot], user_in_page(t), __ATOMIC_RELAXED);
	px_control_enter(t->control, slot, t->buffer.stream->serial);
}

void px_stream_leave(struct px_trace *t)
{
	px_control_leave(t->control, t->buffer.stream->slot, t->buffer.stream->serial);
}

/* Traced processes keep the stream mapped until another stream takes its slot, so free its memory at once. */
static void remove_file(const struct px_trace *t)
{
	struct px_stream *stream = t->buffer.stream;
	struct px_path path;

	px_path_add(&path, &t->directory, 's', stream->serial, 0);
	unlink(path.text);
	ptt_raw_syscall(SYS_madvise, (long)stream + PX_PAGE, (long)(stream->size - PX_PAGE), MADV_REMOVE, 0, 0, 0);
}

void px_stream_withdraw(struct px_trace *t, struct px_registry *registry)
{
	struct px_stream *stream = t->buffer.stream;
	struct px_registry_slot *slot = &registry->slot[stream->slot];

	px_stream_leave(t);
	remove_file(t);
	if (slot->serial == stream->serial)
		slot->serial = 0;
}

int px_stream_register(struct px_trace *t, struct px_registry *registry)
{
	uint64_t serial;
	int slot, err;

	slot = find_slot(t, registry);
	if (slot < 0)
		return EAGAIN;
	serial = ++registry->serials;
	err = make_file(t, serial, (uint32_t)slot);
	if (err)
		return err;
	registry->slot[slot] = (struct px_registry_slot){
		.serial = serial,
		.owner_pid = px_own_pid(),
		.owner_start = px_own.start,
		.inherited = t->buffer.stream->inherited,
		.created = px_clock(CLOCK_BOOTTIME),
	};
	return 0;
}
