/* SPDX-License-Identifier: MIT */
/* ompt.c - the teams of LLVM's OpenMP, by the standard's interface for tools (OMPT; OpenMP 5.0, chapter 4). */
/*
 * When it starts, the library calls ompt_start_tool() to get a tool. The tool requests no reports of locks and
 * critical sections: these have stubs.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "team.h"
#include "lock_types.h"

/* Declarations of the standard, without its header. */
enum { SCOPE_BEGIN = 1, SCOPE_END = 2 };
enum { SET_PARALLEL_BEGIN = 3, SET_PARALLEL_END = 4, SET_TASK_SCHEDULE = 6, SET_IMPLICIT_TASK = 7, SET_SYNC_REGION = 23 };
enum { TASK_IMPLICIT = 2 };
enum { TASK_COMPLETE = 1, TASK_CANCELLED = 3, TASK_DETACHED = 4, TASK_SWITCHED = 7 };
enum { BARRIER = 1, BARRIER_IMPLICIT, BARRIER_EXPLICIT, BARRIER_INSIDE, BARRIER_WORKSHARE = 8, BARRIER_PARALLEL = 9 };

union ompt_data {
	uint64_t value;
	void *ptr;
};
typedef void callback_fn(void);
typedef int set_callback_fn(int which, callback_fn *callback);
typedef callback_fn *lookup_fn(const char *name);
struct ompt_tool {
	int (*initialize)(lookup_fn *lookup, int device, union ompt_data *data);
	void (*finalize)(union ompt_data *data);
	union ompt_data data;
};

static const struct ptt_lock_function teams = {.domain = NPTL_DOMAIN_BARRIER, .type = PTT_LOCK_TYPE_OMP_BARRIER};

/*
 * The library waits for pthread conditions; these inner waits are a part of the reported wait. But a thread may run
 * tasks of the program meanwhile, and these are traced. @tasks: nested tasks that the thread runs; @waits: it waits
 * outside of all tasks.
 */
static __thread uint32_t tasks INITIAL_EXEC;
static __thread bool waits INITIAL_EXEC;

static void begin_wait(void)
{
	if (tasks || waits)
		return;
	waits = true;
	ptt_in_lock++;
}

static void end_wait(void)
{
	if (tasks || !waits)
		return;
	waits = false;
	ptt_in_lock--;
}

static void on_task_schedule(union ompt_data *before, int status, union ompt_data *next)
{
	(void)before;
	(void)next;
	if (status == TASK_SWITCHED && tasks++ == 0 && waits)
		ptt_in_lock--;
	else if ((status == TASK_COMPLETE || status == TASK_CANCELLED || status == TASK_DETACHED) && tasks && --tasks == 0 && waits)
		ptt_in_lock++;
}

static void on_parallel_begin(union ompt_data *task, const void *frame, union ompt_data *parallel, unsigned int threads,
			      int flags, void *site)
{
	(void)task;
	(void)frame;
	(void)threads;
	(void)flags;
	parallel->ptr = ptt_team_begin(&teams, site);
}

static void on_parallel_end(union ompt_data *parallel, union ompt_data *task, int flags, const void *site)
{
	(void)task;
	(void)flags;
	(void)site;
	end_wait();
	if (parallel->ptr)
		ptt_team_end();
}

/* Only the begin: the library reports the end of a part when the thread begins its next part. See is_end_of_part(). */
static void on_implicit_task(int scope, union ompt_data *parallel, union ompt_data *task, unsigned int threads,
			     unsigned int number, int flags)
{
	(void)task;
	(void)threads;
	if (scope != SCOPE_BEGIN || !number || !(flags & TASK_IMPLICIT) || !parallel || !parallel->ptr)
		return;
	end_wait();
	ptt_team_join(parallel->ptr);
}

/* At the end of its part, a thread of the pool reaches a barrier that no code of the program calls. */
static bool is_end_of_part(int kind, const void *site)
{
	return !ptt_team_is_mine() && (kind == BARRIER_PARALLEL || !site);
}

static void on_sync_region(int kind, int scope, union ompt_data *parallel, union ompt_data *task, void *site)
{
	(void)task;
	if (!parallel || !parallel->ptr)
		return;
	if (kind != BARRIER_PARALLEL && kind != BARRIER_WORKSHARE && (kind < BARRIER || kind > BARRIER_INSIDE))
		return;
	if (scope == SCOPE_END) {
		end_wait();
		ptt_team_waited(site);
		return;
	}
	if (is_end_of_part(kind, site))
		ptt_team_leave();
	else
		ptt_team_wait(site);
	begin_wait();
}

static int initialize(lookup_fn *lookup, int device, union ompt_data *data)
{
	set_callback_fn *set = (set_callback_fn *)lookup("ompt_set_callback");

	(void)device;
	(void)data;
	if (!set)
		return 0;
	set(SET_PARALLEL_BEGIN, (callback_fn *)on_parallel_begin);
	set(SET_PARALLEL_END, (callback_fn *)on_parallel_end);
	set(SET_TASK_SCHEDULE, (callback_fn *)on_task_schedule);
	set(SET_IMPLICIT_TASK, (callback_fn *)on_implicit_task);
	set(SET_SYNC_REGION, (callback_fn *)on_sync_region);
	ptt_teams_by_ompt = true;
	return 1;
}

static void finalize(union ompt_data *data)
{
	(void)data;
}

/* There can be only one tool: the user's tool and ThreadSanitizer's tool have priority. */
static bool is_ours(void)
{
	const char *libraries = getenv("OMP_TOOL_LIBRARIES");

	return !(libraries && *libraries) && !dlsym(RTLD_DEFAULT, "__tsan_func_entry");
}

struct ompt_tool *ompt_start_tool(unsigned int version, const char *runtime) EXPORT;
struct ompt_tool *ompt_start_tool(unsigned int version, const char *runtime)
{
	static struct ompt_tool ours = {.initialize = initialize, .finalize = finalize};
	void *next = dlsym(RTLD_NEXT, "ompt_start_tool");
	struct ompt_tool *theirs = NULL;

	if (next)
		theirs = (*(struct ompt_tool *(**)(unsigned int, const char *))(void *)&next)(version, runtime);
	return theirs || !is_ours() ? theirs : &ours;
}
