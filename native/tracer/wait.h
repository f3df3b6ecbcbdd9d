/* SPDX-License-Identifier: MIT */
/* wait.h - a routine that blocks: the event before it, and the event after it even if the thread is cancelled there. */
#ifndef PTT_WAIT_H
#define PTT_WAIT_H

#include "tracer.h"

/*
 * A wait in progress. Declared with WAIT_GUARD it reports the end of the wait when its scope is left: by return, by
 * cancellation or by an exception; result stays ECANCELED unless the real function has returned.
 */
struct ptt_wait {
	uint64_t began;
	const void *object;
	pthread_mutex_t *mutex; /* that a condition wait releases and takes back, or NULL */
	void *site;
	int result;
	char domain;
	char out; /* number of the _OUT event, whose fields are result and wait_ns */
};

/* ptt_begin_wait - after the event before the wait: no wait may end later than it is said to. */
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

/* ptt_wait_is_traced - a condition wait, for its own sake or for the mutex that is free meanwhile. */
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
		 * A robust mutex that cannot be recovered is not held after the wait, nor is a mutex that the caller did not hold
		 * before. A bad deadline is refused with the mutex still held.
		 */
		if (wait->result != ENOTRECOVERABLE && wait->result != EPERM)
			EMIT(MUTEX, MUTEX_TAKEN, wait->mutex, wait->site);
	if (!ptt_level((enum nptl_trace_domain)wait->domain) || (wait->domain == NPTL_DOMAIN_COND && ptt_in_lock))
		return;
	param.wait_ns = ptt_now_ns() - wait->began;
	ptt_send(wait->domain, wait->out, &param, sizeof(param));
}

#endif
