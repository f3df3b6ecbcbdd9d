/* SPDX-License-Identifier: MIT */
/* sleep.h - system calls that let a thread sleep: the events before and after a call. The second comes also if the thread is cancelled. */
#ifndef PTT_SLEEP_H
#define PTT_SLEEP_H

#include "tracer.h"

/* A call in progress. Declare it with SLEEP_GUARD, as struct ptt_wait with WAIT_GUARD. */
struct ptt_sleep {
	uint64_t began;
	void *site;
	uint16_t call; /* number in catalog/sleeps.toml */
	int result;    /* ECANCELED until the real function has returned */
};

/* ptt_sleep_is_traced - at level 2 only if the thread holds a lock, at level 3 always. */
static inline bool ptt_sleep_is_traced(void)
{
	uint32_t level = ptt_level(NPTL_DOMAIN_SYS);

	return level > NPTL_LEVEL_SYS_CALL_IN || (level == NPTL_LEVEL_SYS_CALL_IN && ptt_held > 0);
}

static inline struct ptt_sleep ptt_begin_sleep(uint16_t call, void *site)
{
	EMIT_WITH(SYS, SYS_CALL_IN, sys_call_in, NULL, site, .call = call);
	return (struct ptt_sleep){ .began = ptt_now_ns(), .site = site, .call = call, .result = ECANCELED };
}

#define SLEEP_GUARD __attribute__((cleanup(ptt_sleep_end)))

static inline void ptt_sleep_end(struct ptt_sleep *call)
{
	REPORT_WITH(SYS, SYS_CALL_OUT, sys_call_out, NULL, call->site, .call = call->call, .result = call->result,
		    .wait_ns = ptt_now_ns() - call->began);
}

/*
 * SLEEP_HOOK - the hook of a function that threads sleep in
 * @call: the call of the real function; @at_once: true if it does not sleep; @error: the error number of its result
 * The declaration is for functions that the C library declares only for programs built with _FORTIFY_SOURCE.
 */
#define SLEEP_HOOK(type, name, params, number, call, at_once, error)                          \
	EXPORT type name params;                                                              \
	EXPORT type name params                                                               \
	{                                                                                     \
		if (likely(!ptt_sleep_is_traced()) || (at_once))                              \
			return call;                                                          \
		{                                                                             \
			struct ptt_sleep sleep_ SLEEP_GUARD = ptt_begin_sleep(number, CALL_SITE); \
			type result = call;                                                   \
                                                                                              \
			sleep_.result = error;                                                \
			return result;                                                        \
		}                                                                             \
	}

/* ptt_flock - file_lock.c: flock(), called at @site. Reports a wait for the lock. */
int ptt_flock(int fd, int operation, void *site) HIDDEN;

/* reap.c: wait() and others, called at @site. They report the end of a child. */
pid_t ptt_wait(int *status, void *site) HIDDEN;
pid_t ptt_waitpid(pid_t pid, int *status, int options, void *site) HIDDEN;
int ptt_waitid(idtype_t type, id_t id, siginfo_t *info, int options, void *site) HIDDEN;
pid_t ptt_wait3(int *status, int options, struct rusage *usage, void *site) HIDDEN;
pid_t ptt_wait4(pid_t pid, int *status, int options, struct rusage *usage, void *site) HIDDEN;

#endif
