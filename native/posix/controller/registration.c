/* SPDX-License-Identifier: MIT */
/* registration.c - makes a stream, and enters it where the processes that it traces look for it. */
#include "controller.h"

#include <sys/mman.h>

#include "platform/raw_syscall.h"

/* Cells beyond what was asked for: room for START and FILTER, which an application does not count. */
#define EXTRA_CELLS 16u
/* Cells that ordinary events never fill: for the events that report that the stream is full, and flushes. */
#define KEPT_CELLS 32u

static uint64_t since_boot(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static void lay_out(struct px_stream *stream, const struct px_attr *attr)
{
	uint64_t cells = round_up(attr->stream_size, PX_CELL) / PX_CELL + EXTRA_CELLS, ring = PX_PAGE / PX_CELL;

	/* the longest event fits in any case */
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

static int set_up_life(struct px_stream *stream)
{
	pthread_mutexattr_t attr;
	int err;

	_Static_assert(sizeof(pthread_mutex_t) <= sizeof(stream->life), "mutex fits");
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	err = pthread_mutex_init((pthread_mutex_t *)stream->life, &attr);
	pthread_mutexattr_destroy(&attr);
	return err;
}

/* The stream's file, mapped. Return: 0 or an error number. */
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
	/* now, and not when somebody first writes there: that would be a fatal signal */
	err = px_file_grow(fd, stream.size, true);
	if (!err)
		err = ptt_raw_syscall(SYS_pwrite64, fd, (long)&stream, sizeof(stream), 0, 0, 0) == sizeof(stream)
			      ? 0
			      : -ENOMEM;
	if (!err)
		err = px_buffer_map(&t->buffer, fd);
	if (!err)
		err = -set_up_life(t->buffer.stream);
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
 * A slot that has been free for longest, so that what processes remember of the last stream in it is old; and that no
 * stream of another directory has in the page.
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

/* Traced processes keep the stream mapped until another one takes its slot: so its memory is given back at once. */
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
		.created = since_boot(),
	};
	return 0;
}
