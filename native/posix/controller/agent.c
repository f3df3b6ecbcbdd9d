/* SPDX-License-Identifier: MIT */
/* agent.c - the thread that holds a stream while its controller lives, and flushes the stream to its log. */
#include "controller.h"

#include <linux/futex.h>

#include "platform/raw_syscall.h"

#define STACK_SIZE (256u << 10)

/* After a failed flush, wait longer each time: the stream stays full, and the next flush would begin at once. */
static void back_off(const struct px_trace *t, uint32_t *failures, int err)
{
	*failures = err ? *failures + 1 : 0;
	if (*failures && !__atomic_load_n(&t->ending, __ATOMIC_ACQUIRE))
		nanosleep(&(struct timespec){.tv_nsec = *failures < 50 ? *failures * 2000000 : 100000000}, NULL);
}

static void serve(struct px_trace *t)
{
	struct px_stream *stream = t->buffer.stream;
	uint32_t failures = 0;

	while (!__atomic_load_n(&t->ending, __ATOMIC_SEQ_CST)) {
		uint32_t bell = __atomic_load_n(&stream->bell, __ATOMIC_SEQ_CST);

		if (t->log)
			/* seq_cst: writers move head and then load waits */
			__atomic_fetch_or(&stream->waits, PX_WAITS_AGENT, __ATOMIC_SEQ_CST);
		if (t->log && px_flush_due(t))
			back_off(t, &failures, px_flush(t, false));
		else if (!__atomic_load_n(&t->ending, __ATOMIC_SEQ_CST))
			ptt_raw_futex(&stream->bell, FUTEX_WAIT, bell, NULL);
	}
}

static void *run(void *argument)
{
	struct px_trace *t = argument;
	pthread_mutex_t *life = (pthread_mutex_t *)t->buffer.stream->life;
	bool held = pthread_mutex_lock(life) == 0;

	__atomic_store_n(&t->agent_ready, held ? 1 : 2, __ATOMIC_SEQ_CST);
	ptt_raw_futex(&t->agent_ready, FUTEX_WAKE, 1, NULL);
	if (!held)
		return NULL;
	serve(t);
	if (t->log)
		px_flush(t, true);
	pthread_mutex_unlock(life);
	return NULL;
}

int px_agent_start(struct px_trace *t)
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	/* the guard blocks all signals here, and so the new thread never handles a signal */
	err = pthread_create(&t->agent, &attr, run, t);
	pthread_attr_destroy(&attr);
	if (err)
		return EAGAIN;
	while (!__atomic_load_n(&t->agent_ready, __ATOMIC_SEQ_CST))
		ptt_raw_futex(&t->agent_ready, FUTEX_WAIT, 0, NULL);
	if (t->agent_ready == 1)
		return 0;
	pthread_join(t->agent, NULL);
	return ENOMEM;
}

int px_agent_end(struct px_trace *t)
{
	int cancel, ignored;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	__atomic_store_n(&t->ending, 1, __ATOMIC_SEQ_CST);
	px_wake_agent(t->buffer.stream);
	pthread_join(t->agent, NULL);
	if (t->finisher)
		px_finisher_end(t->finisher);
	pthread_setcancelstate(cancel, &ignored);
	return t->log ? t->last_error : 0;
}
