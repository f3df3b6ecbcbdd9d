/* SPDX-License-Identifier: MIT */
/* registry.h - the shared files of a user: directory, registry, control pages; the identity of a process and whether it lives. */
/*
 * Functions here use raw system calls: they keep errno, allocate nothing, are no cancellation points, and are safe in signal
 * handlers, unless a comment says otherwise.
 */
#ifndef PX_REGISTRY_H
#define PX_REGISTRY_H

#include <linux/futex.h>
#include <pthread.h>

#include "posix.h"

#define PX_LOCK_SIZE 64u /* bytes of a mutex in shared memory */
_Static_assert(sizeof(pthread_mutex_t) <= PX_LOCK_SIZE, "mutex fits");

/*
 * px_shared_mutex_init - make @lock a robust mutex between processes
 * Return: 0 or an error number. Not safe in signal handlers.
 */
int px_shared_mutex_init(uint8_t lock[PX_LOCK_SIZE]);

/* ------------------------------------------------------------ raw calls */

/* px_raw_mmap - mmap(2). Return: NULL after an error; @err is 0 or -errno. */
void *px_raw_mmap(void *at, uint64_t size, int protection, int flags, int fd, long offset, int *err);
void px_raw_munmap(void *at, uint64_t size);

/* px_raw_open - open(2) with O_CLOEXEC and O_NOFOLLOW. Return: a descriptor or -errno. */
int px_raw_open(const char *path, int flags, int mode);
void px_raw_close(int fd);

/* px_raw_size - bytes of an open file; 0 if the kernel does not say. */
uint64_t px_raw_size(int fd);

/* ------------------------------------------------------------ processes */

struct px_process {
	uint32_t pid;
	uint32_t ppid;
	uint64_t start; /* field 22 of /proc/PID/stat; a later process with the same pid has another value */
	char state;	/* field 3 of /proc/PID/stat */
};

/*
 * px_process_find - look up the process with @pid; 0 = the calling process
 * Return: false if there is no such process, or /proc does not say.
 */
bool px_process_find(uint32_t pid, struct px_process *process);

/* px_process_exists - does any process have @pid? Needs no descriptor. */
bool px_process_exists(uint32_t pid);

/* px_process_lives - does the process with @pid and @start still run? True if /proc does not say. */
bool px_process_lives(uint32_t pid, uint64_t start);

/* px_thread_state - 0 if the thread @tid has ended, '?' if /proc does not say, else the kernel's state letter. */
char px_thread_state(uint32_t tid);

/* ------------------------------------------------------------ the directory */

struct px_path {
	char text[128];
};

/*
 * px_directory - the path of the directory of @user; @make: make the directory if there is none
 * Return: 0 or -errno; -EPERM if another user owns the directory, or others may write to it.
 */
int px_directory(struct px_path *path, uint32_t user, bool make);

/* px_path_add - set @path to a file in @directory: a letter and up to two numbers, as in "/p12.345". */
void px_path_add(struct px_path *path, const struct px_path *directory, char kind, uint64_t first, uint64_t second);

/*
 * px_file_grow - make a file @size bytes long; @reserve: and allocate its memory now
 * Return: 0 or -errno; -EFBIG past the limit of the process. Keeps the signal SIGXFSZ from the program.
 */
long px_file_grow(int fd, uint64_t size, bool reserve);

/*
 * px_file_open - open a file, and make it @size bytes long if it is shorter
 * @user: owner of the file, which is made if there is none; PX_NOT_MADE: do not make the file
 * Return: a descriptor or -errno.
 */
int px_file_open(const struct px_path *path, uint64_t size, uint32_t user);
#define PX_NOT_MADE UINT32_MAX

/* px_lives - does the controller still hold the stream? */
static inline bool px_lives(const struct px_stream *stream)
{
	/* the first word of a robust mutex is its futex: 0 = unlocked; the kernel sets OWNER_DIED */
	uint32_t word = __atomic_load_n((const uint32_t *)stream->life, __ATOMIC_RELAXED);

	return word && !(word & FUTEX_OWNER_DIED);
}

/*
 * px_is_held - does the controller still hold the stream in the file @path? A controller that executes another program lives,
 * but does not hold the stream. False if there is no such stream. True if the file cannot be opened, such as without a free
 * descriptor.
 */
bool px_is_held(const struct px_path *path);

/* px_registry_lock, _unlock - map and lock the registry of a directory. Return: a descriptor or -errno. May block. */
int px_registry_lock(const struct px_path *directory, uint32_t user, struct px_registry **registry);
void px_registry_unlock(int fd, struct px_registry *registry);

/* px_control_open - open the control page of a process; @user as in px_file_open(). Return: a descriptor or -errno. */
int px_control_open(const struct px_path *directory, uint32_t pid, uint64_t start, uint32_t user);

/* px_control_enter, _leave - a stream begins, or ends, to trace the process of the page. */
static inline void px_control_enter(struct px_control *control, uint32_t slot, uint64_t serial)
{
	/* seq_cst, in this order: a load that sees the bit finds the serial; pairs with px_control_leave() */
	__atomic_store_n(&control->serial[slot], serial, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&control->active, UINT64_C(1) << slot, __ATOMIC_SEQ_CST);
}

static inline void px_control_leave(struct px_control *control, uint32_t slot, uint64_t serial)
{
	uint64_t bit = UINT64_C(1) << slot;

	if (!__atomic_compare_exchange_n(&control->serial[slot], &serial, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return;
	__atomic_fetch_and(&control->active, ~bit, __ATOMIC_SEQ_CST);
	/* a new stream may have entered in between: restore its bit */
	if (__atomic_load_n(&control->serial[slot], __ATOMIC_SEQ_CST))
		__atomic_fetch_or(&control->active, bit, __ATOMIC_SEQ_CST);
}

/*
 * px_control_find - open the control page of a process, in @directory or in the directory of any other user
 * @directory, @user: the directory and its owner; set to the directory that has the page
 * Return: a descriptor, or -ENOENT. For root. Allocates; not safe in signal handlers.
 */
int px_control_find(struct px_path *directory, uint32_t *user, uint32_t pid, uint64_t start);

#endif
