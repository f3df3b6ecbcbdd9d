/* SPDX-License-Identifier: MIT */
/* remembered_stack.h - stacks as they were found last, each with the words that it was found by. */
/*
 * A walk is decided by the words that it reads. Where all these words are as they were, the stack is the same as then, and need be
 * neither walked nor numbered again. A thread that waits again and again at the same place has few such stacks.
 */
#ifndef PTT_REMEMBERED_STACK_H
#define PTT_REMEMBERED_STACK_H

#include <stdint.h>

/* Enough words for stacks of the usual depth; longer stacks are not remembered. A function of Python takes up to 40 words. */
#define PTT_REMEMBERED_WORDS_OF_C 88u
#define PTT_REMEMBERED_WORDS_OF_PYTHON 1024u
#define PTT_REMEMBERED_STACKS 256u /* of all threads; by a hash of the place on the stack */

struct ptt_word_read {
	uintptr_t at, value;
};

/* A list of words that are read in a walk. */
struct ptt_words_read {
	struct ptt_word_read *word;
	uint32_t count, room; /* once there is no more room, @count is beyond it */
};

/* What a stack was found by. One thread at a time has it, by @busy. */
struct ptt_remembered_stack {
	uint32_t busy;
	uint32_t number; /* 0: nothing is remembered here */
	uintptr_t frame, thread, site, state;
	const void *session;
	uint64_t closing;
	uint32_t words_of_c, words_of_python;
	struct ptt_word_read of_c[PTT_REMEMBERED_WORDS_OF_C];
	struct ptt_word_read of_python[PTT_REMEMBERED_WORDS_OF_PYTHON];
};

#endif
