/* SPDX-License-Identifier: MIT */
/* attach.c - a process joins and leaves a session: map the segment, claim a process entry, fork, exec. */
#include "session.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bell.h"
#include "../platform/confined.h"
#include "identity.h"
#include "../platform/own_process.h"
#include "readings.h"
#include "../platform/signals.h"
#include "taker.h"
#include "writer.h"

/*
 * Does a process with a limit on addresses keep as many for itself as the buffers take? It may need them later, and would
 * fail without them. Makes system calls.
 */
static bool leaves_room(uint64_t size)
{
	struct rlimit limit;
	void *both;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return true;
	both = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (both == MAP_FAILED)
		return false;
	munmap(both, 2 * size);
	return true;
}

static int map_segment(const char *directory, struct ptt_segment **segment)
{
	char path[sizeof(ptt_session.directory) + 16];
	struct ptt_segment *seg = NULL;
	int fd, err = -EINVAL;
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/segment", directory) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(*seg))
		err = leaves_room((uint64_t)st.st_size) ? 0 : -ENOMEM;
	if (!err)
		seg = ptt_segment_map(fd, (uint64_t)st.st_size);
	if (!err && !seg)
		err = -errno;
	close(fd);
	if (err)
		return err;
	if (memcmp(seg->abi.magic, PTT_SEGMENT_MAGIC, 8) != 0 || seg->abi.major != PTT_ABI_MAJOR ||
	    seg->size != (uint64_t)st.st_size ||
	    seg->thread_offset + seg->thread_count * sizeof(struct ptt_thread) > PTT_SEGMENT_ALIGN)
		err = -EINVAL;
	/* relaxed: a recording that ends just now may include this process or not */
	else if (__atomic_load_n(&seg->closed, __ATOMIC_RELAXED))
		err = -ESHUTDOWN;
	if (err)
		munmap(seg, (size_t)st.st_size);
	else
		*segment = seg;
	return err;
}

