/* SPDX-License-Identifier: MIT */
/* team.c - where the threads of a team are: at work, at the barrier, or in the pool. */
/*
 * No function says when a thread of a pool waits and when it goes on. It is reported to wait for a condition, which the thread that
 * begins the next work broadcasts, and to have come to the barrier at the end of the work without waiting there. What stands for
 * barrier and pool are addresses in the storage of the thread that begins the work, whose pool it is in libgomp.
 */
#include "team.h"

#include "lock_state.h"
#include "lock_types.h"
#include "wait.h"
#include "origin/call_site.h"

#define DEPTH 4u

bool ptt_teams_by_ompt;

static const struct ptt_lock_function pool_function = {.domain = NPTL_DOMAIN_COND, .type = PTT_LOCK_TYPE_TEAM_POOL};

static uint32_t idle_threads; /* of all pools; threads that ended in a pool are counted, too */

/* What the thread has begun, one inside the other. */
static __thread struct ptt_team begun[DEPTH] INITIAL_EXEC;
static __thread uint32_t depth INITIAL_EXEC;
static __thread char own_pool INITIAL_EXEC;

/* What it has joined, and since when it waits at the barrier of that. */
static __thread struct ptt_team *joined INITIAL_EXEC;
static __thread uint64_t joined_since INITIAL_EXEC;

static __thread struct ptt_wait idle INITIAL_EXEC; /* object NULL: it is not */

/* What it reports at the moment belongs to the call that began the work, which is no call of its own. */
static __thread bool of_other_thread INITIAL_EXEC;

static struct ptt_team too_deep; /* stands for all that have no place */

bool ptt_is_of_other_thread(void)
{
	return of_other_thread;
}

static void tell_type(const struct ptt_lock_function *function, const void *object, void *site)
{
	const struct ptt_lock_used used = {.function = function, .object = object, .site = site};

	ptt_report_type_once(&used);
}

struct ptt_team *ptt_team_begin(const struct ptt_lock_function *function, void *site)
{
	struct ptt_team *team;

	if (depth++ >= DEPTH)
		return &too_deep;
	team = &begun[depth - 1];
	*team = (struct ptt_team){.function = function, .pool = &own_pool, .site = site};
	/* relaxed: whether anybody is there to hear it is a guess */
	if (__atomic_load_n(&idle_threads, __ATOMIC_RELAXED))
		REPORT(COND, COND_BROADCAST, &own_pool, site);
	return team;
}

bool ptt_team_is_mine(void)
{
	return depth != 0;
}

/* The team that the thread works in, and since when it waits at its barrier. */
static struct ptt_team *team_now(uint64_t **since)
{
	struct ptt_team *team = joined;

	*since = &joined_since;
	if (depth) {
		team = depth <= DEPTH ? &begun[depth - 1] : &too_deep;
		*since = &team->since;
	}
	return team && team->pool ? team : NULL;
}

bool ptt_team_wait(void *site)
{
	uint64_t *since;
	struct ptt_team *team = team_now(&since);

	if (!team || !ptt_level(NPTL_DOMAIN_BARRIER))
		return false;
	tell_type(team->function, team, team->site);
	EMIT(BARRIER, BARRIER_WAIT_IN, team, site);
	*since = ptt_now_ns();
	return true;
}

void ptt_team_waited(void *site)
{
	uint64_t *since;
	struct ptt_team *team = team_now(&since);

	if (!team || !*since)
		return;
	REPORT_WITH(BARRIER, BARRIER_WAIT_OUT, barrier_wait_out, team, site, .result = 0, .wait_ns = ptt_now_ns() - *since);
	*since = 0;
}

void ptt_team_end(void)
{
	if (depth <= DEPTH)
		ptt_team_waited(begun[depth - 1].site);
	depth--;
}

static void end_idle(void)
{
	if (!idle.object)
		return;
	of_other_thread = true;
	ptt_wait_end(&idle);
	of_other_thread = false;
	idle.object = NULL;
	__atomic_fetch_sub(&idle_threads, 1, __ATOMIC_RELAXED); /* as above */
}

void ptt_team_join(struct ptt_team *team)
{
	end_idle();
	joined = team;
	joined_since = 0;
}

static void begin_idle(const struct ptt_team *team)
{
	if (!ptt_level(NPTL_DOMAIN_COND))
		return;
	tell_type(&pool_function, team->pool, team->site);
	EMIT_WITH(COND, COND_WAIT_IN, cond_wait_in, team->pool, team->site, .mutex = ptt_ptr48(NULL));
	idle = ptt_begin_wait(NPTL_DOMAIN_COND, NPTL_EV_COND_WAIT_OUT, team->pool, team->site);
	idle.result = 0;
	__atomic_fetch_add(&idle_threads, 1, __ATOMIC_RELAXED); /* as above */
}

void ptt_team_leave(void)
{
	struct ptt_team *team = joined;

	joined = NULL;
	if (!team || !team->pool)
		return;
	of_other_thread = true;
	tell_type(team->function, team, team->site);
	REPORT(BARRIER, BARRIER_ARRIVE, team, team->site);
	begin_idle(team);
	of_other_thread = false;
}

void ptt_forget_teams(void)
{
	idle_threads = 0;
}

/* ------------------------------------------------------------ functions that run others */

/*
 * A function such as GOMP_parallel() has another function run by several threads. It is given a function of ours instead, which
 * calls the program's: so the tracer knows when each of the threads begins with its part and has done it.
 */
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

static void run_part(void *data)
{
	const struct part *part = data;

	if (part->first == (uintptr_t)pthread_self()) {
		part->run(part->data);
		ptt_team_wait(part->site);
	} else {
		ptt_team_join(part->team);
		part->run(part->data);
		ptt_team_leave();
	}
}

/* @arguments: hold the function, and behind it the argument that it is called with. */
long ptt_team_run(const struct ptt_lock_function *function, long *arguments, void (*real)(void), void *site)
{
	long *given = &arguments[function->object];
	struct part part = {.run = *(void (**)(void *))(void *)&given[0], .data = (void *)given[1], .site = site, .first = (uintptr_t)pthread_self()};
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
