/* SPDX-License-Identifier: MIT */
/* process.c - the calling process: its beginning, its children, its names and its end. */
#include "traced.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "platform/raw_syscall.h"
#include "system_event.h"

/* How far up a process looks for one whose streams it takes over: over shells and the like, which do not know of us. */
#define ANCESTORS 8
#define TICK_NS UINT64_C(10000000)
/* One process in so many removes the files that dead processes have left. */
#define SWEEP_EACH 16

/* ------------------------------------------------------------ the control page */

/* Put this process's own page in place. Return: 0 or -errno. */
static int map_control(void)
{
	int fd = px_control_open(&px_own.directory, px_own_pid(), px_own.start, px_own.user), err;

	if (fd < 0)
		return fd;
	px_raw_mmap(&px_control, PX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0, &err);
	px_raw_close(fd);
	return err;
}

/* Nobody can trace this process. */
static void do_without(void)
{
	int err;

	px_own.directory.text[0] = '\0';
	px_raw_mmap(&px_control, PX_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0, &err);
}

/* Enter a stream that is mapped. @user: whose directory it is in, plus 1 */
static void trace_into(uint32_t slot, uint64_t serial, uint32_t user)
{
	__atomic_store_n(&px_control.user[slot], user, __ATOMIC_RELAXED);
	px_control_enter(&px_control, slot, serial);
}

/* Take those of the parent's streams over that are inherited. @mapped: the parent's mappings are ours too. */
static void inherit(const struct px_control *parent, bool mapped)
{
	for (uint64_t active = parent->active; active; active &= active - 1) {
		uint32_t slot = (uint32_t)__builtin_ctzll(active);
		uint64_t serial = parent->serial[slot];
		struct px_stream *stream = mapped ? px_own.stream[slot] : NULL;

		if (!stream || stream->serial != serial)
			stream = px_own_stream(slot, serial);
		/* acquire: pairs with px_close(), of a controller that may be at it */
		if (stream && stream->inherited && !__atomic_load_n(&stream->closed, __ATOMIC_ACQUIRE))
			trace_into(slot, serial, parent->user[slot]);
	}
}

/* Names that were given before, in a table of the new directory. */
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
	/* the old one stays mapped: trace points may be looking at it */
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
		do_without();
		return;
	}
	/* streams that are mapped go on; others cannot be had any more */
	for (uint64_t active = old.active; active; active &= active - 1) {
		uint32_t slot = (uint32_t)__builtin_ctzll(active);
		const struct px_stream *stream = px_own.stream[slot];

		if (stream && stream->serial == old.serial[slot])
			trace_into(slot, stream->serial, old.user[slot] ? old.user[slot] : old_user + 1);
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
	if (!px_process_find(0, &self)) {
		do_without();
		return;
	}
	px_own.start = self.start;
	if ((uint32_t)geteuid() != px_own.user) {
		px_own.user = (uint32_t)geteuid();
		if (px_directory(&px_own.directory, px_own.user, true) < 0) {
			do_without();
			return;
		}
		parent.family_pid = 0;
	}
	if (map_control() < 0) {
		do_without();
		return;
	}
	inherit(&parent, true);
	if (parent.family_pid) {
		px_control.family_start = parent.family_start;
		__atomic_store_n(&px_control.family_pid, parent.family_pid, __ATOMIC_RELEASE);
	}
	px_control.settled = 1;
}

/* ------------------------------------------------------------ programs that begin */

static struct px_control *page_of(const struct px_process *process)
{
	int fd = px_control_open(&px_own.directory, process->pid, process->start, PX_NOT_MADE), err;
	struct px_control *page;

	if (fd < 0)
		return NULL;
	page = px_raw_mmap(NULL, PX_PAGE, PROT_READ, MAP_SHARED, fd, 0, &err);
	px_raw_close(fd);
	return page;
}

/* Is there any inherited stream that was created before a process that started then? */
static uint64_t older_streams(uint64_t start)
{
	struct px_registry *registry;
	struct px_path path;
	uint64_t slots = 0;
	int fd, err;

	px_path_add(&path, &px_own.directory, 'r', 0, 0);
	fd = px_file_open(&path, 0, PX_NOT_MADE);
	if (fd < 0)
		return 0;
	registry = px_raw_mmap(NULL, PX_PAGE, PROT_READ, MAP_SHARED, fd, 0, &err);
	px_raw_close(fd);
	if (!registry)
		return 0;
	for (uint32_t i = 0; i < PX_SLOTS; i++)
		if (registry->slot[i].serial && registry->slot[i].inherited &&
		    registry->slot[i].created < (start + 1) * TICK_NS)
			slots |= UINT64_C(1) << i;
	px_raw_munmap(registry, PX_PAGE);
	return slots;
}

/* posix_spawn(), vfork() and the like come with no child's handler: the new program looks for its parent's streams. */
static void settle(struct px_process process)
{
	uint64_t slots = older_streams(process.start);

	for (int i = 0; slots && i < ANCESTORS && process.ppid > 1; i++) {
		uint64_t born = process.start;
		struct px_control *page;

		if (!px_process_find(process.ppid, &process))
			break;
		page = page_of(&process);
		if (!page)
			continue;
		{
			struct px_control parent = *page;

			parent.active &= slots & older_streams(born);
			inherit(&parent, false);
			if (parent.active && parent.family_pid && !px_control.family_pid) {
				px_control.family_start = parent.family_start;
				__atomic_store_n(&px_control.family_pid, parent.family_pid, __ATOMIC_RELEASE);
			}
		}
		px_raw_munmap(page, PX_PAGE);
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
	if (map_control() < 0) {
		do_without();
		return;
	}
	if (!px_control.settled)
		settle(self);
}

static void leave(void)
{
	void (*ending)(void) = __atomic_load_n(&px_own.ending, __ATOMIC_ACQUIRE);
	struct px_path path;

	if (ending)
		ending();
	if (!px_own.directory.text[0] || __atomic_load_n(&px_control.active, __ATOMIC_SEQ_CST))
		return; /* a controller may still want to know our names */
	px_path_add(&path, &px_own.directory, 'p', px_own_pid(), px_own.start);
	ptt_raw_syscall(SYS_unlinkat, AT_FDCWD, (long)path.text, 0, 0, 0, 0);
	/* the names go with the last of the family */
	if (px_own.names)
		px_clean_up(&px_own.directory);
}

/* exit() is no cancellation point, and much of the above is. */
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
	/* release: trace points look at it */
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
