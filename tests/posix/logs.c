/* SPDX-License-Identifier: MIT */
/* logs.c - streams with a log that cases write, and logs that cases read. */
#include "logs.h"

trace_event_id_t one;

trace_id_t logged(int fd, const trace_attr_t *attr)
{
	trace_id_t trid;

	one = type("one");
	NEED(posix_trace_create_withlog(0, attr, fd, &trid) == 0);
	NEED(posix_trace_start(trid) == 0);
	return trid;
}

void emit_many(uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		emit_number(one, from);
}

trace_id_t open_log(const char *path)
{
	int fd = open(path, O_RDONLY);
	trace_id_t log;

	NEED(fd >= 0);
	NEED(posix_trace_open(fd, &log) == 0);
	return log;
}

bool next_number(trace_id_t log, struct record *r)
{
	while (next_logged(log, r))
		if (!is_system(r->info.posix_event_id))
			return true;
	return false;
}

/* The log holds these numbers, in this order, and no others. */
void holds(const char *path, uint64_t from, uint64_t to)
{
	trace_id_t log = open_log(path);
	uint64_t wrong = 0, next = from;
	struct record r;

	while (next_number(log, &r))
		wrong += number_of(&r) != next++;
	EQ(wrong, 0);
	EQ(next, to);
	OK(posix_trace_close(log));
}

/* Waits for the end of a flush; returns the status at that time, with everything reported once in between. */
struct posix_trace_status_info until_flushed(trace_id_t trid)
{
	struct posix_trace_status_info is, before = {0};

	for (;;) {
		is = status_of(trid);
		is.posix_stream_overrun_status |= before.posix_stream_overrun_status;
		is.posix_log_overrun_status |= before.posix_log_overrun_status;
		if (before.posix_stream_flush_error)
			is.posix_stream_flush_error = before.posix_stream_flush_error;
		if (is.posix_stream_flush_status != POSIX_TRACE_FLUSHING)
			return is;
		before = is;
		usleep(1000);
	}
}

trace_attr_t *log_attributes(int stream_policy, int log_policy, size_t log_size)
{
	trace_attr_t *attr = attributes(stream_policy, 64, 8);

	OK(posix_trace_attr_setlogfullpolicy(attr, log_policy));
	OK(posix_trace_attr_setlogsize(attr, log_size));
	return attr;
}
