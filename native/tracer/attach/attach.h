/* SPDX-License-Identifier: MIT */
/* attach.h - in an attached process: the agent's thread, calls that are led to the hooks, how memory is protected. */
#ifndef PTT_ATTACH_H
#define PTT_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include "tracer.h"

/* ------------------------------------------------------------ agent.c: the agent's thread, and how it makes way for a call */

/*
 * ptt_send_agent_away - have the agent's thread end, and block all signals of the calling thread
 * @mask: the signals that were blocked before
 * Calls are recorded as before meanwhile. Sleeps until the thread has ended, 2 s at most for each of its two steps.
 * Async-signal-safe.
 * Return: false if there is no agent, if another thread sends it away, or if it does not come to it; then nothing changed.
 */
bool ptt_send_agent_away(uint64_t *mask) HIDDEN;

/*
 * ptt_see_agent_off - wait for the end of the agent's thread, if it ends a recording
 * Sleeps until the kernel has no such thread, 2 s at most. Async-signal-safe.
 * Return: false if no agent's thread ends for good, or has ended.
 */
bool ptt_see_agent_off(void) HIDDEN;

/*
 * ptt_bring_agent_back - start another agent's thread, after ptt_send_agent_away() returned true
 * @mask: the signals to block afterwards
 * Creates a thread: takes locks of the C library, and may allocate. Where the kernel allows no thread, as after
 * unshare(CLONE_NEWPID), the calling thread ends the recording.
 */
void ptt_bring_agent_back(const uint64_t *mask) HIDDEN;

/* ------------------------------------------------------------ rebind.c: leads calls of the program to the hooks, and back, in a process whose modules were bound without them */

struct ptt_rebound {
	uint32_t modules; /* looked at */
	uint32_t calls;	  /* entries that lead to a hook now */
	uint32_t refused; /* that could not be changed */
};

/*
 * ptt_rebind - have the imported functions of all modules lead to the hooks, or to what is behind them
 * @hooked: to the hooks
 * @changed: only if modules have come or gone since the last time
 * By the one thread that does this. Waits for the lock of the dynamic linker, which is held meanwhile: no module comes or
 * goes, and none is half loaded. Others may call the functions all the time.
 * Return: false if nothing had changed.
 */
bool ptt_rebind(bool hooked, bool changed, struct ptt_rebound *done) HIDDEN;

/* ------------------------------------------------------------ protections.c: how the memory of the calling process is protected, as the kernel says it */

/*
 * ptt_protections_read - keep what /proc/thread-self/maps says now, until ptt_protections_forget(). Makes system calls, maps memory and
 * has a descriptor for a moment. One thread at a time; not for signal handlers.
 * Return: false if the file cannot be read, or if there is no memory.
 */
bool ptt_protections_read(void) HIDDEN;
void ptt_protections_forget(void) HIDDEN;

/* ptt_protection_of - the PROT_ bits at @address; -1 if nothing is mapped there. */
int ptt_protection_of(uintptr_t address) HIDDEN;

/* ptt_is_readable - are all @size bytes at @begin? */
bool ptt_is_readable(const void *begin, uint64_t size) HIDDEN;

#endif
