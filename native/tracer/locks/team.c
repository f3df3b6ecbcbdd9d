/* SPDX-License-Identifier: MIT */
/* team.c - the state of the threads of a team: at work, at the barrier, or in the pool. */
/*
 * No function tells when a thread of a pool waits and when it continues. Its wait is reported as a wait for a
 * condition, and the thread that begins the next work broadcasts the condition. At the end of the work, the thread is
 * reported to arrive at the barrier without a wait. Addresses in the thread-local storage of the first thread stand
 * for the barrier and for the pool; in libgomp the pool belongs to that thread.
 */
#include "team.h"

#include "lock_state.h"
#include "lock_types.h"
#include "wait.h"
#include "origin/call_site.h"

#define DEPTH 4u

bool ptt_teams_by_ompt;

static const struct ptt_lock_function pool_function = {.domain = NPTL_DOMAIN_COND, .type = PTT_LOCK_TYPE_TEAM_POOL};

static uint32_t idle_threads; /* of all pools, including threads that ended in a pool */

/* The teams that the thread has begun, nested. */
static __thread struct ptt_team begun[DEPTH] INITIAL_EXEC;
static __thread uint32_t depth INITIAL_EXEC;
static __thread char own_pool INITIAL_EXEC;

/* The team that the thread has joined, and the begin of its wait at the barrier. */
static __thread struct ptt_team *joined INITIAL_EXEC;
static __thread uint64_t joined_since INITIAL_EXEC;

static __thread struct ptt_wait idle INITIAL_EXEC; /* the wait in the pool; object NULL: no wait */

/* The present event belongs to the call that began the work, not to a call of this thread. */
static __thread bool of_other_thread INITIAL_EXEC;

static struct ptt_team too_deep; /* stands for all teams that are nested too deeply */

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
	/* relaxed: a guess whether any thread waits in a pool */
	if (__atomic_load_n(&idle_threads, __ATOMIC_RELAXED))
		REPORT(COND, COND_BROADCAST, &own_pool, site);
	return team;
}

bool ptt_team_is_mine(void)
{
	return depth != 0;
}

/* The team that the thread works in, and where the begin of its wait at the barrier is. */
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

/* ------------------------------------------------------------ functions that have threads run a function */

/*
 * A function such as GOMP_parallel() has several threads run a function of the program. The hook passes run_part()
 * instead, which calls the program's function. So the tracer knows when each thread begins and ends its part.
 */
typedef long run_fn(long a, long b, long c, long d, long e, long f, long g, long h);

struct part {
	void (*run)(void *data);
	void *data;
	struct ptt_team *team;
	void *site;
	uintptr_t first; /* pthread_t of the first thread */
};

/* Index of the seventh argument; the eighth follows. */
#if defined(__x86_64__)
#define BEHIND 8 /* on the stack, behind the entry's frame pointer and return address */
#else
#define BEHIND 6
#endif

/* Most functions have fewer than eight arguments; then the last values are arbitrary. */
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

/* The function to run and its argument are next to each other in @arguments. */
long ptt_team_run(const struct ptt_lock_function *function, long *arguments, void (*real)(void), void *site)
{
	long *run = &arguments[function->object];
	struct part part = {.run = *(void (**)(void *))(void *)&run[0], .data = (void *)run[1], .site = site, .first = (uintptr_t)pthread_self()};
	void (*ours)(void *) = run_part;
	long result;

	if (ptt_teams_by_ompt)
		return ptt_team_run_plainly(arguments, real);
	part.team = ptt_team_begin(function, site);
	run[0] = (long)(uintptr_t)ours;
	run[1] = (long)&part;
	result = ptt_team_run_plainly(arguments, real);
	ptt_team_end();
	return result;
}
