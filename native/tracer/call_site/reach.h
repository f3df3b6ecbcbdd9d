/* SPDX-License-Identifier: MIT */
/* reach.h - the memory above a stack pointer that a walk up the stack may read. */
/*
 * A thread's own stack reaches from the stack pointer up to the thread's control block, or to the first thread's
 * arguments. The walk asks the kernel once for each page and thread. Other stacks, of coroutines and of signal
 * handlers, come and go: the walk asks the kernel about each page in each walk. A program that has given up system
 * calls asks nothing. There the walk reads the thread's own stack in its created size, and no other stack.
 */
#ifndef PTT_REACH_H
#define PTT_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/remembered_stack.h"

struct ptt_reach {
	uintptr_t low, high; /* the part of the thread's own stack that is known to be mapped */
	uintptr_t page;	     /* elsewhere: the last page that is known to be mapped; 1: none */

	struct ptt_words_read *read; /* a list for the words that the walk reads, or NULL */
};

#define PTT_REACH_PAGE ((uintptr_t)4096)

/*
 * ptt_reach_from - the readable memory from @sp up; @sp itself is readable. Calls no libc function; makes one system
 * call for each new page.
 */
struct ptt_reach ptt_reach_from(uintptr_t sp) __attribute__((visibility("hidden")));

/* ptt_reach_page - is the page of @address mapped? Asks the kernel; false if the program has given up system calls. */
bool ptt_reach_page(struct ptt_reach *reach, uintptr_t address) __attribute__((visibility("hidden"), cold, noinline));

/*
 * ptt_can_read - are all pages of the @size bytes at @begin mapped? Makes one system call for each page; keeps errno.
 * True if the program has given up system calls.
 */
bool ptt_can_read(const void *begin, size_t size) __attribute__((visibility("hidden")));

/* ptt_reaches - can the word at @address, a multiple of its size, be read? */
static inline bool ptt_reaches(struct ptt_reach *reach, uintptr_t address)
{
	if (__builtin_expect(address >= reach->low && address < reach->high, 1))
		return true;
	return (address & ~(PTT_REACH_PAGE - 1)) == reach->page || ptt_reach_page(reach, address);
}

/* ptt_note_read - list a word that the walk has read. */
static inline void ptt_note_read(struct ptt_words_read *read, uintptr_t at, uintptr_t value)
{
	if (!read)
		return;
	if (read->count < read->room)
		read->word[read->count] = (struct ptt_word_read){.at = at, .value = value};
	if (read->count <= read->room)
		read->count++;
}

/* ptt_read_unlisted - unlisted words decide the walk, too: the list is no longer complete. */
static inline void ptt_read_unlisted(struct ptt_words_read *read)
{
	if (read)
		read->count = read->room + 1;
}

/* For functions that read whole stacks: sanitizers put red zones between variables. */
#define PTT_UNWATCHED __attribute__((no_sanitize_address, no_sanitize_thread))

/* ptt_peek - read a word of the stack, and list it. Return: false if @at is not aligned or not readable. */
static inline __attribute__((always_inline)) PTT_UNWATCHED bool ptt_peek(struct ptt_reach *reach, uintptr_t at, uintptr_t *word)
{
	if (at % sizeof(*word) || !ptt_reaches(reach, at))
		return false;
	*word = *(const uintptr_t *)at;
	ptt_note_read(reach->read, at, *word);
	return true;
}

#endif
