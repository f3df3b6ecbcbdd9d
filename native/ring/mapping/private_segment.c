/* SPDX-License-Identifier: MIT */
/* private_segment.c - makes and extends a segment in private memory, for the black box. */
#include "private_segment.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../platform/clock.h"
#include "../platform/page.h"
#include "../platform/raw_syscall.h"
#include "segment_map.h"

#define STEP 64u /* chunks that get memory together */
#define LINE 128u
#define THREADS_MAX (PTT_THREAD_COUNT_MAX / 2)

static uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

/* Each thread can have two chunks, so no thread waits for another thread's chunk as long as there are entries. */
static void lay_out(struct ptt_segment *seg, uint64_t memory, uint32_t chunk_size)
{
	uint64_t at = align_up(sizeof(*seg), LINE);

	memcpy(seg->abi.magic, PTT_SEGMENT_MAGIC, sizeof(seg->abi.magic));
	seg->abi.major = PTT_ABI_MAJOR;
	seg->abi.minor = PTT_ABI_MINOR;
	seg->abi.struct_size = sizeof(*seg);
	seg->chunk_size = chunk_size;
	seg->chunk_count = (uint32_t)(memory / chunk_size);
	seg->thread_count = seg->chunk_count / 2 < THREADS_MAX ? seg->chunk_count / 2 : THREADS_MAX;
	seg->process_count = 1;
	seg->process_offset = at;
	at = align_up(at + sizeof(struct ptt_process), LINE);
	seg->thread_owner_offset = at;
	at = align_up(at + (uint64_t)seg->thread_count * sizeof(uint32_t), LINE);
	seg->thread_offset = at;
	at += (uint64_t)seg->thread_count * sizeof(struct ptt_thread);
	seg->chunk_state_offset = at;
	at += (uint64_t)seg->chunk_count * sizeof(uint32_t);
	seg->chunk_offset = align_up(at, chunk_size > PTT_PAGE_MAX ? chunk_size : PTT_PAGE_MAX);
	seg->size = seg->chunk_offset + (uint64_t)seg->chunk_count * chunk_size;
	seg->chunks_there = seg->chunk_count < STEP ? seg->chunk_count : STEP;
}

/* A number for the box that no other box has, for the trace that a reader makes of it. */
static void choose_uuid(struct ptt_segment *seg)
{
	if (getrandom(seg->uuid, sizeof(seg->uuid), GRND_NONBLOCK) != sizeof(seg->uuid)) {
		const uint64_t number[2] = {seg->start_clock, (uint64_t)getpid()};

		memcpy(seg->uuid, number, sizeof(seg->uuid));
	}
	seg->uuid[6] = (seg->uuid[6] & 0x0f) | 0x40; /* version 4, a random UUID (RFC 9562, section 5.4) */
	seg->uuid[8] = (seg->uuid[8] & 0x3f) | 0x80;
}

/* Return: NULL if there are no addresses or there is no memory. */
static struct ptt_segment *place(struct ptt_segment *head)
{
	char *base = ptt_segment_reserve(head->size);
	struct timespec now;

	if (!base)
		return NULL;
	/* huge pages would take memory for chunks that no thread uses; an old kernel without them refuses, which is as good */
	madvise(base, head->size, MADV_NOHUGEPAGE);
	if (mprotect(base, ptt_segment_present(head), PROT_READ | PROT_WRITE) < 0) {
		munmap(base, head->size);
		return NULL;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	head->start_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	head->start_monotonic_ns = ptt_clock_monotonic_ns();
	head->start_clock = ptt_clock(head->clock);
	choose_uuid(head);
	memcpy(base, head, sizeof(*head));
	return (struct ptt_segment *)base;
}

/* Does a limit on addresses leave three times as many for the program as the box takes? The program may need them later. */
static bool leaves_room(uint64_t size)
{
	struct rlimit limit;
	char *room;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return true;
	room = mmap(NULL, 4 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return false;
	munmap(room, 4 * size);
	return true;
}

struct ptt_segment *ptt_private_segment_make(const struct ptt_box_size *size)
{
	uint32_t chunk_size = ptt_box_chunk_size(size->events);
	uint64_t memory, least = (uint64_t)PTT_BOX_CHUNKS_MIN * chunk_size;

	for (memory = size->memory; memory >= PTT_BOX_MEMORY_MIN && memory >= least; memory /= 2) {
		struct ptt_segment *made, head = {
			.policy = PTT_POLICY_LOOP,
			.when_full = PTT_WHEN_FULL_DROP,
			.clock = ptt_clock_choose(),
			.stack_depth = size->stack_depth,
			.patience_ms = PTT_PATIENCE_MS,
			.box = 1,
		};

		lay_out(&head, memory, chunk_size);
		made = leaves_room(head.size) ? place(&head) : NULL;
		if (made)
			return made;
	}
	return NULL;
}

struct ptt_segment *ptt_private_segment_move(struct ptt_segment *segment, const struct ptt_thread *self)
{
	struct ptt_segment *to, head = {
		.policy = segment->policy,
		.when_full = segment->when_full,
		.clock = segment->clock,
		.stack_depth = segment->stack_depth,
		.patience_ms = segment->patience_ms,
		.box = 1,
	};

	lay_out(&head, (uint64_t)segment->chunk_count * segment->chunk_size, segment->chunk_size);
	to = place(&head);
	if (!ptt_segment_leave(segment, segment, self)) {
		if (to)
			munmap(to, head.size);
		return NULL;
	}
	return to;
}

bool ptt_private_segment_grow(struct ptt_segment *segment, uint32_t present)
{
	uint32_t count = segment->chunk_count, wanted = present + STEP < count ? present + STEP : count, seen = present;
	uint64_t from = segment->chunk_offset + (uint64_t)present * segment->chunk_size;

	if (present >= count ||
	    ptt_raw_syscall(SYS_mprotect, (long)segment + (long)from, (long)((uint64_t)(wanted - present) * segment->chunk_size),
			    PROT_READ | PROT_WRITE, 0, 0, 0) < 0)
		return false;
	/* release: pairs with the acquire in claim_free(): the memory is there. If another thread was faster, that is as good. */
	__atomic_compare_exchange_n(&segment->chunks_there, &seen, wanted, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	return true;
}
