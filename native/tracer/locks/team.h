/* SPDX-License-Identifier: MIT */
/* team.h - threads that work together and meet at a barrier, as in a parallel region of OpenMP. */
/*
 * One thread begins the work and goes on when all have done their parts; the others are of a pool, and wait for more when they
 * have done theirs. A thread may begin work inside of other work. Nothing here blocks or allocates.
 */
#ifndef PTT_TEAM_H
#define PTT_TEAM_H

#include "lock_function.h"
#include "tracer.h"

struct ptt_team {
	const struct ptt_lock_function *function; /* that begins such work: says of which type the barrier is */
	const void *pool;			  /* stands for the other threads; NULL: nothing is reported of this team */
	void *site;				  /* where the work is begun */
	uint64_t since;				  /* the first thread waits at the barrier, or 0 */
};

/* ptt_team_begin - the calling thread is the first of a team. Return: the team, whose address is that of its barrier. */
struct ptt_team *ptt_team_begin(const struct ptt_lock_function *function, void *site) HIDDEN;
void ptt_team_end(void) HIDDEN; /* end the team that the thread began last; a wait for the others is over */

/* ptt_team_join - the calling thread, which is of the pool, begins with its part, */
void ptt_team_join(struct ptt_team *team) HIDDEN;
void ptt_team_leave(void) HIDDEN; /* has done it, and waits for more */

bool ptt_team_is_mine(void) HIDDEN; /* whether the calling thread is the first of the team that it works in */

/* ptt_team_wait - the calling thread waits at the barrier of its team. Return: whether it is in one. */
bool ptt_team_wait(void *site) HIDDEN;
void ptt_team_waited(void *site) HIDDEN;

void ptt_forget_teams(void) HIDDEN; /* in the child of a fork: the other threads are not there */

/*
 * ptt_team_run - calls a function that has another one run by several threads
 * @arguments: of the call, in memory as the entry of the stubs has put them there
 * @real: the function
 * Return: what it returns.
 */
long ptt_team_run(const struct ptt_lock_function *function, long *arguments, void (*real)(void), void *site) HIDDEN;

/* ptt_team_run_plainly - calls it as it is. */
long ptt_team_run_plainly(const long *arguments, void (*real)(void)) HIDDEN;

/* OpenMP's own interface for tools reports teams: what stubs see of them is the same once more. */
extern bool ptt_teams_by_ompt HIDDEN;

/* ptt_is_of_other_thread - what the calling thread reports now belongs to the call that began the work. */
bool ptt_is_of_other_thread(void) HIDDEN;

#endif
