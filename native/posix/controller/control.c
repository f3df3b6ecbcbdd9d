/* SPDX-License-Identifier: MIT */
/* control.c - the functions of a controller: start, stop, filter, clear, flush; attributes and status. */
#include "controller.h"

/* An UNTIL_FULL stream stops by itself when it is full. In FLUSH the same flag says that the stream loses events. */
static bool has_stopped_itself(const struct px_stream *stream, uint64_t head)
{
	return stream->policy == POSIX_TRACE_UNTIL_FULL && head & PX_HEAD_FULL;
}

static bool is_full(const struct px_stream *stream, uint64_t head)
{
	uint64_t used = PX_PLACE(head) - PX_TAIL_PLACE(__atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE));

	if (stream->policy == POSIX_TRACE_UNTIL_FULL || head & PX_HEAD_FULL)
		return head & PX_HEAD_FULL;
	return used >= stream->limit ||
	       (stream->policy == POSIX_TRACE_LOOP && __atomic_load_n(&stream->full, __ATOMIC_RELAXED));
}

static uint64_t head_of(const struct px_stream *stream)
{
	return __atomic_load_n(&stream->head, __ATOMIC_SEQ_CST);
}

/* Set the event types that are recorded from now on: all types that the filter leaves, or no type. */
static void set_recorded_types(struct px_stream *stream, bool running)
{
	for (uint32_t i = 0; i < PX_EVENT_WORDS; i++)
		/* relaxed: head decides; the START record has the release */
		__atomic_store_n(&stream->record[i], running ? ~stream->filter[i] : 0, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ start, stop */

/* Under the guard: only one thread of the process starts, stops or filters at a time. */
static void start(struct px_trace *t, const void *address)
{
	struct px_stream *stream = t->buffer.stream;
	uint64_t head = head_of(stream);
	struct px_event event = px_own_event(POSIX_TRACE_START, address, stream->filter, sizeof(stream->filter));

	/* a full stream does not start: there is no room for the START record */
	if (!(head & PX_HEAD_STOPPED) || is_full(stream, head))
		return;
	if (px_put_own(&t->buffer, &event, PX_HEAD_STOPPED, PX_HEAD_STOPPED, 0, PX_HEAD_STOPPED))
		set_recorded_types(stream, true);
}

int posix_trace_start(trace_id_t trid)
{
	struct px_trace *t = px_trace_use(trid, PX_STREAM);
	struct px_guard guard;

	if (!t)
		return EINVAL;
	px_guard_enter(&guard);
	start(t, __builtin_return_address(0));
	px_guard_leave(&guard);
	px_trace_done(t);
	return 0;
}

void px_stop(struct px_trace *t, const void *address)
{
	static const int asked_for = 0;
	struct px_event event = px_own_event(POSIX_TRACE_STOP, address, &asked_for, sizeof(asked_for));
	struct px_stream *stream = t->buffer.stream;
	uint64_t head = head_of(stream);
	struct px_guard guard;

	px_guard_enter(&guard);
	if (!(head & PX_HEAD_STOPPED) && !has_stopped_itself(stream, head) &&
	    px_put_own(&t->buffer, &event, PX_HEAD_STOPPED, 0, PX_HEAD_STOPPED, 0))
		set_recorded_types(stream, false);
	px_guard_leave(&guard);
}

int posix_trace_stop(trace_id_t trid)
{
	struct px_trace *t = px_trace_use(trid, PX_STREAM);

	if (!t)
		return EINVAL;
	px_stop(t, __builtin_return_address(0));
	px_trace_done(t);
	return 0;
}

/* ------------------------------------------------------------ filter */

int posix_trace_get_filter(trace_id_t trid, trace_event_set_t *set)
{
	struct px_trace *t = set ? px_trace_use(trid, PX_STREAM) : NULL;
	struct px_guard guard;

	if (!t)
		return EINVAL;
	px_guard_enter(&guard);
	memcpy(set, t->buffer.stream->filter, sizeof(*set));
	px_guard_leave(&guard);
	px_trace_done(t);
	return 0;
}

static void set_filter(struct px_trace *t, const trace_event_set_t *filter, const void *address)
{
	struct px_stream *stream = t->buffer.stream;
	uint64_t change[2 * PX_EVENT_WORDS], head = head_of(stream);
	struct px_event event = px_own_event(POSIX_TRACE_FILTER, address, change, sizeof(change));
	bool running = !(head & PX_HEAD_STOPPED), records = running && !has_stopped_itself(stream, head);

	memcpy(change, stream->filter, sizeof(stream->filter));
	memcpy(change + PX_EVENT_WORDS, filter, sizeof(*filter));
	/* first the FILTER record: the new filter applies to the events after it */
	if (records)
		px_put_own(&t->buffer, &event, PX_HEAD_STOPPED, 0, 0, 0);
	memcpy(stream->filter, filter, sizeof(*filter));
	if (running)
		set_recorded_types(stream, true);
}

int posix_trace_set_filter(trace_id_t trid, const trace_event_set_t *set, int how)
{
	struct px_trace *t;
	struct px_guard guard;
	trace_event_set_t filter;

	if (!set ||
	    (how != POSIX_TRACE_SET_EVENTSET && how != POSIX_TRACE_ADD_EVENTSET && how != POSIX_TRACE_SUB_EVENTSET))
		return EINVAL;
	t = px_trace_use(trid, PX_STREAM);
	if (!t)
		return EINVAL;
	px_guard_enter(&guard);
	for (uint32_t i = 0; i < PX_EVENT_WORDS; i++) {
		uint64_t old = t->buffer.stream->filter[i], bits = set->__ptt_bits[i];

		filter.__ptt_bits[i] = how == POSIX_TRACE_SET_EVENTSET	 ? bits
				       : how == POSIX_TRACE_ADD_EVENTSET ? old | bits
									 : old & ~bits;
	}
	set_filter(t, &filter, __builtin_return_address(0));
	px_guard_leave(&guard);
	px_trace_done(t);
	return 0;
}

/* ------------------------------------------------------------ clear, flush */

/* Take the records that are in the ring now, and drop them. */
static void discard(struct px_trace *t)
{
	struct px_stream *stream = t->buffer.stream;
	uint64_t end = PX_PLACE(head_of(stream));

	while ((int64_t)(end - t->reading->reader.expected) > 0) {
		uint64_t gap;
		enum px_take taken = px_take(&t->buffer, &t->reading->reader, t->scratch, &gap);

		if (taken == PX_TAKE_NONE)
			break;
		if (taken == PX_TAKE_UNFINISHED)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	t->reading->phase = PX_NORMAL;
	t->kept_at = t->kept_size = 0;
}

/* A stream that stopped by itself stays suspended, but is no longer full. A stream that ran before continues. */
static void reset_flags(struct px_stream *stream, uint64_t head)
{
	uint64_t now = head_of(stream), flags;

	do {
		flags = now & PX_HEAD_STOPPED;
		if (has_stopped_itself(stream, head))
			flags |= PX_HEAD_STOPPED;
	} while (!__atomic_compare_exchange_n(&stream->head, &now, (now & ~PX_HEAD_FLAGS) | flags, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	if (flags & PX_HEAD_STOPPED)
		set_recorded_types(stream, false);
}

int posix_trace_clear(trace_id_t trid)
{
	struct px_trace *t = px_trace_use(trid, PX_STREAM);
	struct px_guard guard;
	uint64_t head;
	int err;

	if (!t)
		return EINVAL;
	/* not under the guard: the agent may be writing to a slow log */
	pthread_mutex_lock(&t->log_lock);
	px_guard_enter(&guard);
	pthread_mutex_lock(&t->lock);
	head = head_of(t->buffer.stream);
	discard(t);
	reset_flags(t->buffer.stream, head);
	__atomic_store_n(&t->buffer.stream->overrun, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&t->buffer.stream->full, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&t->lock);
	err = t->log ? px_log_clear(t->log) : 0;
	px_note_error(t, err);
	px_guard_leave(&guard);
	pthread_mutex_unlock(&t->log_lock);
	px_trace_done(t);
	return 0;
}

int posix_trace_flush(trace_id_t trid)
{
	struct px_trace *t = px_trace_use(trid, PX_STREAM);
	bool has_log;

	if (!t)
		return EINVAL;
	has_log = t->log;
	if (has_log)
		px_flush_ask(t);
	px_trace_done(t);
	return has_log ? 0 : EINVAL;
}

/* ------------------------------------------------------------ questions */

int posix_trace_get_attr(trace_id_t trid, trace_attr_t *attr)
{
	struct px_trace *t = attr ? px_trace_use(trid, PX_STREAM | PX_LOG) : NULL;

	if (!t)
		return EINVAL;
	px_attr_store(attr, &t->attr);
	px_trace_done(t);
	return 0;
}

static void stream_status(struct px_trace *t, struct posix_trace_status_info *status)
{
	struct px_stream *stream = t->buffer.stream;
	uint64_t head = head_of(stream);
	bool running = !(head & PX_HEAD_STOPPED) && !has_stopped_itself(stream, head);
	bool flushing =
		__atomic_load_n(&t->flush_wanted, __ATOMIC_SEQ_CST) || __atomic_load_n(&t->flushing, __ATOMIC_SEQ_CST);

	*status = (struct posix_trace_status_info){
		.posix_stream_status = running ? POSIX_TRACE_RUNNING : POSIX_TRACE_SUSPENDED,
		.posix_stream_full_status = is_full(stream, head) ? POSIX_TRACE_FULL : POSIX_TRACE_NOT_FULL,
		.posix_stream_flush_status = flushing ? POSIX_TRACE_FLUSHING : POSIX_TRACE_NOT_FLUSHING,
		.posix_stream_flush_error = (int)__atomic_exchange_n(&t->flush_error, 0, __ATOMIC_SEQ_CST),
		.posix_log_overrun_status = POSIX_TRACE_NO_OVERRUN,
		.posix_log_full_status = POSIX_TRACE_NOT_FULL,
	};
	/* acquire: pairs with the release of the writer that lost an event */
	status->posix_stream_overrun_status = __atomic_exchange_n(&stream->overrun, 0, __ATOMIC_SEQ_CST)
						      ? POSIX_TRACE_OVERRUN
						      : POSIX_TRACE_NO_OVERRUN;
	if (!t->log)
		return;
	if (px_log_overran(t->log, true))
		status->posix_log_overrun_status = POSIX_TRACE_OVERRUN;
	if (px_log_is_full(t->log))
		status->posix_log_full_status = POSIX_TRACE_FULL;
}

static void log_status(const struct px_trace *t, struct posix_trace_status_info *status)
{
	const struct px_log_status *s = px_log_status_of(t->opened);

	*status = (struct posix_trace_status_info){
		.posix_stream_status = POSIX_TRACE_SUSPENDED,
		.posix_stream_full_status = s->stream_full,
		.posix_stream_overrun_status = s->stream_overrun,
		.posix_stream_flush_status = POSIX_TRACE_NOT_FLUSHING,
		.posix_stream_flush_error = s->flush_error,
		.posix_log_overrun_status = s->log_overrun,
		.posix_log_full_status = s->log_full,
	};
}

int posix_trace_get_status(trace_id_t trid, struct posix_trace_status_info *statusinfo)
{
	struct px_trace *t = statusinfo ? px_trace_use(trid, PX_STREAM | PX_LOG) : NULL;
	struct px_guard guard;

	if (!t)
		return EINVAL;
	px_guard_enter(&guard);
	if (t->kind == PX_STREAM)
		stream_status(t, statusinfo);
	else
		log_status(t, statusinfo);
	px_guard_leave(&guard);
	px_trace_done(t);
	return 0;
}
