/* SPDX-License-Identifier: MIT */
/* reach.h - which memory above a stack pointer can be read: a walk up the stack looks at nothing else. */
/*
 * From the stack pointer up to the thread's own control block, or to where the kernel put the first thread's arguments, all
 * is one stack. That is looked at once for each page and thread. Other stacks, of coroutines and of signal handlers, come
 * and go: of these the kernel is asked about each page in each walk. A program that has given up system calls asks
 * nothing: there a thread's stack is there as far as it was given one, and others are not looked at.
 */
#ifndef PTT_REACH_H
#define PTT_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/remembered_stack.h"

struct ptt_reach {
	uintptr_t low, high; /* of the thread's own stack, as far as it is known to be there */
	uintptr_t page;	     /* elsewhere: the page that was found last; 1: none */

	struct ptt_words_read *read; /* where words that are read are to be listed, or NULL */
};

#define PTT_REACH_PAGE ((uintptr_t)4096)

/* ptt_reach_from - what can be read from @sp on, which itself can. No libc call; one system call a new page. */
struct ptt_reach ptt_reach_from(uintptr_t sp) __attribute__((visibility("hidden")));

/* ptt_reach_page - is the page of @address there? Asks the kernel, unless the program has given up system calls. */
bool ptt_reach_page(struct ptt_reach *reach, uintptr_t address) __attribute__((visibility("hidden"), cold, noinline));

/*
 * ptt_can_read - are all pages of the @size bytes at @begin there? One system call a page; errno stays. A program that has given
 * up system calls is believed to have them.
 */
bool ptt_can_read(const void *begin, size_t size) __attribute__((visibility("hidden")));

/* ptt_reaches - can the word at @address, a multiple of its size, be read? */
static inline bool ptt_reaches(struct ptt_reach *reach, uintptr_t address)
{
	if (__builtin_expect(address >= reach->low && address < reach->high, 1))
		return true;
	return (address & ~(PTT_REACH_PAGE - 1)) == reach->page || ptt_reach_page(reach, address);
}

/* ptt_note_read - list a word that has been read. */
static inline void ptt_note_read(struct ptt_words_read *read, uintptr_t at, uintptr_t value)
{
	if (!read)
		return;
	if (read->count < read->room)
		read->word[read->count] = (struct ptt_word_read){.at = at, .value = value};
	if (read->count <= read->room)
		read->count++;
}

/* ptt_read_unlisted - from here on, words that are not listed decide the walk, too. */
static inline void ptt_read_unlisted(struct ptt_words_read *read)
{
	if (read)
		read->count = read->room + 1;
}

/* Of functions that read stacks as they lie there, also where a sanitizer has put bounds between variables. */
#define PTT_UNWATCHED __attribute__((no_sanitize_address, no_sanitize_thread))

/* ptt_peek - read a word of the stack, if it is one. */
static inline __attribute__((always_inline)) PTT_UNWATCHED bool ptt_peek(struct ptt_reach *reach, uintptr_t at, uintptr_t *word)
{
	if (at % sizeof(*word) || !ptt_reaches(reach, at))
		return false;
	*word = *(const uintptr_t *)at;
	ptt_note_read(reach->read, at, *word);
	return true;
}

#endif
