/* SPDX-License-Identifier: MIT */
/* stream.c - streams from creation to shutdown. */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "controller.h"

#define STREAM_SIZE_MAX (UINT64_C(1) << 36)

/* Nanoseconds from the clock of the records to CLOCK_REALTIME. CLOCK_REALTIME is read between two reads of the other clock. */
static int64_t real_offset(void)
{
	uint64_t before = px_now(), real = px_clock(CLOCK_REALTIME), after = px_now();

	return (int64_t)real - (int64_t)((before + after) / 2);
}

/* ------------------------------------------------------------ permission */

/* Find the process to trace, and its user. Return: 0, ESRCH, EPERM, or ENOMEM without a free descriptor. */
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

/* ------------------------------------------------------------ creation */

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

/* Start the process that finishes the log if this process ends without a shutdown, and register it. */
static void start_finisher(struct px_trace *t, struct px_registry_slot *slot)
{
	struct px_process finisher;

	t->finisher = px_finisher_start(t);
	if (!t->finisher || !px_process_find(t->finisher, &finisher))
		return;
	slot->finisher_start = t->finisher_start = finisher.start;
	slot->finisher_pid = finisher.pid;
	/* a process that opens the log after our death waits for the finisher; an error here would show up in later writes too */
	px_write_status(t, false);
}

static int make_registered(struct px_trace *t, struct px_registry *registry)
{
	int err;

	px_clean_up_locked(&t->directory, registry);
	err = px_stream_register(t, registry);
	if (err)
		return err;
	err = px_agent_start(t);
	if (err) {
		px_stream_withdraw(t, registry);
		return err;
	}
	if (t->log)
		start_finisher(t, &registry->slot[t->buffer.stream->slot]);
	px_stream_enter(t);
	return 0;
}

static int make_stream(struct px_trace *t, pid_t pid, int fd)
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
	err = px_page_map(t);
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
	/* first the threads that wait for events end their calls: the agent needs the stream for itself */
	px_trace_done(t);
	px_trace_quiesce(t);
	/* not under the guard: the last flush may take long */
	err = px_agent_end(t);
	px_guard_enter(&guard);
	registry_fd = px_registry_lock(&t->directory, t->user, &registry);
	if (registry_fd >= 0) {
		px_stream_withdraw(t, registry);
		/* if the process has ended, its names were kept only for us */
		if (!px_process_lives(t->pid, t->start))
			px_clean_up_locked(&t->directory, registry);
		px_registry_unlock(registry_fd, registry);
	} else {
		px_stream_leave(t);
	}
	px_log_end(t->log);
	px_trace_release(t);
	px_guard_leave(&guard);
	return err;
}

/* Called when the process ends. */
static void shut_all(void)
{
	uint32_t at = 0;
	trace_id_t id;

	while ((id = px_trace_next(&at, PX_STREAM)))
		posix_trace_shutdown(id);
}

/* ------------------------------------------------------------ the functions of <trace.h> */

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
			err = make_stream(t, pid, fd);
		if (!err) {
			/* release: pairs with the load at the end of the process, in any thread */
			__atomic_store_n(&px_own.ending, shut_all, __ATOMIC_RELEASE);
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
