/* SPDX-License-Identifier: MIT */
/* agent.h - the agent's thread in an attached process, and how it makes way for a call. */
#ifndef PTT_AGENT_H
#define PTT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tracer.h"

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

#endif
