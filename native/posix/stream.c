/* SPDX-License-Identifier: MIT */
/* stream.c - streams from creation to shutdown. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "raw_syscall.h"
#include "sweep.h"
#include "trace_id.h"

/* Cells beyond what was asked for: room for START and FILTER, which an application does not count. */
#define EXTRA_CELLS 16u
/* Cells that ordinary events never fill: for what tells that the stream is full, and of flushes. */
#define KEPT_CELLS 32u
#define STREAM_SIZE_MAX (UINT64_C(1) << 36)

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* From the clock of the records to CLOCK_REALTIME, as now; read in the middle, so that no side is late. */
static int64_t real_offset(void)
{
	uint64_t before = clock_ns(CLOCK_MONOTONIC), real = clock_ns(CLOCK_REALTIME), after = clock_ns(CLOCK_MONOTONIC);

	return (int64_t)(real - (before + after) / 2);
}

/* ------------------------------------------------------------ who may trace whom */

/* Return: 0, ESRCH, EPERM, or ENOMEM if there is no descriptor left to look. */
static int find_target(struct px_trace *t, pid_t pid)
{
	struct px_process process;
	char path[32];
	struct stat status;

	if (pid < 0)
		return ESRCH;
	if (!px_process_find((uint32_t)pid, &process))
		return !pid || px_process_exists((uint32_t)pid) ? ENOMEM : ESRCH;
	if (process.state == 'Z' || process.state == 'X')
		return ESRCH;
	t->pid = process.pid;
	t->start = process.start;
	t->user = px_own.user;
	if (t->pid == px_own_pid())
		return 0;
	snprintf(path, sizeof(path), "/proc/%u", t->pid);
	if (stat(path, &status) < 0)
		return ESRCH;
	/* the owner is the effective user, or root if the process has something to hide */
	if (status.st_uid != geteuid() && geteuid() != 0)
		return EPERM;
	t->user = status.st_uid;
	return 0;
}

/* ------------------------------------------------------------ making it */

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/* Return: 0, EINVAL or ENOMEM. */
static int check_attributes(struct px_attr *attr, bool with_log)
{
	if (attr->stream_policy == PX_POLICY_UNSET)
		attr->stream_policy = with_log ? POSIX_TRACE_FLUSH : POSIX_TRACE_LOOP;
	if (attr->stream_policy == POSIX_TRACE_FLUSH && !with_log)
		return EINVAL;
	if (attr->max_data > PX_DATA_MAX)
		return EINVAL;
	return attr->stream_size > STREAM_SIZE_MAX ? ENOMEM : 0;
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

/* The page of the process traced, in whatever directory it has made it. Return: 0 or an error number. */
static int open_page(struct px_trace *t)
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

/* Enter the stream in the page of the process traced. */
static void enter(struct px_trace *t, uint64_t serial, uint32_t slot)
{
	__atomic_store_n(&t->control->user[slot], user_in_page(t), __ATOMIC_RELAXED);
	px_control_enter(t->control, slot, serial);
}

static void leave(struct px_trace *t)
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

void px_withdraw(struct px_trace *t, struct px_registry *registry)
{
	struct px_stream *stream = t->buffer.stream;
	struct px_registry_slot *slot = &registry->slot[stream->slot];

	leave(t);
	remove_file(t);
	if (slot->serial == stream->serial)
		slot->serial = 0;
}

/* If this process ends without a shutdown, another one is to see to the log. */
static void name_heir(struct px_trace *t, struct px_registry_slot *slot)
{
	struct px_process heir;

	t->heir = px_heir_start(t);
	if (!t->heir || !px_process_find(t->heir, &heir))
		return;
	slot->heir_start = t->heir_start = heir.start;
	slot->heir_pid = heir.pid;
	/* who opens the log after our death is to wait for the heir; what cannot be written now will not be later either */
	px_write_status(t, false);
}

static int make_registered(struct px_trace *t, struct px_registry *registry)
{
	uint64_t serial;
	int slot, err;

	px_sweep_locked(&t->directory, registry);
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
		.created = clock_ns(CLOCK_BOOTTIME),
	};
	err = px_agent_start(t);
	if (err) {
		px_withdraw(t, registry);
		return err;
	}
	if (t->log)
		name_heir(t, &registry->slot[slot]);
	enter(t, serial, (uint32_t)slot);
	return 0;
}

