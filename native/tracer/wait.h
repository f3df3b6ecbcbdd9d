/* SPDX-License-Identifier: MIT */
/* wait.h - a routine that blocks: its second event is reported even if the thread is cancelled in it. */
#ifndef PTT_WAIT_H
#define PTT_WAIT_H

#include "tracer.h"

/*
 * A wait in progress. Declare it with WAIT_GUARD: then the end of the wait is reported when the scope is left, by
 * return, by cancellation or by an exception. The result is ECANCELED unless the real function has returned.
 */
struct ptt_wait {
	uint64_t began;
	const void *object;
	pthread_mutex_t *mutex; /* the mutex that a condition wait releases and takes again, or NULL */
	void *site;
	int result;
	char domain;
	char out; /* number of the _OUT event; its fields are result and wait_ns */
};

/* ptt_begin_wait - call it after the first event has been sent, so that the duration does not include the event. */
static inline struct ptt_wait ptt_begin_wait(char domain, char out, const void *object, void *site)
{
	return (struct ptt_wait){
		.began = ptt_now_ns(),
		.object = object,
		.site = site,
		.result = ECANCELED,
		.domain = domain,
		.out = out,
	};
}

/* ptt_wait_is_traced - is a condition wait traced, for its own events or for the mutex that it releases? */
static inline bool ptt_wait_is_traced(void)
{
	return ptt_level(NPTL_DOMAIN_COND) || must_trace(MUTEX, MUTEX_FREE);
}

#define WAIT_GUARD __attribute__((cleanup(ptt_wait_end)))

static inline void ptt_wait_end(struct ptt_wait *wait)
{
	struct nptl_trace_cond_wait_out param = {
		.object = (void *)wait->object,
		.site = wait->site,
		.result = wait->result,
	};

	if (wait->mutex && must_trace(MUTEX, MUTEX_TAKEN))
		/*
		 * After the wait, the caller does not hold a robust mutex that cannot be recovered, nor a mutex that
		 * it did not hold before. If a bad deadline is refused, it still holds the mutex.
		 */
		if (wait->result != ENOTRECOVERABLE && wait->result != EPERM)
			EMIT(MUTEX, MUTEX_TAKEN, wait->mutex, wait->site);
	if (!ptt_level((enum nptl_trace_domain)wait->domain) || (wait->domain == NPTL_DOMAIN_COND && ptt_in_lock))
		return;
	param.wait_ns = ptt_now_ns() - wait->began;
	ptt_send(wait->domain, wait->out, &param, sizeof(param));
}

#endif
