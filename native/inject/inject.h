/* SPDX-License-Identifier: MIT */
/* inject.h - makes a running process create a thread that loads a library and calls a function of the library. */
/*
 * Injection stops one thread of the process (ptrace(2)). The thread must sleep in a system call and hold no lock of
 * the C library. The thread maps memory for a few instructions and runs them when it continues. The instructions save
 * the registers and call pthread_create(). They go back to the system call by rt_sigreturn(2), as a signal handler
 * does, and the thread sleeps on. All signals are blocked meanwhile. A helper process stops the thread. It shares the
 * caller's memory and continues if the caller is killed. Once the thread continues, it needs no more help.
 *
 * The new thread blocks all signals but the C library's own. It loads the library and passes a text to the function.
 * If the function returns anything but 0, the thread unmaps the memory.
 */
#ifndef PTT_INJECT_H
#define PTT_INJECT_H

#include <stdint.h>

#define PTT_INJECT_API __attribute__((visibility("default")))
#define PTT_INJECT_ABI 1

/* status in struct ptt_injected: how far the injection is */
#define PTT_INJECT_BEGUN 0u
#define PTT_INJECT_CREATED 1u  /* pthread_create() has returned; error is its result, 0 if the thread exists */
#define PTT_INJECT_LOADED 2u   /* the library is loaded; the function runs */
#define PTT_INJECT_REFUSED 3u  /* the library cannot be loaded; text says why */
#define PTT_INJECT_RETURNED 4u /* the function has returned */

struct ptt_inject {
	int32_t pid;
	int32_t tid;	    /* the thread to stop; left alone if it is not where the next four fields say */
	uint64_t number;    /* of the system call that the thread sleeps in */
	uint64_t pc;	    /* of the thread: the instruction behind that system call */
	uint64_t sp;	    /* of the thread: stack pointer */
	uint64_t fp;	    /* of the thread: frame pointer; 0: any */
	/* addresses of functions of the process's C library */
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

/* Registers of a stopped thread that functions preserve for their callers (System V ABI for x86-64, 3.2.1). */
struct ptt_kept {
	uint64_t rbx, rbp, r12, r13, r14, r15;
};

/* The result of an injection. */
struct ptt_injected {
	uint64_t memory; /* address of the memory; 0: no memory */
	uint64_t size;
	uint64_t stopped_ns; /* for how long the thread was stopped */
	uint32_t status;
	int32_t error;
	char text[256];
};

/* ptt_inject_abi - Return: PTT_INJECT_ABI. */
PTT_INJECT_API uint32_t ptt_inject_abi(void);

/*
 * ptt_inject - have a thread of the process create the new thread
 * @wanted: the process, the thread to stop, the functions, the library
 * @done: filled in; memory, size and stopped_ns are final, status is not: see ptt_injected_look()
 * Return: 0 once the thread continues and runs the instructions; -EAGAIN if the thread is no longer where @wanted
 * says, and nothing was changed; -EPERM, -ESRCH as ptrace(2); -EBUSY if the thread did not stop within 10 seconds:
 * the kernel lets it continue when the calling process ends; -ENAMETOOLONG if a text of @wanted is too long; -ENOTSUP
 * on processors other than x86-64. Blocks for milliseconds, with all signals blocked. Allocates a stack with mmap(2).
 */
PTT_INJECT_API int ptt_inject(const struct ptt_inject *wanted, struct ptt_injected *done);

/*
 * ptt_inject_registers - read the registers of a thread: stop the thread, and let it continue
 * @wanted: the thread, and where it must be; the functions and texts are not used
 * Return: as ptt_inject().
 */
PTT_INJECT_API int ptt_inject_registers(const struct ptt_inject *wanted, struct ptt_kept *kept);

/*
 * ptt_injected_look - fill in status, error and text of @done. Return: 0, or -errno if the process's memory cannot be
 * read.
 */
PTT_INJECT_API int ptt_injected_look(int32_t pid, struct ptt_injected *done);

#endif
