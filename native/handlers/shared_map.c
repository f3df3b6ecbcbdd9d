/* SPDX-License-Identifier: MIT */
/* shared_map.c - the shared-buffer handler joins a session, and waits in it: for room, and while PAUSE. */
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "writer/session.h"
#include "writer/bell.h"
#include "platform/confined.h"
#include "platform/own_process.h"
#include "mapping/segment_map.h"
#include "writer/writer.h"

const struct shared_buffer *shared_buffer;

/* Time that a writer sleeps before it checks again that somebody reads. */
static const struct timespec wait_slice = {.tv_nsec = 50 * 1000 * 1000};
/* Most pauses are shorter than a system call. */
#define PAUSE_SPINS 400

/* ------------------------------------------------------------ joining */

/* Start time of this process, in the kernel's unit: field 22 of /proc/PID/stat. 0 if it cannot be read. */
static uint64_t start_time(void)
{
	char text[1024], path[PTT_OWN_STAT_MAX], *at;
	int fd, field;
	ssize_t n;

	ptt_own_stat_path(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = open(PTT_OWN_STAT_ANY, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')'); /* the name before it may contain anything */
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static uint64_t array_size(const struct shared_buffer *b)
{
	return (b->mask + 1) * sizeof(*b->array);
}

static int map_array(struct shared_buffer *b)
{
	char path[sizeof(ptt_session.directory) + 16];
	const struct ptt_segment *segment = ptt_session.segment;
	int fd;

	if (!segment->shared_offset || segment->shared_offset > segment->size - sizeof(struct ptt_shared))
		return -EINVAL;
	b->shared = (struct ptt_shared *)((char *)segment + segment->shared_offset);
	b->mask = b->shared->size - 1;
	snprintf(path, sizeof(path), "%s/segment", ptt_session.directory);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	b->array = ptt_mirror_map(fd, b->shared->array_offset, array_size(b));
	close(fd);
	return b->array ? 0 : -errno;
}

/* In the child of a fork: move both mappings, even if this process cannot be recorded. */
static int move_all(struct shared_buffer *b, const struct shared_buffer *parents)
{
	int err = ptt_ring_fork_child(true);

	b->array = ptt_mirror_move(parents->array, array_size(parents));
	b->mask = parents->mask;
	if (!err && !b->array) {
		ptt_ring_leave_session();
		err = -ENOMEM;
	}
	if (!err)
		b->shared = (struct ptt_shared *)((char *)ptt_session.segment + ptt_session.segment->shared_offset);
	return err;
}

static void take_process(struct shared_buffer *b)
{
	struct ptt_shared_process *table = (void *)((char *)ptt_session.segment + b->shared->process_offset);

	b->segment = ptt_session.segment;
	b->process = &table[ptt_session.process_index];
	b->clock = b->segment->clock;
	b->pid = ptt_session.pid;
	/* release: before this process counts itself among the writers; then the reader looks at it */
	__atomic_store_n(&b->process->start_time, start_time(), __ATOMIC_RELEASE);
}

int shared_attach(const char *directory)
{
	static struct shared_buffer generation[1 + PTT_GENERATIONS_KEPT];
	static unsigned int next;
	const struct shared_buffer *parents = shared_buffer;
	struct shared_buffer *b = &generation[next];
	int err;

	shared_buffer = NULL;
	next = (next + 1) % (1 + PTT_GENERATIONS_KEPT);
	if (directory) {
		err = ptt_ring_attach(directory);
		if (!err)
			err = map_array(b);
	} else {
		err = move_all(b, parents);
	}
	if (err)
		return err;
	take_process(b);
	shared_buffer = b;
	return 0;
}

/* ------------------------------------------------------------ waiting */

bool shared_has_room(const struct shared_buffer *b, uint64_t reserved, uint32_t words, bool nested)
{
	const struct ptt_shared *shared = b->shared;
	/* acquire: pairs with the reader's release of beg_read, after it zeroed the words below */
	int64_t used = (int64_t)(reserved - __atomic_load_n(&shared->beg_read, __ATOMIC_ACQUIRE));

	/* negative if @reserved is out of date; the reservation will then fail */
	return used + words + (nested ? 0 : (int64_t)shared->headroom) <= (int64_t)shared->size;
}

/* Would a thread that waits for room wait in vain? */
static bool waits_in_vain(const struct shared_buffer *b)
{
	if (!ptt_is_collected(b->segment) || ptt_is_real_time())
		return true;
	if (!ptt_is_stalled(b->segment))
		return false;
	/* relaxed: a count */
	__atomic_fetch_add(&b->shared->lost_stalled, 1, __ATOMIC_RELAXED);
	return true;
}

bool shared_wait_for_room(const struct shared_buffer *b, uint32_t words, struct ptt_patience *patience)
{
	struct ptt_segment *segment = b->segment;
	/* acquire: pairs with the reader's bump after it moved beg_read */
	uint32_t seen = __atomic_load_n(&segment->space, __ATOMIC_ACQUIRE);

	if (segment->when_full != PTT_WHEN_FULL_WAIT || waits_in_vain(b))
		return false;
	__atomic_fetch_add(&segment->waiters, 1, __ATOMIC_SEQ_CST); /* pairs with the reader's bump of space, then load */
	if (!shared_has_room(b, __atomic_load_n(&b->shared->reserved, __ATOMIC_SEQ_CST), words, false)) {
		ptt_ring_the_bell(segment);
		ptt_wait_for_collector(segment, patience, &segment->space, seen, &wait_slice);
	}
	__atomic_fetch_sub(&segment->waiters, 1, __ATOMIC_RELAXED);
	return true;
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory"); /* longer than yield, which most processors ignore */
#elif defined(__riscv)
	__asm__ volatile(".4byte 0x0100000f" ::: "memory"); /* pause, which other processors treat as a fence without effect */
#else
	__asm__ volatile("" ::: "memory");
#endif
}

bool shared_wait_for_pause(const struct shared_buffer *b)
{
	struct ptt_shared *shared = b->shared;
	uint64_t began = ptt_clock_monotonic_ns();
	struct ptt_patience patience = {0};
	unsigned int i;

	/* a reader killed in its pause leaves the pause set for ever: then no event may cost a spin */
	if (!ptt_is_collected(b->segment))
		return false;
	for (i = 0; i < PAUSE_SPINS && __atomic_load_n(&shared->pause, __ATOMIC_ACQUIRE); i++)
		relax();
	while (__atomic_load_n(&shared->pause, __ATOMIC_ACQUIRE)) {
		if (waits_in_vain(b))
			return false;
		ptt_wait_for_collector(b->segment, &patience, &shared->pause, 1, &wait_slice);
	}
	__atomic_fetch_add(&shared->pause_ns, ptt_clock_monotonic_ns() - began, __ATOMIC_RELAXED);
	return true;
}
