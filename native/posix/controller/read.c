/* SPDX-License-Identifier: MIT */
/* read.c - the analyzer: reads events from a stream or a log. */
#include <linux/futex.h>

#include "controller.h"
#include "platform/raw_syscall.h"

#define BILLION INT64_C(1000000000)
/* How long to wait for a writer that has reserved a record but has not finished it. */
static const struct timespec moment = {.tv_nsec = 1000000};

/* ------------------------------------------------------------ delivering */

/* The arguments of an analyzer: where to store the event. */
struct request {
	struct posix_trace_event_info *event;
	void *data;
	size_t num_bytes;
	size_t *data_len;
	int *unavailable;
};


static void deliver(const struct px_trace *t, const struct px_record *record, const struct request *r)
{
	int64_t ns = (int64_t)record->time + t->real_offset;
	size_t size = record->size < r->num_bytes ? record->size : r->num_bytes;

	*r->event = (struct posix_trace_event_info){
		.posix_event_id = record->event,
		.posix_pid = (pid_t)record->pid,
		.posix_prog_address = (void *)(uintptr_t)record->address,
		.posix_thread_id = (pthread_t)record->thread,
		.posix_timestamp = {.tv_sec = ns / BILLION, .tv_nsec = ns % BILLION},
		.posix_truncation_status = size < record->size ? POSIX_TRACE_TRUNCATED_READ
					   : record->truncated ? POSIX_TRACE_TRUNCATED_RECORD
							       : POSIX_TRACE_NOT_TRUNCATED,
	};
	if (size)
		memcpy(r->data, record->data, size);
	*r->data_len = size;
	*r->unavailable = 0;
}

static enum px_take try_stream(struct px_trace *t, const struct request *r)
{
	enum px_take taken;

	pthread_mutex_lock(&t->lock);
	taken = px_next_event(t, t->scratch);
	if (taken == PX_TAKE_RECORD) {
		px_keep(t, t->scratch);
		deliver(t, t->scratch, r);
	}
	pthread_mutex_unlock(&t->lock);
	return taken;
}

static void read_log(struct px_trace *t, const struct request *r)
{
	const struct px_record *record;

	pthread_mutex_lock(&t->lock);
	record = px_log_next(t->opened);
	if (record)
		deliver(t, record, r);
	pthread_mutex_unlock(&t->lock);
}

/* ------------------------------------------------------------ waiting */


static void abandon(void *trace)
{
	px_trace_done(trace);
}

/* Set @end to @until, but at most a second from now: a writer may die before it wakes us. Return: true if @end is @until. */
static bool limit_sleep(struct timespec *end, const struct timespec *until)
{
	clock_gettime(CLOCK_REALTIME, end);
	end->tv_sec++;
	if (!until || until->tv_sec > end->tv_sec || (until->tv_sec == end->tv_sec && until->tv_nsec > end->tv_nsec))
		return false;
	*end = *until;
	if (end->tv_sec < 0)
		*end = (struct timespec){0, 0};
	return true;
}

/* Out of line: a cleanup handler leaves by longjmp(), and then the registers of the caller are undefined. */
static __attribute__((noinline)) long sleep_until(struct px_trace *t, uint32_t seen, const struct timespec *end)
{
	int type, ignored;
	long result;

	pthread_cleanup_push(abandon, t);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	result = ptt_raw_syscall(SYS_futex, (long)&t->buffer.stream->bell, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME,
				 (long)seen, (long)end, 0, (long)FUTEX_BITSET_MATCH_ANY);
	pthread_setcanceltype(type, &ignored);
	pthread_cleanup_pop(0);
	return result;
}

/*
 * Sleep until the bell's futex word is no longer @seen. A cancellation point: a thread that is cancelled here holds no lock.
 * Return: 0, EINTR or ETIMEDOUT.
 */
static int sleep_on(struct px_trace *t, uint32_t seen, const struct timespec *until)
{
	struct timespec end;
	bool last = limit_sleep(&end, until);
	long result = sleep_until(t, seen, &end);

	if (result == -EINTR)
		return EINTR;
	return result == -ETIMEDOUT && last ? ETIMEDOUT : 0;
}

static int wait_stream(struct px_trace *t, trace_id_t trid, const struct request *r, bool timed,
		       const struct timespec *until)
{
	struct px_stream *stream = t->buffer.stream;
	int err = 0;

	while (!err) {
		uint32_t seen = __atomic_load_n(&stream->bell, __ATOMIC_SEQ_CST);
		enum px_take taken;

		if (__atomic_load_n(&t->id, __ATOMIC_SEQ_CST) != trid)
			return EINVAL;
		/* seq_cst: a writer moves head and then loads waits; we set waits and then load head */
		__atomic_fetch_or(&stream->waits, PX_WAITS_READER, __ATOMIC_SEQ_CST);
		taken = try_stream(t, r);
		if (taken == PX_TAKE_RECORD)
			return 0;
		if (timed && (!until || until->tv_nsec < 0 || until->tv_nsec >= BILLION))
			return EINVAL;
		if (taken == PX_TAKE_UNFINISHED)
			ptt_raw_futex(&stream->bell, FUTEX_WAIT, seen, &moment);
		else
			err = sleep_on(t, seen, timed ? until : NULL);
	}
	return err;
}

