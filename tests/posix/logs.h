/* SPDX-License-Identifier: MIT */
/* logs.h - shared by cases about logs: streams with a log, and the content of a log. */
#ifndef LOGS_H
#define LOGS_H

#include "suite.h"

/* The type of the events that emit_many() emits, once there is a stream. */
extern trace_event_id_t one;

/* logged - a stream of this process with a log, started. */
trace_id_t logged(int fd, const trace_attr_t *attr);
/* emit_many - an event for each number, except the last number. */
void emit_many(uint64_t from, uint64_t to);
trace_id_t open_log(const char *path);
/* next_number - the next event that is not of the system; false at the end. */
bool next_number(trace_id_t log, struct record *r);
/* holds - checks that the log holds these numbers, in this order, and no others. */
void holds(const char *path, uint64_t from, uint64_t to);
/* until_flushed - waits for the end of a flush; returns the status at that time, with everything reported once in between. */
struct posix_trace_status_info until_flushed(trace_id_t trid);
/* log_attributes - attributes of a stream for 64 events of 8 bytes, and of its log. */
trace_attr_t *log_attributes(int stream_policy, int log_policy, size_t log_size);

#endif
