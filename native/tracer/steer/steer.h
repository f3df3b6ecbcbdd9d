/* SPDX-License-Identifier: MIT */
/* steer.h - holds threads back before they take locks, as a plan says: for ptt confirm and ptt explore. */
/*
 * Without a plan, nothing here runs. With a plan, two functions stand before the functions of the handler: a function that is
 * called before each lock is tried, and a function that receives the events. ptt_abi.h has the layout of the plan.
 *
 * No thread is held back in a signal handler that the stack shows, while it holds a spin lock, with a real-time policy, in a
 * program that has given up system calls, or before a lock that it holds already. A delay is a wait for a futex or for time. It
 * is no cancellation point, keeps errno, and lets signal handlers run.
 */
#ifndef PTT_STEER_H
#define PTT_STEER_H

#include "tracer.h"

#if PTT_UNWINDS
/*
 * ptt_steer_open - map the plan that PTT_STEER names, if any. Call it before the handler is loaded: the handler gets another
 * place for its own function before locks. Makes system calls. Return: is there a plan?
 */
bool ptt_steer_open(void) HIDDEN;

/* ptt_steer_begin - after ptt_steer_open(), when the handler is loaded and before the first event: steer from now on. */
void ptt_steer_begin(void) HIDDEN;
#else
static inline bool ptt_steer_open(void) { return false; }
static inline void ptt_steer_begin(void) { }
#endif

/* ------------------------------------------------------------ meeting.c: threads that wait for each other, in the file of the plan */

/* A thread that comes to a site of the plan. */
struct ptt_arrival {
	uint64_t wanted; /* address of the lock that it asks for, or 0 */
	uint64_t held[PTT_STEER_HELD]; /* addresses of its locks */
	uint32_t held_count;
	uint32_t role; /* from 0 */
};

/*
 * ptt_meet - hold the calling thread back until the threads of the plan meet, at most for the patience of the plan
 *
 * The roles say how threads meet: see `meets` in struct ptt_steer_role. A role with `after` waits for ptt_meet_passed(). Makes system calls; takes no lock,
 * allocates nothing, keeps errno. Returns at once if all places are taken.
 * Return: true if they met.
 */
bool ptt_meet(struct ptt_steer *plan, const struct ptt_arrival *arrival) HIDDEN;

/*
 * ptt_meet_passed - a thread has passed a site, counted from 1: let the threads of its process go that wait for it. Otherwise as
 * ptt_meet().
 */
void ptt_meet_passed(struct ptt_steer *plan, uint32_t site) HIDDEN;

#endif
