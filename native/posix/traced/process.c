/* SPDX-License-Identifier: MIT */
/* process.c - the calling process: its beginning, its children, its names and its end. */
#include "traced.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "platform/raw_syscall.h"
#include "system_event.h"

/* How many ancestors a process asks for streams to inherit. Ancestors without this library, such as shells, are passed. */
#define ANCESTORS 8
#define TICK_NS UINT64_C(10000000)
/* One of so many processes removes the files of dead processes. */
#define SWEEP_EACH 16

/* ------------------------------------------------------------ the control page */

/* Map the control page of this process. Return: 0 or -errno. */
static int map_control(void)
{
	int fd = px_control_open(&px_own.directory, px_own_pid(), px_own.start, px_own.user), err;

	if (fd < 0)
		return fd;
	px_raw_mmap(&px_control, PX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0, &err);
	px_raw_close(fd);
	return err;
}

/* Map a private page in place of the control page: no stream can trace this process. */
static void map_no_control(void)
{
	int err;

	px_own.directory.text[0] = '\0';
	px_raw_mmap(&px_control, PX_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0, &err);
}

/* Let a mapped stream trace this process. @user: owner of the directory with the stream's file, plus 1 */
static void enter_stream(uint32_t slot, uint64_t serial, uint32_t user)
{
	__atomic_store_n(&px_control.user[slot], user, __ATOMIC_RELAXED);
	px_control_enter(&px_control, slot, serial);
}

/* Take over the streams of the parent that children inherit. @mapped: this process has the mappings of the parent. */
static void inherit(const struct px_control *parent, bool mapped)
{
	for (uint64_t active = parent->active; active; active &= active - 1) {
		uint32_t slot = (uint32_t)__builtin_ctzll(active);
		uint64_t serial = parent->serial[slot];
		struct px_stream *stream = mapped ? px_own.stream[slot] : NULL;

		if (!stream || stream->serial != serial)
			stream = px_own_stream(slot, serial);
		/* acquire: pairs with px_close() of a controller that closes the stream now */
		if (stream && stream->inherited && !__atomic_load_n(&stream->closed, __ATOMIC_ACQUIRE))
			enter_stream(slot, serial, parent->user[slot]);
	}
}

/* Join the family of names of @parent, if it has names. */
static void join_family(const struct px_control *parent)
{
	if (!parent->family_pid)
		return;
	px_control.family_start = parent->family_start;
	__atomic_store_n(&px_control.family_pid, parent->family_pid, __ATOMIC_RELEASE);
}

/* Copy the names to a table in the new directory. */
static void move_names(void)
{
	struct px_names *old = px_own.names, *names;

	if (!old)
		return;
	names = px_names_open(&px_own.directory, px_own.user, &px_control, px_own_pid(), px_own.start);
	if (!names)
		return;
	memcpy(names->name, old->name, sizeof(names->name));
	__atomic_store_n(&names->system_count, px_system_count(old), __ATOMIC_RELEASE);
	__atomic_store_n(&names->user_count, px_user_count(old), __ATOMIC_RELEASE);
	/* the old table stays mapped: trace points may still read it */
	__atomic_store_n(&px_own.names, names, __ATOMIC_RELEASE);
}

void px_own_follow_user(void)
{
	uint32_t user = (uint32_t)geteuid(), old_user = px_own.user;
	struct px_control old;

	if (user == px_own.user || !px_own.start)
		return;
	memcpy(&old, &px_control, sizeof(old));
	px_own.user = user;
	if (px_directory(&px_own.directory, user, true) < 0 || map_control() < 0) {
		map_no_control();
		return;
	}
	/* mapped streams go on; this process cannot open the other streams any more */
	for (uint64_t active = old.active; active; active &= active - 1) {
		uint32_t slot = (uint32_t)__builtin_ctzll(active);
		const struct px_stream *stream = px_own.stream[slot];

		if (stream && stream->serial == old.serial[slot])
			enter_stream(slot, stream->serial, old.user[slot] ? old.user[slot] : old_user + 1);
	}
	px_control.settled = 1;
	move_names();
}

/* ------------------------------------------------------------ children of a fork */

static void forked(void)
{
	struct px_control parent;
	struct px_process self;

	px_guard_after_fork();
	px_identity_forked();
	if (px_own.forked)
		px_own.forked();
	if (!px_own.directory.text[0])
		return;
	memcpy(&parent, &px_control, sizeof(parent));
	if (!px_process_find(0, &self))
		return map_no_control();
	px_own.start = self.start;
	if ((uint32_t)geteuid() != px_own.user) {
		px_own.user = (uint32_t)geteuid();
		if (px_directory(&px_own.directory, px_own.user, true) < 0)
			return map_no_control();
		parent.family_pid = 0;
	}
	if (map_control() < 0)
		return map_no_control();
	inherit(&parent, true);
	join_family(&parent);
	px_control.settled = 1;
}

/* ------------------------------------------------------------ programs that begin */

/* Map the page of a file in the directory for reading. Return: NULL if there is no such file. */
static void *map_page(char kind, uint64_t first, uint64_t second)
{
	struct px_path path;
	void *page;
	int fd, err;

	px_path_add(&path, &px_own.directory, kind, first, second);
	fd = px_file_open(&path, PX_PAGE, PX_NOT_MADE);
	if (fd < 0)
		return NULL;
	page = px_raw_mmap(NULL, PX_PAGE, PROT_READ, MAP_SHARED, fd, 0, &err);
	px_raw_close(fd);
	return page;
}

