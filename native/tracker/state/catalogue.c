/* SPDX-License-Identifier: MIT */
/* catalogue.c - finds the meaning of each type of event by the role and the name of the type. */
#include "catalogue.h"

#include "nptl_trace_events.h"

struct tk_meaning tk_meanings[TK_IDS];

static const char *const field_names[TK_FIELDS] = {
	[TK_RESULT] = "result",	    [TK_WAIT_NS] = "wait_ns",	[TK_OWNER] = "owner",
	[TK_COUNT] = "count",	    [TK_VALUE] = "value",	[TK_SERIAL] = "serial",
	[TK_PTHREAD] = "pthread",  [TK_MUTEX] = "mutex",	    [TK_CREATOR] = "creator",	[TK_SHARED] = "shared",
	[TK_WRITE] = "write",	    [TK_CANCELLED] = "cancelled", [TK_ROUTINE] = "routine",
	[TK_START_ROUTINE] = "start_routine", [TK_DETACHED] = "detached", [TK_PURPOSE] = "purpose",
	[TK_KIND] = "kind",	    [TK_PROTOCOL] = "protocol", [TK_ROBUST] = "robust",
	[TK_PREFERENCE] = "preference", [TK_CLOCK] = "clock",	[TK_POLICY] = "policy",
	[TK_PRIORITY] = "priority", [TK_TIMED] = "timed",	[TK_CHILD] = "child",
	[TK_DEADLINE] = "deadline_ns", [TK_LOCK] = "lock",
	[TK_SLICES] = "slices",	    [TK_RAN] = "ran_ns",	[TK_READY] = "ready_ns",
	[TK_LOCK_TYPE] = "type",    [TK_CALL] = "call",	[TK_OP] = "op",
	[TK_TIMEOUT] = "timeout_ns", [TK_PPID] = "ppid",
};

/* Types with a meaning that differs from their role. */
static const struct {
	const char *name;
	enum tk_action action;
} by_name[] = {
	{ "THREAD_DETACH", TK_DETACH },
	{ "THREAD_PRIORITY", TK_PRIORITY_SET },
	{ "THREAD_CREATE_IN", TK_CREATE_IN },
	{ "THREAD_CREATE_OUT", TK_CREATE_OUT },
	{ "THRD_CREATE_IN", TK_CREATE_IN },
	{ "THRD_CREATE_OUT", TK_CREATE_OUT },
	{ "MUTEX_CONSISTENT", TK_CONSISTENT },
	/* a trace with such releases lacks others, and the acquisitions */
	{ "MUTEX_FREE_AWAITED", TK_RELEASE_AWAITED },
	{ "LLL_PURPOSE", TK_TYPE },
	{ "MUTEX_TYPE", TK_TYPE },
	{ "RWLOCK_TYPE", TK_TYPE },
	{ "COND_TYPE", TK_TYPE },
	{ "BARRIER_TYPE", TK_TYPE },
	{ "PROCESS_START", TK_PROCESS_START },
	{ "PROCESS_FORK", TK_FORK },
	{ "PROCESS_SPAWN", TK_SPAWN },
	{ "PROCESS_REAPED", TK_REAPED },
	{ "PROCESS_EXIT", TK_PROCESS_EXIT },
	{ "PROCESS_EXEC", TK_EXEC },
	{ "LEVEL_CHANGED", TK_LEVEL },
	{ "BUFFER_WAIT", TK_BUFFER_WAIT },
	{ "SCHED_READING", TK_SCHED },
	{ "SCHED_RAN", TK_SCHED },
	{ "SCHED_KEPT", TK_SCHED },
	{ "SCHED_SWITCHED", TK_SCHED },
	{ "SCHED_PARTIAL", TK_SCHED },
	{ "SCHED_UNKNOWN", TK_SCHED_UNKNOWN },
	{ "SCHED_IN", TK_SWITCHED_IN },
	{ "SCHED_OUT", TK_SWITCHED_OUT },
	{ "SCHED_PREEMPTED", TK_PREEMPTED },
	{ "SCHED_LOST", TK_SWITCHES_LOST },
};

