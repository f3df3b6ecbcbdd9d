/* SPDX-License-Identifier: MIT */
/* flush.c - writes to the log: the records of the stream, the records that an analyzer took, names, and status. */
#include "controller.h"

#include <stdlib.h>

/* When an analyzer has taken so many bytes of records, the agent flushes them. */
#define KEPT_MANY (64u << 10)

static const struct timespec moment = {.tv_nsec = 1000000};

void px_flush_ask(struct px_trace *t)
{
	/* from now on the status says that the stream is flushing */
	__atomic_store_n(&t->flush_wanted, 1, __ATOMIC_SEQ_CST);
	px_wake_agent(t->buffer.stream);
}

void px_keep(struct px_trace *t, const struct px_record *record)
{
	size_t size = (size_t)record->cells * PX_CELL;

	if (!t->log)
		return;
	if (t->kept_size + size > t->kept_room) {
		size_t room = 2 * t->kept_room + size + KEPT_MANY;
		void *larger = realloc(t->kept, room);

		if (!larger)
			return;
		t->kept = larger;
		t->kept_room = room;
	}
	memcpy((char *)t->kept + t->kept_size, record, size);
	t->kept_size += size;
	if (t->kept_size >= KEPT_MANY)
		px_flush_ask(t);
}

/* Write the current block. Return: 0 or an error number. */
static int write_block(struct px_trace *t)
{
	const struct px_names *names;
	struct px_guard guard;

	px_guard_enter(&guard);
	names = px_trace_names(t);
	px_guard_leave(&guard);
	return px_log_write(t->log, names);
}

/*
 * Take records out, up to the place @end, until the current block is full. Return: true if the block is full.
 * @unfinished: set to true if a writer has not finished the next record
 */
static bool fill_block(struct px_trace *t, uint64_t end, bool *unfinished)
{
	bool full = false;

	*unfinished = false;
	pthread_mutex_lock(&t->lock);
	/* records that an analyzer took come before the records in the stream */
	while (!full && t->kept_at < t->kept_size) {
		const struct px_record *record = (const void *)((const char *)t->kept + t->kept_at);

		t->kept_at += (size_t)record->cells * PX_CELL;
		full = !px_log_add(t->log, record, px_log_taken(t->log));
	}
	if (t->kept_at == t->kept_size)
		t->kept_at = t->kept_size = 0;
	while (!full && (t->reading->phase != PX_NORMAL || (int64_t)(end - t->reading->reader.expected) > 0)) {
		enum px_take taken = px_next_event(t, t->scratch);

		*unfinished = taken == PX_TAKE_UNFINISHED;
		if (taken != PX_TAKE_RECORD)
			break;
		full = !px_log_add(t->log, t->scratch, t->reading->reader.expected);
	}
	px_note_empty(&t->buffer);
	pthread_mutex_unlock(&t->lock);
	return full;
}

static uint64_t head_place(const struct px_trace *t)
{
	return PX_PLACE(__atomic_load_n(&t->buffer.stream->head, __ATOMIC_SEQ_CST));
}

static int flush_events(struct px_trace *t)
{
	uint64_t end = head_place(t);
	bool unfinished, full;
	/* first write the records that a failed flush left in the current block */
	int err = write_block(t);

	while (!err) {
		full = fill_block(t, end, &unfinished);
		err = write_block(t);
		if (!full && !unfinished)
			break;
		if (unfinished)
			nanosleep(&moment, NULL);
	}
	return err;
}

int px_write_status(struct px_trace *t, bool final)
{
	const struct px_stream *stream = t->buffer.stream;
	struct px_log_status status = {
		.stream_status = final ? POSIX_TRACE_SUSPENDED : POSIX_TRACE_RUNNING,
		.stream_full = POSIX_TRACE_NOT_FULL,
		.stream_overrun = __atomic_load_n(&stream->overrun, __ATOMIC_ACQUIRE) ? POSIX_TRACE_OVERRUN
										      : POSIX_TRACE_NO_OVERRUN,
		.flush_status = POSIX_TRACE_NOT_FLUSHING,
		.flush_error = (int32_t)__atomic_load_n(&t->flush_error, __ATOMIC_ACQUIRE),
		.log_overrun = px_log_overran(t->log, false) ? POSIX_TRACE_OVERRUN : POSIX_TRACE_NO_OVERRUN,
		.log_full = px_log_is_full(t->log) ? POSIX_TRACE_FULL : POSIX_TRACE_NOT_FULL,
		.final = final,
		.lost = __atomic_load_n(&stream->lost, __ATOMIC_RELAXED),
		.serial = stream->serial,
		.finisher_start = t->finisher_start,
		.finisher_pid = t->finisher,
		.user = t->user,
	};

	return px_log_write_status(t->log, &status);
}

void px_note_error(struct px_trace *t, int err)
{
	uint32_t none = 0;

	if (err)
		__atomic_compare_exchange_n(&t->flush_error, &none, (uint32_t)err, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED);
}

int px_flush(struct px_trace *t, bool final)
{
	struct px_event event = px_own_event(POSIX_TRACE_FLUSH_START, NULL, NULL, 0);
	int err;

	pthread_mutex_lock(&t->log_lock);
	__atomic_store_n(&t->flushing, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&t->flush_wanted, 0, __ATOMIC_SEQ_CST);
	px_put_own(&t->buffer, &event, PX_HEAD_STOPPED | PX_HEAD_FULL, 0, 0, 0);
	err = flush_events(t);
	if (!err)
		err = px_write_status(t, final);
	t->last_error = err;
	/* release: pairs with writers that wait for room */
	__atomic_store_n(&t->buffer.stream->stuck, err != 0, __ATOMIC_RELEASE);
	px_note_error(t, err);
	event.id = POSIX_TRACE_FLUSH_STOP;
	px_put_own(&t->buffer, &event, PX_HEAD_STOPPED | PX_HEAD_FULL, 0, 0, 0);
	__atomic_store_n(&t->flushing, 0, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&t->log_lock);
	return err;
}

bool px_flush_due(const struct px_trace *t)
{
	const struct px_stream *stream = t->buffer.stream;
	uint64_t used = head_place(t) - PX_TAIL_PLACE(__atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE));

	if (__atomic_load_n(&t->flush_wanted, __ATOMIC_SEQ_CST))
		return true;
	return stream->policy == POSIX_TRACE_FLUSH && used >= stream->limit / 2;
}

