/* SPDX-License-Identifier: MIT */
/* names.c - names of event types, shared by the processes of a family. */
#include "names.h"

#include <pthread.h>
#include <sys/mman.h>


static const char *const standard[PX_EVENT_SYSTEM] = {
	[1] = "posix_trace_error",	 [2] = "posix_trace_start",	 [3] = "posix_trace_stop",
	[4] = "posix_trace_filter",	 [5] = "posix_trace_overflow",	 [6] = "posix_trace_resume",
	[7] = "posix_trace_flush_start", [8] = "posix_trace_flush_stop", [9] = "posix_trace_unnamed_userevent",
};


trace_event_id_t px_standard_id(const char *name)
{
	for (trace_event_id_t id = 1; id < PX_EVENT_SYSTEM; id++)
		if (standard[id] && strcmp(standard[id], name) == 0)
			return id;
	return 0;
}

/* ------------------------------------------------------------ the table */

static pthread_mutex_t *lock_of(struct px_names *names)
{
	return (pthread_mutex_t *)names->lock;
}

static void lock(struct px_names *names)
{
	/* a holder that died left at most an unfinished name, and the counts do not include that name */
	if (pthread_mutex_lock(lock_of(names)) == EOWNERDEAD)
		pthread_mutex_consistent(lock_of(names));
}

static void set_up(struct px_names *names)
{
	if (names->ready)
		return;
	px_shared_mutex_init(names->lock);
	/* last, by release: if this thread is killed before, the next thread begins anew */
	__atomic_store_n(&names->ready, 1, __ATOMIC_RELEASE);
}

struct px_names *px_names_open(const struct px_path *directory, uint32_t user, struct px_control *control, uint32_t pid,
			       uint64_t start)
{
	struct px_names *names = NULL;
	struct px_registry *registry;
	struct px_path path;
	int fd, registry_fd, err;

	registry_fd = px_registry_lock(directory, user, &registry);
	if (registry_fd < 0)
		return NULL;
	if (!__atomic_load_n(&control->family_pid, __ATOMIC_ACQUIRE)) {
		control->family_start = start;
		__atomic_store_n(&control->family_pid, pid, __ATOMIC_RELEASE);
	}
	px_path_add(&path, directory, 'n', control->family_pid, control->family_start);
	fd = px_file_open(&path, sizeof(*names), user);
	if (fd >= 0) {
		names = px_raw_mmap(NULL, sizeof(*names), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &err);
		px_raw_close(fd);
	}
	if (names)
		set_up(names);
	px_registry_unlock(registry_fd, registry);
	return names;
}

struct px_names *px_names_private(void)
{
	int err;
	struct px_names *names =
		px_raw_mmap(NULL, sizeof(*names), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &err);

	if (names)
		set_up(names);
	return names;
}

void px_names_close(struct px_names *names)
{
	if (names)
		munmap(names, sizeof(*names));
}

/* ------------------------------------------------------------ names in it */

static trace_event_id_t find(const struct px_names *names, const char *name)
{
	for (trace_event_id_t id = px_names_next(names, PX_EVENT_SYSTEM - 1); id; id = px_names_next(names, id))
		if (strncmp(names->name[id], name, PX_NAME_SIZE) == 0)
			return id;
	return 0;
}

trace_event_id_t px_names_find(struct px_names *names, const char *name)
{
	trace_event_id_t id;

	lock(names);
	id = find(names, name);
	pthread_mutex_unlock(lock_of(names));
	return id;
}

trace_event_id_t px_names_add(struct px_names *names, const char *name, bool system)
{
	uint32_t *count = system ? &names->system_count : &names->user_count;
	uint32_t first = system ? PX_EVENT_SYSTEM : PX_EVENT_USER, end = system ? PX_EVENT_USER : PX_EVENT_COUNT;
	trace_event_id_t id;

	lock(names);
	id = find(names, name);
	if (!id && first + *count < end) {
		id = first + *count;
		strncpy(names->name[id], name, PX_NAME_SIZE - 1);
		/* release: a load that sees the count sees the name */
		__atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(lock_of(names));
	return id;
}

const char *px_names_of(const struct px_names *names, trace_event_id_t id)
{
	if (id < PX_EVENT_SYSTEM)
		return standard[id];
	if (id < PX_EVENT_USER)
		return id - PX_EVENT_SYSTEM < px_system_count(names) ? names->name[id] : NULL;
	return id - PX_EVENT_USER < px_user_count(names) ? names->name[id] : NULL;
}

trace_event_id_t px_names_next(const struct px_names *names, trace_event_id_t id)
{
	id++;
	while (id < PX_EVENT_COUNT && !px_names_of(names, id)) {
		if (id < PX_EVENT_SYSTEM)
			id++;
		else
			id = id < PX_EVENT_USER ? PX_EVENT_USER : PX_EVENT_COUNT;
	}
	return id < PX_EVENT_COUNT ? id : 0;
}
