/* SPDX-License-Identifier: MIT */
/* attach.h - in an attached process: the agent's thread, redirection of calls to the hooks, protection of memory. */
#ifndef PTT_ATTACH_H
#define PTT_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include "tracer.h"

/* ------------------------------------------------------------ agent.c: the agent's thread, and its end for a call */

/*
 * ptt_send_agent_away - make the agent's thread end, and block all signals in the calling thread
 * @mask: the signals that were blocked before
 * Calls are still recorded meanwhile. Sleeps until the thread has ended; at most 2 s for each of two steps.
 * Async-signal-safe.
 * Return: false if there is no agent, if another thread sends it away, or if the agent does not react; then nothing
 * changed.
 */
bool ptt_send_agent_away(uint64_t *mask) HIDDEN;

/*
 * ptt_see_agent_off - if the agent's thread is ending its recording, wait for the end of the thread
 * Sleeps until the kernel no longer has the thread, at most 2 s. Async-signal-safe.
 * Return: false if no agent's thread is ending or has ended.
 */
bool ptt_see_agent_off(void) HIDDEN;

/*
 * ptt_bring_agent_back - start a new agent's thread, after ptt_send_agent_away() returned true
 * @mask: the signals to block afterwards
 * Creates a thread: takes locks of the C library, and may allocate. If the kernel refuses a thread, as after
 * unshare(CLONE_NEWPID), the calling thread ends the recording.
 */
void ptt_bring_agent_back(const uint64_t *mask) HIDDEN;

/* ------------------------------------------------------------ rebind.c: redirects calls to the hooks, and back */

struct ptt_rebound {
	uint32_t modules; /* examined modules */
	uint32_t calls;	  /* changed entries */
	uint32_t refused; /* entries and modules that could not be changed */
};

/*
 * ptt_rebind - redirect the imported functions of all modules to the hooks, or back to the real functions
 * @hooked: to the hooks
 * @changed: only if modules were loaded or closed since the last call
 * Only one thread may call this. Waits for the dynamic linker's lock and holds it, so no module is loaded or closed
 * meanwhile. Other threads may call the functions at any time.
 * Return: false if @changed, and no module was loaded or closed.
 */
bool ptt_rebind(bool hooked, bool changed, struct ptt_rebound *done) HIDDEN;

/* ------------------------------------------------------------ protections.c: the protection of memory, from the kernel */

/*
 * ptt_protections_read - read /proc/thread-self/maps, and keep its lines until ptt_protections_forget(). Makes system
 * calls, maps memory, and opens a descriptor for a moment. One thread at a time; not for signal handlers.
 * Return: false if the file cannot be read, or if there is no memory.
 */
bool ptt_protections_read(void) HIDDEN;
void ptt_protections_forget(void) HIDDEN;

/* ptt_protection_of - the PROT_* bits at @address; -1: nothing is mapped there. */
int ptt_protection_of(uintptr_t address) HIDDEN;

/* ptt_is_readable - are all @size bytes at @begin readable? */
bool ptt_is_readable(const void *begin, uint64_t size) HIDDEN;

#endif
