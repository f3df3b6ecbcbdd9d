/* SPDX-License-Identifier: MIT */
/* retired.h - memory of sessions that the process has left: given back once no thread can come back to it. */
/*
 * A thread goes on with its entry of the session in which it wrote last, until its next event sends it to another one. So a
 * segment that was left stays mapped as long as a thread lives that had an entry there, and has none of a later session.
 * A signal handler may have sent a thread on that was just writing: nothing is unmapped before it was found unused at the
 * beginning of two sessions.
 */
#ifndef PTT_RETIRED_H
#define PTT_RETIRED_H

#include <stdbool.h>

#include "session.h"

/* ptt_retired_note - the session is being left: remember which threads have entries, before the collector clears them. */
void ptt_retired_note(struct ptt_segment *segment) __attribute__((visibility("hidden")));

/*
 * ptt_retired_add - another session is about to be joined: private memory takes the place of the one that was left
 * By one thread at a time. Makes system calls. Return: false if there is no memory for that; then nothing has changed.
 */
bool ptt_retired_add(struct ptt_segment *segment) __attribute__((visibility("hidden")));

#endif