static int make(struct px_trace *t, pid_t pid, int fd)
{
	struct px_registry *registry;
	int registry_fd, err;

	px_own_follow_user();
	err = find_target(t, pid);
	if (err)
		return err;
	if (px_directory(&t->directory, t->user, true) < 0)
		return EPERM;
	t->real_offset = real_offset();
	clock_gettime(CLOCK_REALTIME, &t->attr.create_time);
	t->reading = px_raw_mmap(NULL, px_reading_size(&t->attr), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				 -1, 0, &err);
	t->scratch = px_raw_mmap(NULL, px_record_room(&t->attr), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				 0, &err);
	if (!t->reading || !t->scratch)
		return ENOMEM;
	err = open_page(t);
	if (!err && fd >= 0)
		err = px_log_begin(&t->log, fd, &t->attr, t->pid, t->real_offset);
	if (err)
		return err;
	registry_fd = px_registry_lock(&t->directory, t->user, &registry);
	if (registry_fd < 0)
		return registry_fd == -EACCES || registry_fd == -EPERM ? EPERM : ENOMEM;
	err = make_registered(t, registry);
	px_registry_unlock(registry_fd, registry);
	return err;
}

static int create(pid_t pid, const trace_attr_t *attr, int fd, trace_id_t *trid)
{
	const struct px_attr *wanted = px_attr_of(attr);
	struct px_guard guard;
	struct px_trace *t;
	int err;

	if (!trid || (attr && !wanted))
		return EINVAL;
	px_guard_enter(&guard);
	t = px_trace_claim();
	err = t ? 0 : EAGAIN;
	if (t) {
		if (wanted)
			t->attr = *wanted;
		else
			px_attr_default(&t->attr);
		err = check_attributes(&t->attr, fd >= 0);
		if (!err)
			err = make(t, pid, fd);
		if (!err) {
			*trid = px_trace_publish(t);
		} else {
			px_log_end(t->log);
			px_trace_release(t);
		}
	}
	px_guard_leave(&guard);
	return err;
}

int posix_trace_create(pid_t pid, const trace_attr_t *restrict attr, trace_id_t *restrict trid)
{
	return create(pid, attr, -1, trid);
}

int posix_trace_create_withlog(pid_t pid, const trace_attr_t *restrict attr, int file_desc, trace_id_t *restrict trid)
{
	return file_desc < 0 ? EBADF : create(pid, attr, file_desc, trid);
}

/* ------------------------------------------------------------ the end */

int posix_trace_shutdown(trace_id_t trid)
{
	struct px_trace *t = px_trace_use(trid, PX_STREAM);
	struct px_registry *registry;
	struct px_guard guard;
	int registry_fd, err;

	if (!t)
		return EINVAL;
	if (!px_trace_retract(t, trid)) {
		px_trace_done(t);
		return EINVAL;
	}
	px_stop(t, __builtin_return_address(0));
	px_close(t->buffer.stream);
	/* those who wait for events go first: the agent is to have the stream for itself */
	px_trace_done(t);
	px_trace_quiesce(t);
	/* not under the guard: the last flush may take its time */
	err = px_agent_end(t);
	px_guard_enter(&guard);
	registry_fd = px_registry_lock(&t->directory, t->user, &registry);
	if (registry_fd >= 0) {
		px_withdraw(t, registry);
		/* the process may have ended, and only we have kept its names */
		if (!px_process_lives(t->pid, t->start))
			px_sweep_locked(&t->directory, registry);
		px_registry_unlock(registry_fd, registry);
	} else {
		leave(t);
	}
	px_log_end(t->log);
	px_trace_release(t);
	px_guard_leave(&guard);
	return err;
}
