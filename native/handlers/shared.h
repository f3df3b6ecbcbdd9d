/* SPDX-License-Identifier: MIT */
/* shared.h - what the parts of the shared-buffer handler have in common: the buffer as this process has it mapped. */
#ifndef PTT_HANDLER_SHARED_H
#define PTT_HANDLER_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/ptt_abi.h"

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

struct shared_buffer {
	struct ptt_segment *segment; /* NULL while not attached */
	struct ptt_shared *shared;
	struct ptt_shared_process *process;
	uint32_t *array; /* mapped twice, end to end */
	uint64_t mask;   /* words - 1 */
	uint32_t clock;
	uint32_t pid;
	uint32_t generation; /* counts forks: what a child inherited half written is its parent's to finish */
};

extern struct shared_buffer shared_buffer __attribute__((visibility("hidden")));

/* shared_attach - join the session in @directory, or (NULL) join it again in the child of a fork. Return: 0 or -errno. */
int shared_attach(const char *directory);

/* The reasons why a writer may have to wait. Both return false if nobody will ever end the wait. */
bool shared_wait_for_room(uint32_t words);
bool shared_wait_for_pause(void);

/* shared_has_room - may @words be reserved at @reserved? A nested writer may use the headroom too. */
bool shared_has_room(uint64_t reserved, uint32_t words, bool nested);

#endif
