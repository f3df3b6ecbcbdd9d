/* SPDX-License-Identifier: MIT */
/* team_run.c - a function that has another one run by several threads, as GOMP_parallel(). */
/*
 * The library is given a function of ours instead, which calls the program's: so the tracer knows when each of the threads
 * begins with its part and has done it.
 */
#include "team.h"

typedef long run_fn(long a, long b, long c, long d, long e, long f, long g, long h);

struct part {
	void (*run)(void *data);
	void *data;
	struct ptt_team *team;
	void *site;
	uintptr_t first; /* thread */
};

/* Where the seventh argument and the eighth are, behind those in registers. */
#if defined(__x86_64__)
#define BEHIND 8 /* the stack's; before them lie the entry's frame pointer and the address that it returns to */
#else
#define BEHIND 6
#endif

/* Most functions have fewer than eight, and then it is whatever lies there. */
__attribute__((no_sanitize_address)) long ptt_team_run_plainly(const long *a, void (*real)(void))
{
	return ((run_fn *)real)(a[0], a[1], a[2], a[3], a[4], a[5], a[BEHIND], a[BEHIND + 1]);
}

static uintptr_t self(void)
{
	return (uintptr_t)pthread_self();
}

static void run_part(void *data)
{
	const struct part *part = data;

	if (part->first == self()) {
		part->run(part->data);
		ptt_team_wait(part->site);
	} else {
		ptt_team_join(part->team);
		part->run(part->data);
		ptt_team_leave();
	}
}

/* @arguments: the function is one of them, and what it is called with the next one. */
long ptt_team_run(const struct ptt_lock_function *function, long *arguments, void (*real)(void), void *site)
{
	long *given = &arguments[function->object];
	struct part part = {.run = *(void (**)(void *))(void *)&given[0], .data = (void *)given[1], .site = site, .first = self()};
	void (*ours)(void *) = run_part;
	long result;

	if (ptt_teams_by_ompt)
		return ptt_team_run_plainly(arguments, real);
	part.team = ptt_team_begin(function, site);
	given[0] = (long)(uintptr_t)ours;
	given[1] = (long)&part;
	result = ptt_team_run_plainly(arguments, real);
	ptt_team_end();
	return result;
}