enum patience { TRY, WAIT, WAIT_UNTIL };

static int get_next(trace_id_t trid, const struct request *r, enum patience patience, const struct timespec *until)
{
	struct px_trace *t;
	int err = 0;

	if (!r->event || !r->data_len || !r->unavailable || (!r->data && r->num_bytes))
		return EINVAL;
	t = px_trace_use(trid, patience == TRY ? PX_STREAM : PX_STREAM | PX_LOG);
	if (!t)
		return EINVAL;
	*r->unavailable = 1;
	if (t->kind == PX_LOG)
		read_log(t, r);
	else if (try_stream(t, r) != PX_TAKE_RECORD && patience != TRY)
		err = wait_stream(t, trid, r, patience == WAIT_UNTIL, until);
	px_trace_done(t);
	return err;
}

int posix_trace_getnext_event(trace_id_t trid, struct posix_trace_event_info *restrict event, void *restrict data,
			      size_t num_bytes, size_t *restrict data_len, int *restrict unavailable)
{
	return get_next(trid, &(struct request){event, data, num_bytes, data_len, unavailable}, WAIT, NULL);
}

int posix_trace_timedgetnext_event(trace_id_t trid, struct posix_trace_event_info *restrict event, void *restrict data,
				   size_t num_bytes, size_t *restrict data_len, int *restrict unavailable,
				   const struct timespec *restrict abstime)
{
	return get_next(trid, &(struct request){event, data, num_bytes, data_len, unavailable}, WAIT_UNTIL, abstime);
}

int posix_trace_trygetnext_event(trace_id_t trid, struct posix_trace_event_info *restrict event, void *restrict data,
				 size_t num_bytes, size_t *restrict data_len, int *restrict unavailable)
{
	return get_next(trid, &(struct request){event, data, num_bytes, data_len, unavailable}, TRY, NULL);
}

/* ------------------------------------------------------------ logs */

static void take_attributes(struct px_trace *t)
{
	const struct px_log_head *head = px_log_head_of(t->opened);

	px_attr_default(&t->attr);
	t->kind = PX_LOG;
	t->real_offset = head->real_offset;
	t->attr.stream_policy = head->stream_policy;
	t->attr.log_policy = head->log_policy;
	t->attr.inheritance = head->inheritance;
	t->attr.stream_size = head->stream_size;
	t->attr.max_data = head->max_data;
	t->attr.log_size = head->log_size;
	t->attr.create_time = (struct timespec){head->create_sec, head->create_nsec};
	t->attr.clock_resolution = (struct timespec){0, head->resolution_nsec};
	memcpy(t->attr.version, head->version, sizeof(head->version));
	memcpy(t->attr.name, head->name, sizeof(head->name));
}

int posix_trace_open(int file_desc, trace_id_t *trid)
{
	struct px_log_reader *opened;
	struct px_guard guard;
	struct px_trace *t;
	int saved = errno, err;

	if (!trid)
		return EINVAL;
	/* not under the guard: reading may take long */
	err = px_log_read_whole(&opened, file_desc);
	errno = saved;
	if (err)
		return err;
	px_guard_enter(&guard);
	t = px_trace_claim();
	if (t) {
		t->opened = opened;
		take_attributes(t);
		*trid = px_trace_publish(t);
	} else {
		px_log_read_end(opened);
		err = EINVAL;
	}
	px_guard_leave(&guard);
	return err;
}

int posix_trace_rewind(trace_id_t trid)
{
	struct px_trace *t = px_trace_use(trid, PX_LOG);

	if (!t)
		return EINVAL;
	pthread_mutex_lock(&t->lock);
	px_log_rewind(t->opened);
	pthread_mutex_unlock(&t->lock);
	px_trace_done(t);
	return 0;
}

int posix_trace_close(trace_id_t trid)
{
	struct px_trace *t = px_trace_use(trid, PX_LOG);
	struct px_guard guard;

	if (!t)
		return EINVAL;
	if (!px_trace_retract(t, trid)) {
		px_trace_done(t);
		return EINVAL;
	}
	px_trace_done(t);
	px_trace_quiesce(t);
	px_guard_enter(&guard);
	px_log_read_end(t->opened);
	px_trace_release(t);
	px_guard_leave(&guard);
	return 0;
}
