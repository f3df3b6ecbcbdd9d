/* SPDX-License-Identifier: MIT */
/* wake.c - wakes the waiters of a stream. */
#include "records.h"

#include <linux/futex.h>

#include "platform/raw_syscall.h"

static void ring_bell(struct px_stream *stream)
{
	/* seq_cst: a sleeper reads bell, looks for work, and then sleeps on the old value of bell */
	__atomic_fetch_add(&stream->bell, 1, __ATOMIC_SEQ_CST);
	ptt_raw_futex(&stream->bell, FUTEX_WAKE, INT_MAX, NULL);
}

void px_wake(struct px_stream *stream, uint32_t sleepers)
{
	/* seq_cst: a sleeper sets its bit, looks again, and sleeps on the old value of bell */
	if (__atomic_fetch_and(&stream->waits, ~sleepers, __ATOMIC_SEQ_CST) & sleepers)
		ring_bell(stream);
}

/* Waits until the ring is half empty: a wake-up after each record would wake many writers for little room. */
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
	/* relaxed, and so is tail: px_finish() has loaded waits with seq_cst, and px_wake() does so again */
	uint32_t waits = __atomic_load_n(&stream->waits, __ATOMIC_RELAXED);

	if (waits & PX_WAITS_READER)
		px_wake(stream, PX_WAITS_READER);
	if (waits & PX_WAITS_AGENT &&
	    end - PX_TAIL_PLACE(__atomic_load_n(&stream->tail, __ATOMIC_RELAXED)) >= stream->limit / 2)
		px_wake(stream, PX_WAITS_AGENT);
}

void px_wake_agent(struct px_stream *stream)
{
	/* even if the agent's bit is not set: the agent may be about to sleep on the old value of bell */
	ring_bell(stream);
}
