/* SPDX-License-Identifier: MIT */
/* schedstat.h - what the kernel says of the calling thread's time without a processor. Safe in signal handlers, keeps errno. */
#ifndef PTT_SCHEDSTAT_H
#define PTT_SCHEDSTAT_H

#include <stdbool.h>
#include <stdint.h>

struct ptt_run_times {
	uint64_t ran; /* ns */
	uint64_t ready; /* ns, without a processor */
	uint64_t slices;
};

/* ptt_schedstat_read - fill in all but @ran. May open the file. Return: false if the file cannot be had. */
bool ptt_schedstat_read(struct ptt_run_times *times) __attribute__((visibility("hidden")));

/* ptt_schedstat_is_refused - the file cannot be had as long as the thread lives. */
bool ptt_schedstat_is_refused(void) __attribute__((visibility("hidden")));

/* ptt_schedstat_note_loss - the thread has lost its processor in a wait, or with a lock held. */
void ptt_schedstat_note_loss(void) __attribute__((visibility("hidden")));

/* ptt_schedstat_begin_thread, _end_thread - the calling thread has got an entry; it gives its entry back. */
void ptt_schedstat_begin_thread(void) __attribute__((visibility("hidden")));
void ptt_schedstat_end_thread(void) __attribute__((visibility("hidden")));

/* ptt_schedstat_forget_parent - in the child of a fork: close what the threads of the parent had open. */
void ptt_schedstat_forget_parent(void) __attribute__((visibility("hidden")));

#endif
