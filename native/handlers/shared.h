/* SPDX-License-Identifier: MIT */
/* shared.h - what the parts of the shared-buffer handler have in common: the buffer as this process has it mapped. */
#ifndef PTT_HANDLER_SHARED_H
#define PTT_HANDLER_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/ptt_abi.h"
#include "writer/bell.h"

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

/*
 * A writer loads the pointer once, and gets to everything by way of it. In the child of a fork another one takes its place,
 * and what the parent's points to is private memory from then on: if a signal handler forked within a writer, and returns in
 * the child, the writer goes on there, and nobody sees what it does. The parent does the same for good.
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

/* NULL while not attached. */
extern const struct shared_buffer *shared_buffer __attribute__((visibility("hidden")));

/* shared_attach - join the session in @directory, or (NULL) join it again in the child of a fork. Return: 0 or -errno. */
int shared_attach(const char *directory);

/* The reasons why a writer may have to wait. Both return false if nobody will end the wait. */
bool shared_wait_for_room(const struct shared_buffer *b, uint32_t words, struct ptt_patience *patience);
bool shared_wait_for_pause(const struct shared_buffer *b);

/* shared_has_room - may @words be reserved at @reserved? A nested writer may use the headroom too. */
bool shared_has_room(const struct shared_buffer *b, uint64_t reserved, uint32_t words, bool nested);

#endif
