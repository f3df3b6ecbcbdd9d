/* SPDX-License-Identifier: MIT */
/* registry.h - where the processes meet: the directory of a user, its registry, control pages; the identity of a process and whether it lives. */
/*
 * Everything here works by raw system calls: no errno, no cancellation point, nothing allocated, safe in signal handlers.
 */
#ifndef PX_REGISTRY_H
#define PX_REGISTRY_H

#include <linux/futex.h>

#include "posix.h"

/* ------------------------------------------------------------ raw calls */

void *px_raw_mmap(void *at, uint64_t size, int protection, int flags, int fd, long offset, int *err);
void px_raw_munmap(void *at, uint64_t size);
int px_raw_open(const char *path, int flags, int mode);
void px_raw_close(int fd);
uint64_t px_raw_size(int fd);

/* ------------------------------------------------------------ processes */

struct px_process {
	uint32_t pid;
	uint32_t ppid;
	uint64_t start; /* as field 22 of /proc/PID/stat has it: a later process of the same pid has another */
	char state;
};

/* px_process_find - which process has @pid (0 = the caller)? Return: false if nobody, or if that cannot be found out. */
bool px_process_find(uint32_t pid, struct px_process *process);

/* px_process_exists - is there a process @pid, whoever that is? Needs no descriptor. */
bool px_process_exists(uint32_t pid);

/* px_process_lives - is the process that was started then still there? True if that cannot be found out. */
bool px_process_lives(uint32_t pid, uint64_t start);

/* px_thread_state - 0 if thread @tid has ended, '?' if that cannot be found out, else the kernel's letter. */
char px_thread_state(uint32_t tid);

/* ------------------------------------------------------------ the directory */

/* A path in the making. */
struct px_path {
	char text[128];
};

/* px_directory - the directory of @user; made, if @make. Return: 0 or -errno; -EPERM if it is not that user's own. */
int px_directory(struct px_path *path, uint32_t user, bool make);

/* px_path_add - append a letter and up to two numbers: "/p12.345" */
void px_path_add(struct px_path *path, const struct px_path *directory, char kind, uint64_t first, uint64_t second);

/*
 * px_file_grow - make a file @size bytes long; @reserve: and have the memory for them now
 * Return: 0 or -errno; -EFBIG past the process' limit, without the signal that comes with it.
 */
long px_file_grow(int fd, uint64_t size, bool reserve);

/*
 * px_file_open - open a file of @size bytes, made of zeros if there is none and @user is given (UINT32_MAX: not made)
 * Return: a descriptor or -errno.
 */
int px_file_open(const struct px_path *path, uint64_t size, uint32_t user);
#define PX_NOT_MADE UINT32_MAX

/* px_lives - does the controller of the stream still hold it? */
static inline bool px_lives(const struct px_stream *stream)
{
	/* the first word of a robust mutex is its futex: 0 = given up, OWNER_DIED = the kernel says so */
	uint32_t word = __atomic_load_n((const uint32_t *)stream->life, __ATOMIC_RELAXED);

	return word && !(word & FUTEX_OWNER_DIED);
}

/*
 * px_is_held - does the controller still hold the stream of that path? It may live and have executed another program, which
 * holds nothing. False if there is no such stream, true if that cannot be found out, for want of a descriptor perhaps.
 */
bool px_is_held(const struct px_path *path);

/* px_registry_lock, _unlock - the registry of a directory, locked. Return: a descriptor or -errno. May block. */
int px_registry_lock(const struct px_path *directory, uint32_t user, struct px_registry **registry);
void px_registry_unlock(int fd, struct px_registry *registry);

/* px_control_open - the control page of a process. Return: a descriptor or -errno. */
int px_control_open(const struct px_path *directory, uint32_t pid, uint64_t start, uint32_t user);

/* px_control_enter, _leave - a stream begins, or ends, to trace the process of the page. Safe in signal handlers. */
static inline void px_control_enter(struct px_control *control, uint32_t slot, uint64_t serial)
{
	/* seq_cst, in this order: a load that sees the bit finds the serial; and see px_control_leave() */
	__atomic_store_n(&control->serial[slot], serial, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&control->active, UINT64_C(1) << slot, __ATOMIC_SEQ_CST);
}

static inline void px_control_leave(struct px_control *control, uint32_t slot, uint64_t serial)
{
	uint64_t bit = UINT64_C(1) << slot;

	if (!__atomic_compare_exchange_n(&control->serial[slot], &serial, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return;
	__atomic_fetch_and(&control->active, ~bit, __ATOMIC_SEQ_CST);
	/* a new stream may have come in between, whose bit we have just cleared */
	if (__atomic_load_n(&control->serial[slot], __ATOMIC_SEQ_CST))
		__atomic_fetch_or(&control->active, bit, __ATOMIC_SEQ_CST);
}

/*
 * px_control_find - the same, wherever it is: in the directory of @user, or else of another one, which @user then is
 * Return: a descriptor, or -ENOENT. For root; not safe in signal handlers.
 */
int px_control_find(struct px_path *directory, uint32_t *user, uint32_t pid, uint64_t start);

#endif
