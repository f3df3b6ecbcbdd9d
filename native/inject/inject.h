/* SPDX-License-Identifier: MIT */
/* inject.h - has a process that runs make a thread of its own, which loads a library and calls a function of it. */
/*
 * One thread of the process is stopped for that, which must be asleep in a system call outside of all locks of the C
 * library: it maps memory for a few instructions, and runs them when it is let go. They save what the thread has in its
 * registers, call pthread_create(), and go back to the system call by rt_sigreturn(), as from a signal handler; the thread
 * sleeps on. All signals are blocked meanwhile. A process apart stops it, which shares the caller's memory and goes on should
 * the caller be killed; when the thread has been let go it helps itself.
 *
 * The new thread blocks all signals but the C library's own, loads the library and calls its function, which gets a text.
 * If that returns anything but 0, the thread unmaps the memory.
 */
#ifndef PTT_INJECT_H
#define PTT_INJECT_H

#include <stdint.h>

#define PTT_INJECT_API __attribute__((visibility("default")))
#define PTT_INJECT_ABI 1

/* status of what was begun, in struct ptt_injected */
#define PTT_INJECT_BEGUN 0u
#define PTT_INJECT_CREATED 1u  /* the thread is there; error has what pthread_create() returned, if that is not 0 */
#define PTT_INJECT_LOADED 2u   /* the function is called */
#define PTT_INJECT_REFUSED 3u  /* the library could not be loaded: text says why */
#define PTT_INJECT_RETURNED 4u /* the function has returned */

struct ptt_inject {
	int32_t pid;
	int32_t tid;	    /* the thread that is to be stopped */
	uint64_t number;    /* the system call that it sleeps in, */
	uint64_t pc;	    /* where it does so, */
	uint64_t sp;	    /* its stack, */
	uint64_t fp;	    /* and its frame pointer, 0 if any will do: a thread with other values is left alone */
	/* functions of the process's C library */
	uint64_t create;
	uint64_t detach;
	uint64_t dlopen;
	uint64_t dlsym;
	uint64_t dlerror;
	uint64_t munmap;
	const char *library;
	const char *function;
	const char *text;
};

/* What functions keep for their callers, of a thread that was stopped. */
struct ptt_kept {
	uint64_t rbx, rbp, r12, r13, r14, r15;
};

/* What became of it. */
struct ptt_injected {
	uint64_t memory; /* where the memory is; 0 = there is none */
	uint64_t size;
	uint64_t stopped_ns; /* how long the thread was stopped */
	uint32_t status;
	int32_t error;
	char text[256];
};

/* ptt_inject_abi - PTT_INJECT_ABI. */
PTT_INJECT_API uint32_t ptt_inject_abi(void);

/*
 * ptt_inject - have it done
 * Return: 0 once the thread has been let go to do it; -EAGAIN if the thread is not where it was, and nothing was changed;
 * -EPERM, -ESRCH as ptrace() has them; -EBUSY if the thread did not stop in seconds: then it will be let go when this process
 * ends; -ENOTSUP on this processor. Blocks for milliseconds, with all signals blocked.
 */
PTT_INJECT_API int ptt_inject(const struct ptt_inject *wanted, struct ptt_injected *done);

/*
 * ptt_inject_registers - stop a thread just to see what it has in its registers
 * @wanted: the thread, and where it is
 * Return: as ptt_inject().
 */
PTT_INJECT_API int ptt_inject_registers(const struct ptt_inject *wanted, struct ptt_kept *kept);

/* ptt_injected_look - see how far it has come. Return: 0, or -errno if the process's memory cannot be read. */
PTT_INJECT_API int ptt_injected_look(int32_t pid, struct ptt_injected *done);

#endif
