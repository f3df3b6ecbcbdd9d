/* SPDX-License-Identifier: MIT */
/* shared.h - shared by the parts of the shared-buffer handler: the buffer as mapped in this process. */
#ifndef PTT_HANDLER_SHARED_H
#define PTT_HANDLER_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/ptt_abi.h"
#include "writer/bell.h"

/*
 * A writer loads the pointer once, and reaches everything by it. In the child of a fork another struct takes its place, and
 * the parent's struct points to private memory from then on. A signal handler may fork within a writer and return in the
 * child. The writer then goes on in the child, and nobody sees its writes; in the parent, the writer's writes count.
 */
struct shared_buffer {
	struct ptt_segment *segment;
	struct ptt_shared *shared;
	struct ptt_shared_process *process;
	uint32_t *array; /* mapped twice, end to end */
	uint64_t mask;   /* words - 1 */
	uint32_t clock;
	uint32_t pid;
};

/* NULL while the process is in no session. */
extern const struct shared_buffer *shared_buffer __attribute__((visibility("hidden")));

/* shared_attach - join the session in @directory, or (NULL) join it again in the child of a fork. Return: 0 or -errno. */
int shared_attach(const char *directory);

/* The two reasons for a writer to wait. Both return false if nobody will end the wait. */
bool shared_wait_for_room(const struct shared_buffer *b, uint32_t words, struct ptt_patience *patience);
bool shared_wait_for_pause(const struct shared_buffer *b);

/* shared_has_room - may a writer reserve @words at @reserved? A nested writer may use the headroom too. */
bool shared_has_room(const struct shared_buffer *b, uint64_t reserved, uint32_t words, bool nested);

#endif
