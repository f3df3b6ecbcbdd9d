/* SPDX-License-Identifier: MIT */
/* remembered_stack.h - stacks that were found before, each with the words that the walk read. */
/*
 * The words that a walk reads decide its result. If all these words are unchanged, the stack is unchanged too and needs no
 * new walk and no new number. A thread that waits again and again at the same place has few such stacks.
 */
#ifndef PTT_REMEMBERED_STACK_H
#define PTT_REMEMBERED_STACK_H

#include <stdint.h>

/* Enough words for stacks of the usual depth; longer stacks are not remembered. A function of Python takes up to 40 words. */
#define PTT_REMEMBERED_WORDS_OF_C 88u
#define PTT_REMEMBERED_WORDS_OF_PYTHON 1024u
#define PTT_REMEMBERED_STACKS 256u /* for all threads; the index is a hash of the place on the stack */

struct ptt_word_read {
	uintptr_t at, value;
};

/* The words that a walk has read. */
struct ptt_words_read {
	struct ptt_word_read *word;
	uint32_t count, room; /* @count is larger than @room if the room was too small */
};

/* A stack and the words that led to it. @busy gives it to one thread at a time. */
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