/* The slots of inherited streams that are older than a process with start time @start. */
static uint64_t older_streams(uint64_t start)
{
	struct px_registry *registry = map_page('r', 0, 0);
	uint64_t slots = 0;

	if (!registry)
		return 0;
	for (uint32_t i = 0; i < PX_SLOTS; i++)
		if (registry->slot[i].serial && registry->slot[i].inherited &&
		    registry->slot[i].created < (start + 1) * TICK_NS)
			slots |= UINT64_C(1) << i;
	px_raw_munmap(registry, PX_PAGE);
	return slots;
}

/* posix_spawn(), vfork() and the like call no fork handler: the new program looks for the streams of its parent. */
static void settle(struct px_process process)
{
	uint64_t slots = older_streams(process.start);

	for (int i = 0; slots && i < ANCESTORS && process.ppid > 1; i++) {
		uint64_t child_start = process.start;
		struct px_control *page, parent;

		if (!px_process_find(process.ppid, &process))
			break;
		page = map_page('p', process.pid, process.start);
		if (!page)
			continue;
		parent = *page;
		px_raw_munmap(page, PX_PAGE);
		parent.active &= slots & older_streams(child_start);
		inherit(&parent, false);
		if (parent.active && !px_control.family_pid)
			join_family(&parent);
		break;
	}
	px_control.settled = 1;
}

static __attribute__((constructor)) void begin(void)
{
	struct px_process self;

	px_identity_begin();
	px_tracer_begin();
	px_own.user = (uint32_t)geteuid();
	pthread_atfork(px_guard_before_fork, px_guard_after_fork, forked);
	if (!px_process_find(0, &self) || px_directory(&px_own.directory, px_own.user, true) < 0) {
		px_own.directory.text[0] = '\0';
		return;
	}
	px_own.start = self.start;
	if (px_own_pid() % SWEEP_EACH == 0)
		px_clean_up(&px_own.directory);
	if (map_control() < 0)
		map_no_control();
	else if (!px_control.settled)
		settle(self);
}

static void leave(void)
{
	void (*ending)(void) = __atomic_load_n(&px_own.ending, __ATOMIC_ACQUIRE);
	struct px_path path;

	if (ending)
		ending();
	if (!px_own.directory.text[0] || __atomic_load_n(&px_control.active, __ATOMIC_SEQ_CST))
		return; /* a controller may still ask for our names */
	px_path_add(&path, &px_own.directory, 'p', px_own_pid(), px_own.start);
	ptt_raw_syscall(SYS_unlinkat, AT_FDCWD, (long)path.text, 0, 0, 0, 0);
	/* the last process of the family removes the names */
	if (px_own.names)
		px_clean_up(&px_own.directory);
}

/* exit() is no cancellation point, but functions that leave() calls are. */
static __attribute__((destructor)) void end(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	leave();
	pthread_setcancelstate(before, NULL);
}

/* ------------------------------------------------------------ names */

static struct px_names *own_names(void)
{
	struct px_names *names = px_own.names;

	if (names)
		return names;
	if (px_own.directory.text[0])
		names = px_names_open(&px_own.directory, px_own.user, &px_control, px_own_pid(), px_own.start);
	if (!names)
		names = px_names_private();
	/* release: pairs with trace points, which read the names */
	__atomic_store_n(&px_own.names, names, __ATOMIC_RELEASE);
	return names;
}

trace_event_id_t px_open_name(const char *name)
{
	trace_event_id_t id = px_standard_id(name);
	struct px_names *names;
	bool may_open;

	if (id)
		return id;
	names = own_names();
	if (!names)
		return POSIX_TRACE_UNNAMED_USEREVENT;
	may_open = px_own.opened_count < TRACE_USER_EVENT_MAX - 1;
	id = may_open ? px_names_add(names, name, false) : px_names_find(names, name);
	if (!id)
		return POSIX_TRACE_UNNAMED_USEREVENT;
	if (px_own.opened[id / 64] >> id % 64 & 1)
		return id;
	if (!may_open)
		return POSIX_TRACE_UNNAMED_USEREVENT;
	px_own.opened[id / 64] |= UINT64_C(1) << id % 64;
	px_own.opened_count++;
	return id;
}

int posix_trace_eventid_open(const char *restrict event_name, trace_event_id_t *restrict event_id)
{
	struct px_guard guard;

	if (!event_name || !event_id)
		return EINVAL;
	if (strnlen(event_name, TRACE_EVENT_NAME_MAX + 1) > TRACE_EVENT_NAME_MAX)
		return ENAMETOOLONG;
	px_guard_enter(&guard);
	px_own_follow_user();
	*event_id = px_open_name(event_name);
	px_guard_leave(&guard);
	px_tracer_name(*event_id, event_name);
	return 0;
}

uint32_t px_system_type(const char *name)
{
	struct px_names *names;
	struct px_guard guard;
	trace_event_id_t id;

	px_guard_enter(&guard);
	names = own_names();
	id = names ? px_names_add(names, name, true) : 0;
	px_guard_leave(&guard);
	return id;
}
