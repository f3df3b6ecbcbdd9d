/* SPDX-License-Identifier: MIT */
/* wake.c - wakes the waiters of a stream. */
#include "records.h"

#include <linux/futex.h>

#include "platform/raw_syscall.h"

static void ring_bell(struct px_stream *stream)
{
	/* seq_cst: whoever is to be woken has looked after it read the old value, which it sleeps on */
	__atomic_fetch_add(&stream->bell, 1, __ATOMIC_SEQ_CST);
	ptt_raw_futex(&stream->bell, FUTEX_WAKE, INT_MAX, NULL);
}

void px_wake(struct px_stream *stream, uint32_t sleepers)
{
	/* seq_cst: whoever is to be woken sets its bit, looks again, and sleeps on the old value of bell */
	if (__atomic_fetch_and(&stream->waits, ~sleepers, __ATOMIC_SEQ_CST) & sleepers)
		ring_bell(stream);
}

/* Not for each record that is taken, which would wake many writers for few of them. */
void px_wake_writers(struct px_stream *stream, uint64_t used)
{
	if (used > stream->limit / 2)
		return;
	/* seq_cst: a writer raises room_wanted, looks for room, and sleeps on the old value of room */
	if (!__atomic_load_n(&stream->room_wanted, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&stream->room_wanted, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&stream->room, 1, __ATOMIC_SEQ_CST);
	ptt_raw_futex(&stream->room, FUTEX_WAKE, INT_MAX, NULL);
}

void px_wake_due(struct px_stream *stream, uint64_t end)
{
	/* relaxed, and so is tail: px_finish() has looked with seq_cst, and px_wake() does again */
	uint32_t waits = __atomic_load_n(&stream->waits, __ATOMIC_RELAXED);

	if (waits & PX_WAITS_READER)
		px_wake(stream, PX_WAITS_READER);
	if (waits & PX_WAITS_AGENT &&
	    end - PX_TAIL_PLACE(__atomic_load_n(&stream->tail, __ATOMIC_RELAXED)) >= stream->limit / 2)
		px_wake(stream, PX_WAITS_AGENT);
}

void px_wake_agent(struct px_stream *stream)
{
	/* also when nobody has asked to be woken: the agent may be on its way to sleep on the old value */
	ring_bell(stream);
}
