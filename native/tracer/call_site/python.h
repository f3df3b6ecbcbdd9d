/* SPDX-License-Identifier: MIT */
/* python.h - the functions of Python that the calling thread is in, as its own interpreter has them. */
/*
 * While a thread waits, or does anything else that is traced, the chain of its frames does not change: nobody else may touch
 * it. Nothing of it is believed: each word is read only where memory is, a code object must be one by its type. In doubt the
 * interpreter's own functions stay in the stack.
 *
 * One call of the interpreter's evaluation function runs one function of Python, or since 3.11 several. Which functions a call
 * runs is found by an address: since 3.11 the call has something on its stack that the chain of frames leads to.
 */
#ifndef PTT_PYTHON_H
#define PTT_PYTHON_H

#include "reach.h"
#include "origin/call_site.h"

/* The functions that the frames of C have not come to yet; all of it the walk's own. */
struct ptt_python {
	struct ptt_reach frames, codes;
	uintptr_t frame;  /* the innermost function; 0: there is none left */
	uintptr_t call;	  /* where a version has it so, what the interpreter's call keeps on its stack */
	uintptr_t marker; /* an address in the frame of the interpreter's call that runs it; 0: known by its function */
	bool bad;	  /* something is not as it must be */
};

/*
 * ptt_python_begin - the functions that the calling thread is in
 * @reach: what can be read of its stack
 * @read: where the words are to be listed by which, and by ptt_python_state(), the functions are found; or NULL
 * Return: false if there are none. Safe in signal handlers, as are all of these.
 */
bool ptt_python_begin(struct ptt_python *p, const struct ptt_reach *reach, struct ptt_words_read *read)
	__attribute__((visibility("hidden")));

/* ptt_python_state - where the interpreter keeps what it knows of the calling thread; 0: it knows nothing. */
uintptr_t ptt_python_state(void) __attribute__((visibility("hidden")));

/* ptt_python_is_run_by - is it the frame of C from @low to @high, which is at @pc, that runs the next functions? */
bool ptt_python_is_run_by(const struct ptt_python *p, uintptr_t low, uintptr_t high, uintptr_t pc)
	__attribute__((visibility("hidden")));

/* ptt_python_run - the functions of one call of the interpreter, at most @room. Return: how many; look at @p->bad. */
uint32_t ptt_python_run(struct ptt_python *p, uint64_t *frame, uint32_t room, ptt_number_python_code *number)
	__attribute__((visibility("hidden")));

/* ptt_python_has - does code at @pc belong to a module that is nothing but the interpreter? */
bool ptt_python_has(uintptr_t pc) __attribute__((visibility("hidden")));

/* An interpreter was found when the program began. */
extern bool ptt_has_python __attribute__((visibility("hidden")));

#endif
