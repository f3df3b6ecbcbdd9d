/* SPDX-License-Identifier: MIT */
/* private_segment.h - a segment in private memory of this process, for the black box: made small, and extended on demand. */
/*
 * The addresses of all chunks are reserved at once, without memory: a system that commits memory strictly
 * (vm.overcommit_memory=2) counts only what writers can use. The kernel writes this memory to core files.
 */
#ifndef PTT_PRIVATE_SEGMENT_H
#define PTT_PRIVATE_SEGMENT_H

#include <stdbool.h>
#include <string.h>

#include "../layout/ptt_abi.h"

struct ptt_box_size {
	uint64_t memory; /* of all chunks, at most */
	uint32_t events; /* of each thread, see PTT_BOX_EVENTS */
	uint32_t stack_depth;
};

/* ptt_box_is_wanted - do the arguments of the handler ask for a black box, with PTT_BOX_NAME as the first of them? */
static inline bool ptt_box_is_wanted(char **args)
{
	return args[0] && strcmp(args[0], PTT_BOX_NAME) == 0;
}

/* ptt_box_chunk_size - bytes of a chunk of a black box that keeps @events events of each thread */
static inline uint32_t ptt_box_chunk_size(uint32_t events)
{
	uint32_t size = PTT_CHUNK_SIZE_MIN;

	while (size < 2 * events * PTT_SLOT_SIZE)
		size *= 2;
	return size;
}

/*
 * ptt_private_segment_make - an empty black box; smaller than wanted if there are too few addresses
 * Makes system calls. Return: NULL if there is no memory at all.
 */
struct ptt_segment *ptt_private_segment_make(const struct ptt_box_size *size) __attribute__((visibility("hidden")));

/*
 * ptt_private_segment_move - in the child of a fork: an empty black box like @segment elsewhere, and memory in its place
 * @self: as for ptt_segment_move()
 * What the parent recorded is not about the child. Return: NULL if there is no memory.
 */
struct ptt_segment *ptt_private_segment_move(struct ptt_segment *segment, const struct ptt_thread *self)
	__attribute__((visibility("hidden")));

/*
 * ptt_private_segment_grow - memory for more chunks than @present
 * May run in several threads and signal handlers at once; makes a system call and keeps errno.
 * Return: false if there are no more chunks, or there is no memory.
 */
bool ptt_private_segment_grow(struct ptt_segment *segment, uint32_t present) __attribute__((visibility("hidden")));

#endif
