/* SPDX-License-Identifier: MIT */
/* python.h - the calling thread's stack of Python functions, read from the interpreter's memory. */
/*
 * While a thread is in a traced function, the chain of its frames does not change: no other thread may change it. But
 * the reader trusts nothing: it reads a word only if the memory is mapped, and checks the type of each code object.
 * In doubt the interpreter's own functions stay in the stack.
 *
 * One call of the interpreter's evaluation function runs one function of Python; since 3.11 it may run several. Since
 * 3.11 the call keeps data on its own stack, and the chain of frames refers to that data. The address of the data
 * tells which functions the call runs.
 */
#ifndef PTT_PYTHON_H
#define PTT_PYTHON_H

#include "reach.h"
#include "origin/call_site.h"

/* The functions that the walk of C frames has not reached yet. Each walk has its own struct. */
struct ptt_python {
	struct ptt_reach frames, codes;
	uintptr_t frame;  /* of the innermost function that is left; 0: none is left */
	uintptr_t call;	  /* 3.11: the data that the interpreter's call keeps on its stack */
	uintptr_t marker; /* an address in the C frame of the call that runs the function; 0: the C function tells */
	bool bad;	  /* a check failed */
};

/*
 * ptt_python_begin - begin with the innermost function of the calling thread
 * @reach: the readable part of its stack
 * @read: a list for the words that, with ptt_python_state(), decide the result; or NULL
 * Return: false if the thread runs no function of Python. Safe in signal handlers, as are the functions below.
 */
bool ptt_python_begin(struct ptt_python *p, const struct ptt_reach *reach, struct ptt_words_read *read)
	__attribute__((visibility("hidden")));

/* ptt_python_state - address of the interpreter's PyThreadState of the calling thread; 0: the thread has no state. */
uintptr_t ptt_python_state(void) __attribute__((visibility("hidden")));

/* ptt_python_is_run_by - does the C frame from @low to @high, at @pc, run the next functions? */
bool ptt_python_is_run_by(const struct ptt_python *p, uintptr_t low, uintptr_t high, uintptr_t pc)
	__attribute__((visibility("hidden")));

/* ptt_python_run - store the functions of one call of the interpreter, at most @room. Return: their count; check @p->bad. */
uint32_t ptt_python_run(struct ptt_python *p, uint64_t *frame, uint32_t room, ptt_number_python_code *number)
	__attribute__((visibility("hidden")));

/* ptt_python_has - does @pc lie in a module that contains only the interpreter? */
bool ptt_python_has(uintptr_t pc) __attribute__((visibility("hidden")));

/* The process had an interpreter when tracing began. */
extern bool ptt_has_python __attribute__((visibility("hidden")));

#endif