/* The first line that matches counts; kind 0 = any. */
static const struct {
	const char *role;
	uint32_t kind;
	enum tk_action action;
} by_role[] = {
	{ "init", 0, TK_INIT },
	{ "destroy", 0, TK_DESTROY },
	{ "acquire", PTT_KIND_SEM, TK_SEM_TAKEN },
	{ "acquire", 0, TK_ACQUIRE },
	{ "acquire-shared", 0, TK_ACQUIRE_SHARED },
	{ "release", 0, TK_RELEASE },
	{ "wait", 0, TK_WAIT },
	{ "wait-in", PTT_KIND_THREAD, TK_JOIN_IN },
	{ "wait-out", PTT_KIND_THREAD, TK_JOIN_OUT },
	{ "wait-in", PTT_KIND_COND, TK_COND_IN },
	{ "wait-out", PTT_KIND_COND, TK_COND_OUT },
	{ "wait-in", PTT_KIND_BARRIER, TK_BARRIER_IN },
	{ "wait-out", PTT_KIND_BARRIER, TK_BARRIER_OUT },
	{ "arrive", PTT_KIND_BARRIER, TK_BARRIER_ARRIVE },
	{ "wait-in", PTT_KIND_FUTEX, TK_FUTEX_IN },
	{ "wait-out", PTT_KIND_FUTEX, TK_FUTEX_OUT },
	{ "wait-out", 0, TK_WAIT_END },
	{ "sleep-in", 0, TK_SLEEP_IN },
	{ "sleep-out", 0, TK_SLEEP_OUT },
	{ "wake", PTT_KIND_SEM, TK_SEM_POST },
	{ "wake", PTT_KIND_FUTEX, TK_FUTEX_WAKE },
	{ "wake", 0, TK_SIGNAL },
	{ "wake-all", 0, TK_BROADCAST },
	{ "run-in", 0, TK_ONCE_BEGIN },
	{ "run-out", 0, TK_ONCE_END },
	{ "create", 0, TK_CREATE },
	{ "begin", 0, TK_BEGIN },
	{ "end", 0, TK_END },
	{ "error", 0, TK_FAILED },
	{ "lost", 0, TK_LOST },
	{ "call-in", 0, TK_CALL_IN },
	{ "call-out", 0, TK_CALL_OUT },
};

static enum tk_action action_of(const struct ptt_event_type *type)
{
	enum tk_action action = TK_IGNORE;

	for (size_t i = 0; i < sizeof(by_name) / sizeof(*by_name); i++)
		if (strcmp(by_name[i].name, type->name) == 0)
			return by_name[i].action;
	for (size_t i = 0; i < sizeof(by_role) / sizeof(*by_role) && !action; i++)
		if (strcmp(by_role[i].role, type->role) == 0 &&
		    (!by_role[i].kind || by_role[i].kind == (uint32_t)type->id >> 6))
			action = by_role[i].action;
	if (strstr(type->name, "_TRY") && (action == TK_CALL_IN || action == TK_CALL_OUT))
		action = action == TK_CALL_IN ? TK_TRY_IN : TK_TRY_OUT;
	return action;
}

static enum tk_how how_of(uint32_t id)
{
	switch (id) {
	case NPTL_DOMAIN_MUTEX << 6 | NPTL_EV_MUTEX_TAKEN_TRIED:
	case NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_TAKEN_READ_TRIED:
	case NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_TAKEN_WRITE_TRIED:
	case NPTL_DOMAIN_SPIN << 6 | NPTL_EV_SPIN_TAKEN_TRIED:
		return TK_TRIED;
	}
	return tk_has(id, TK_WAIT_NS) ? TK_WAITED : TK_PLAIN;
}

static void learn(void)
{
	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		const struct ptt_event_type *type = &ptt_event_types[i];
		uint32_t id = type->id & PTT_ID_MASK;
		struct tk_meaning *m = &tk_meanings[id];

		m->type = type;
		m->action = (uint8_t)action_of(type);
		m->level = type->level;
		for (uint8_t k = 0; k < type->field_count; k++)
			for (int f = 0; f < TK_FIELDS; f++)
				if (strcmp(type->fields[k].name, field_names[f]) == 0)
					m->field[f] = (struct tk_field_at){
						k + 1, type->fields[k].offset, type->fields[k].type };
		m->how = (uint8_t)how_of(id);
	}
}

void tk_learn_catalogue(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, learn);
}
