/* SPDX-License-Identifier: MIT */
/* team.h - teams: threads that share work and meet at a barrier, as in a parallel region of OpenMP. */
/*
 * The first thread begins the work and continues when all threads have done their parts. The other threads belong to
 * a pool, and wait there for more work. Work may be nested. No function here blocks or allocates, except that
 * ptt_team_run() runs functions of the program.
 */
#ifndef PTT_TEAM_H
#define PTT_TEAM_H

#include "lock_function.h"
#include "tracer.h"

struct ptt_team {
	const struct ptt_lock_function *function; /* the function that begins the work; it has the type of the barrier */
	const void *pool;			  /* an address that stands for the pool; NULL: the team is not reported */
	void *site;				  /* the call that begins the work */
	uint64_t since;				  /* begin of the first thread's wait at the barrier, in ns; 0: it does not wait */
};

/*
 * ptt_team_begin - the calling thread begins the work of a team. Return: the team; its address also stands for the
 * barrier.
 */
struct ptt_team *ptt_team_begin(const struct ptt_lock_function *function, void *site) HIDDEN;
void ptt_team_end(void) HIDDEN; /* end the thread's innermost team, and its wait for the others */

/* ptt_team_join - the calling thread, from the pool, begins its part. */
void ptt_team_join(struct ptt_team *team) HIDDEN;
void ptt_team_leave(void) HIDDEN; /* it has done its part, and waits in the pool */

bool ptt_team_is_mine(void) HIDDEN; /* is the calling thread the first thread of its team? */

/* ptt_team_wait - the calling thread waits at the barrier of its team. Return: false if the wait is not reported. */
bool ptt_team_wait(void *site) HIDDEN;
void ptt_team_waited(void *site) HIDDEN;

void ptt_forget_teams(void) HIDDEN; /* in the child of a fork, which has no other threads */

/*
 * ptt_team_run - call a function that has several threads run another function
 * @arguments: of the call, in memory as the entry of the stubs stored them
 * @real: the function
 * Return: the result of @real.
 */
long ptt_team_run(const struct ptt_lock_function *function, long *arguments, void (*real)(void), void *site) HIDDEN;

/* ptt_team_run_plainly - the same, without reports. */
long ptt_team_run_plainly(const long *arguments, void (*real)(void)) HIDDEN;

/* OpenMP's interface for tools reports the teams, so the stubs must not. */
extern bool ptt_teams_by_ompt HIDDEN;

/* ptt_is_of_other_thread - does the event that the calling thread reports now belong to the call that began the work? */
bool ptt_is_of_other_thread(void) HIDDEN;

#endif