static bool take_process(struct ptt_segment *seg, uint32_t index)
{
	struct ptt_process *table = (struct ptt_process *)((char *)seg + seg->process_offset);
	uint32_t expected = PTT_PROCESS_FREE;

	/* acquire: pairs with the collector's release when it gave the entry back */
	if (!__atomic_compare_exchange_n(&table[index].state, &expected, PTT_PROCESS_CLAIMED, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	ptt_session.process = &table[index];
	ptt_session.process_index = index;
	ptt_raise_high(&seg->process_high, index + 1);
	/* relaxed: only a hint */
	__atomic_store_n(&seg->process_hint, index + 1, __ATOMIC_RELAXED);
	return true;
}

/* Return: false if there are too many processes; then this process is counted. */
static bool claim_process(uint32_t parent)
{
	struct ptt_segment *seg = ptt_session.segment;
	uint32_t i, count = seg->process_count, hint = __atomic_load_n(&seg->process_hint, __ATOMIC_RELAXED);
	struct ptt_process *process;

	for (i = 0; i < count; i++)
		if (take_process(seg, (hint + i) % count))
			break;
	/* relaxed, both: counts */
	if (i == count) {
		__atomic_fetch_add(&seg->lost_processes, 1, __ATOMIC_RELAXED);
		return false;
	}
	ptt_session.image = __atomic_fetch_add(&seg->images, 1, __ATOMIC_RELAXED);
	process = ptt_session.process;
	process->pid = ptt_session.pid;
	process->ppid = (uint32_t)getppid();
	process->parent = parent;
	process->start = ptt_clock(ptt_ring.clock);
	process->lost_threads = 0;
	process->image = ptt_session.image;
	process->pid_namespace = ptt_is_confined() ? 0 : ptt_pid_namespace(PTT_OWN_PID_NAMESPACE);
	return true;
}

/*
 * One thread alone uses it: at the start, in the child of a fork, and at the end. It is static because the stack may be
 * small. The copy below avoids read(), a function of the tracer that would report a possible sleep.
 */
static char buffer[8192];

/* Return: true if the whole file was copied. */
static bool copy_file(const char *from, int out)
{
	ssize_t n;
	int in = open(from, O_RDONLY | O_CLOEXEC);

	if (in < 0)
		return false;
	while ((n = ptt_raw_syscall(SYS_read, in, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0 && write(out, buffer, (size_t)n) == n)
		;
	close(in);
	return n == 0;
}

/* Copy the target of a link. Return: true if it was copied. */
static bool copy_link(const char *from, int out)
{
	ssize_t n = readlink(from, buffer, sizeof(buffer));

	return n > 0 && write(out, buffer, (size_t)n) == n;
}

/* If the program may not write files of this size, no files are written. */
#define PROC_MAX (4u << 20)

/* Copy /proc/thread-self/NAME for readers of the trace. Fails in silence: the trace only loses names. */
static void save_proc(const char *name, bool (*copy)(const char *from, int out))
{
	char from[32], path[sizeof(ptt_session.directory) + 32], temporary[sizeof(path) + 8];
	bool copied;
	int out;

	snprintf(from, sizeof(from), "/proc/thread-self/%s", name);
	if (ptt_session.is_box || ptt_is_confined() || !ptt_may_write(PROC_MAX) ||
	    snprintf(path, sizeof(path), "%s/%s-%u", ptt_session.directory, name, ptt_session.image) >= (int)sizeof(path))
		return;
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	out = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (out < 0)
		return;
	copied = copy(from, out);
	close(out);
	if (copied)
		rename(temporary, path);
	else
		unlink(temporary);
}

/* The kernel keeps the processor number in the rseq area, if the C library registered an area for each thread. */
static ptrdiff_t find_cpu_offset(void)
{
	const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
	const unsigned int *size = dlsym(RTLD_DEFAULT, "__rseq_size");

	if (offset && size && *size)
		return *offset + 4; /* struct rseq: cpu_id_start, cpu_id */
	return ptt_ring_no_cpu_offset();
}

/* If the kernel knows that this process takes part, the collector need not wait for all processors when it asks for chunks. */
static void take_part_in_barriers(struct ptt_segment *seg)
{
	if (ptt_is_confined() ||
	    ptt_raw_syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0, 0, 0, 0) < 0)
		/* relaxed: pairs with barrier_everywhere(), by way of the states of this process's chunks */
		__atomic_store_n(&seg->slow_barrier, 1, __ATOMIC_RELAXED);
}

/* A short-lived process may have mapped memory since it joined that it shares with another process. */
static void before_exit(void)
{
	if (ptt_session.segment)
		save_proc("maps", copy_file);
}

static int join_session(uint32_t parent)
{
	ptt_session.pid = (uint32_t)getpid();
	if (!ptt_session.is_box)
		take_part_in_barriers(ptt_session.segment);
	ptt_ring.sites[PTT_SITE_NONE] = PTT_SITE_MARK;
	ptt_ring_box_is_at(ptt_session.segment);
	if (!claim_process(parent))
		return -EAGAIN;
	if (parent == PTT_NO_IMAGE)
		save_proc("exe", copy_link);
	save_proc("cmdline", copy_file);
	__atomic_store_n(ptt_upcalls.before_exit, before_exit, __ATOMIC_RELAXED); /* hands nothing over */
	save_proc("maps", copy_file);
	/* release: the collector's acquire load of LIVE sees the entry and the files */
	__atomic_store_n(&ptt_session.process->state, PTT_PROCESS_LIVE, __ATOMIC_RELEASE);
	/* some processes end before a sleeping collector would look at them */
	if (!ptt_session.is_box)
		ptt_ring_the_bell(ptt_session.segment);
	return 0;
}

int ptt_ring_attach_mapped(struct ptt_segment *seg, const char *directory)
{
	int err;

	if (strlen(directory) >= sizeof(ptt_session.directory))
		return -ENAMETOOLONG;
	strcpy(ptt_session.directory, directory);
	ptt_session.segment = seg;
	ptt_session.is_box = seg->box;
	ptt_ring.clock = seg->clock;
	ptt_ring.chunk_mask = seg->chunk_size - 1;
	ptt_ring.fast_mask = seg->clock == PTT_CLOCK_TSC ? ptt_ring.chunk_mask : 0;
	ptt_ring.cpu_offset = find_cpu_offset();
	ptt_readings_choose(seg);
	/* if it fails, only the second line of defence of ptt_ring_site_slow() is missing */
	madvise(&ptt_site_table, sizeof(ptt_site_table), MADV_WIPEONFORK);
	err = join_session(PTT_NO_IMAGE);
	if (err)
		ptt_ring_leave_session();
	return err;
}

int ptt_ring_attach(const char *directory)
{
	struct ptt_segment *seg;
	int err = map_segment(directory, &seg);

	return err ? err : ptt_ring_attach_mapped(seg, directory);
}

bool ptt_ring_is_in(const char *directory)
{
	return ptt_session.segment && strcmp(ptt_session.directory, directory) == 0;
}

/* Join the session of a mapped segment, in place of the session before. */
static int rejoin_mapped(struct ptt_segment *seg, const char *directory)
{
	struct ptt_segment *left = ptt_session.segment;

	if (left && !ptt_retired_add(left)) {
		munmap(seg, seg->size);
		return -ENOMEM;
	}
	/* the new session has no numbers of calls and stacks yet, and knows no takers */
	memset(&ptt_site_table, 0, sizeof(ptt_site_table));
	memset(ptt_ring_taker, 0, sizeof(ptt_ring_taker));
	return ptt_ring_attach_mapped(seg, directory);
}

int ptt_ring_rejoin(const char *directory)
{
	struct ptt_segment *seg;
	int err = map_segment(directory, &seg);

	return err ? err : rejoin_mapped(seg, directory);
}

int ptt_ring_begin_box(const char *name, const struct ptt_box_size *size)
{
	struct ptt_segment *seg = ptt_private_segment_make(size);

	if (!seg)
		return -ENOMEM;
	return ptt_session.segment ? rejoin_mapped(seg, name) : ptt_ring_attach_mapped(seg, name);
}

int ptt_ring_fork_child(bool move)
{
	const struct ptt_thread *self = ptt_ring_self;
	uint32_t parent = ptt_session.image;
	int err;

	if (!ptt_session.segment)
		return -ENODEV;
	if (ptt_ring_is_nowhere(self))
		self = NULL;
	if (move)
		ptt_session.segment = ptt_session.is_box ? ptt_private_segment_move(ptt_session.segment, self)
						     : ptt_segment_move(ptt_session.segment, self);
	ptt_ring_forget_thread();
	ptt_schedstat_forget_parent();
	if (!ptt_session.segment)
		return -ENOMEM;
	err = join_session(parent);
	if (err)
		ptt_ring_leave_session();
	return err;
}

void ptt_ring_exec(bool begin)
{
	if (ptt_session.segment)
		/* release: pairs with the acquire of the collector, which looks when the process has gone */
		__atomic_store_n(&ptt_session.process->state, begin ? PTT_PROCESS_EXECING : PTT_PROCESS_LIVE,
				 __ATOMIC_RELEASE);
}

void ptt_ring_lost(uint64_t count)
{
	if (ptt_session.segment)
		/* relaxed: a count */
		__atomic_fetch_add(&ptt_session.segment->lost_reported, count, __ATOMIC_RELAXED);
}

void ptt_ring_detach(void)
{
	if (!ptt_session.segment)
		return;
	save_proc("maps", copy_file);
	ptt_retired_note(ptt_session.segment);
	/* release: the collector's acquire load of ENDED sees the last maps; late events are still in order */
	__atomic_store_n(&ptt_session.process->state, PTT_PROCESS_ENDED, __ATOMIC_RELEASE);
}
