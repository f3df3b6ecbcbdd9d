/* SPDX-License-Identifier: MIT */
/* header.c - declarations of <trace.h>: distinct constants, limits, structures, and answers of sysconf(). */
#include "suite.h"

/* The four macros of <trace.h> replace those in <unistd.h>, which suite.h includes first. */
#if _POSIX_TRACE <= 0 || _POSIX_TRACE_EVENT_FILTER <= 0 || _POSIX_TRACE_INHERIT <= 0 || _POSIX_TRACE_LOG <= 0
#error "a part of the option is missing"
#endif

static void distinct(const int *values, size_t n)
{
	size_t i, j;

	for (i = 0; i < n; i++)
		for (j = i + 1; j < n; j++)
			suite_check(values[i] != values[j], __FILE__, __LINE__, "constants %zu and %zu are both %d", i, j,
				    values[i]);
}

#define DISTINCT(...) distinct((int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

CASE(constants_can_be_told_apart)
{
	DISTINCT(POSIX_TRACE_RUNNING, POSIX_TRACE_SUSPENDED);
	DISTINCT(POSIX_TRACE_FULL, POSIX_TRACE_NOT_FULL);
	DISTINCT(POSIX_TRACE_OVERRUN, POSIX_TRACE_NO_OVERRUN);
	DISTINCT(POSIX_TRACE_FLUSHING, POSIX_TRACE_NOT_FLUSHING);
	DISTINCT(POSIX_TRACE_NOT_TRUNCATED, POSIX_TRACE_TRUNCATED_RECORD, POSIX_TRACE_TRUNCATED_READ);
	DISTINCT(POSIX_TRACE_LOOP, POSIX_TRACE_UNTIL_FULL, POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND);
	DISTINCT(POSIX_TRACE_CLOSE_FOR_CHILD, POSIX_TRACE_INHERITED);
	DISTINCT(POSIX_TRACE_WOPID_EVENTS, POSIX_TRACE_SYSTEM_EVENTS, POSIX_TRACE_ALL_EVENTS);
	DISTINCT(POSIX_TRACE_SET_EVENTSET, POSIX_TRACE_ADD_EVENTSET, POSIX_TRACE_SUB_EVENTSET);
}

CASE(no_overrun_is_zero)
{
	EQ(POSIX_TRACE_NO_OVERRUN, 0);
}

CASE(predefined_types_can_be_told_apart)
{
	const trace_event_id_t types[] = {
		POSIX_TRACE_ERROR,    POSIX_TRACE_START,  POSIX_TRACE_STOP,	   POSIX_TRACE_FILTER,
		POSIX_TRACE_OVERFLOW, POSIX_TRACE_RESUME, POSIX_TRACE_FLUSH_START, POSIX_TRACE_FLUSH_STOP,
		POSIX_TRACE_UNNAMED_USEREVENT,
	};
	const trace_event_id_t other_spelling = POSIX_TRACE_UNNAMED_USER_EVENT;
	size_t i, j;

	for (i = 0; i < sizeof(types) / sizeof(*types); i++)
		for (j = 0; j < i; j++)
			CHECK(!same_type(types[i], types[j]));
	CHECK(same_type(other_spelling, types[8]));
}

CASE(structures_have_their_members)
{
	struct posix_trace_event_info info;
	struct posix_trace_status_info status;
	/* assignments that only compile if the types are right */
	trace_event_id_t *id = &info.posix_event_id;
	pid_t *pid = &info.posix_pid;
	void **address = &info.posix_prog_address;
	int *truncation = &info.posix_truncation_status;
	struct timespec *stamp = &info.posix_timestamp;
	pthread_t *thread_id = &info.posix_thread_id;
	int *members[] = {
		&status.posix_stream_status,	   &status.posix_stream_full_status, &status.posix_stream_overrun_status,
		&status.posix_stream_flush_status, &status.posix_stream_flush_error, &status.posix_log_overrun_status,
		&status.posix_log_full_status,
	};

	CHECK(id && pid && address && truncation && stamp && thread_id);
	EQ(sizeof(members) / sizeof(*members), 7);
}

static trace_event_set_t by_value(trace_event_set_t set)
{
	return set;
}

CASE(sets_survive_assignment)
{
	trace_event_id_t id = type("one");
	trace_event_set_t set, copy;
	int is = -1;

	OK(posix_trace_eventset_empty(&set));
	OK(posix_trace_eventset_add(id, &set));
	copy = by_value(set);
	OK(posix_trace_eventset_empty(&set));
	OK(posix_trace_eventset_ismember(id, &copy, &is));
	CHECK(is);
}

CASE(limits)
{
	CHECK(TRACE_EVENT_NAME_MAX >= _POSIX_TRACE_EVENT_NAME_MAX);
	CHECK(TRACE_NAME_MAX >= _POSIX_TRACE_NAME_MAX);
	CHECK(TRACE_SYS_MAX >= _POSIX_TRACE_SYS_MAX);
	CHECK(TRACE_USER_EVENT_MAX >= _POSIX_TRACE_USER_EVENT_MAX);
	EQ(_POSIX_TRACE_EVENT_NAME_MAX, 30);
	EQ(_POSIX_TRACE_NAME_MAX, 8);
	EQ(_POSIX_TRACE_SYS_MAX, 8);
	EQ(_POSIX_TRACE_USER_EVENT_MAX, 32);
}

CASE(sysconf_answers)
{
	EQ(sysconf(_SC_TRACE), _POSIX_TRACE);
	EQ(sysconf(_SC_TRACE_EVENT_FILTER), _POSIX_TRACE_EVENT_FILTER);
	EQ(sysconf(_SC_TRACE_INHERIT), _POSIX_TRACE_INHERIT);
	EQ(sysconf(_SC_TRACE_LOG), _POSIX_TRACE_LOG);
	EQ(sysconf(_SC_TRACE_EVENT_NAME_MAX), TRACE_EVENT_NAME_MAX);
	EQ(sysconf(_SC_TRACE_NAME_MAX), TRACE_NAME_MAX);
	EQ(sysconf(_SC_TRACE_SYS_MAX), TRACE_SYS_MAX);
	EQ(sysconf(_SC_TRACE_USER_EVENT_MAX), TRACE_USER_EVENT_MAX);
	/* and all other questions have the same answers as before */
	EQ(sysconf(_SC_PAGESIZE), getpagesize());
	CHECK(sysconf(_SC_NPROCESSORS_ONLN) >= 1);
	errno = 0;
	EQ(sysconf(-1), -1);
	EQ(errno, EINVAL);
}
