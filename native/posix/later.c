/* SPDX-License-Identifier: MIT */
/* later.c - what is still to come. */
#include "posix.h"
#pragma GCC diagnostic ignored "-Wunused-parameter"

int posix_trace_create(pid_t __pid, const trace_attr_t *restrict __attr, trace_id_t *restrict __trid)
{
	return EINVAL;
}

int posix_trace_create_withlog(pid_t __pid, const trace_attr_t *restrict __attr, int __file_desc, trace_id_t *restrict __trid)
{
	return EINVAL;
}

int posix_trace_flush(trace_id_t __trid)
{
	return EINVAL;
}

int posix_trace_shutdown(trace_id_t __trid)
{
	return EINVAL;
}

int posix_trace_clear(trace_id_t __trid)
{
	return EINVAL;
}

int posix_trace_start(trace_id_t __trid)
{
	return EINVAL;
}

int posix_trace_stop(trace_id_t __trid)
{
	return EINVAL;
}

int posix_trace_get_attr(trace_id_t __trid, trace_attr_t *__attr)
{
	return EINVAL;
}

int posix_trace_get_status(trace_id_t __trid, struct posix_trace_status_info *__statusinfo)
{
	return EINVAL;
}

int posix_trace_get_filter(trace_id_t __trid, trace_event_set_t *__set)
{
	return EINVAL;
}

int posix_trace_set_filter(trace_id_t __trid, const trace_event_set_t *__set, int __how)
{
	return EINVAL;
}

int posix_trace_eventid_open(const char *restrict __event_name, trace_event_id_t *restrict __event_id)
{
	return EINVAL;
}

int posix_trace_trid_eventid_open(trace_id_t __trid, const char *restrict __event_name, trace_event_id_t *restrict __event)
{
	return EINVAL;
}

int posix_trace_eventid_get_name(trace_id_t __trid, trace_event_id_t __event, char *__event_name)
{
	return EINVAL;
}

int posix_trace_eventid_equal(trace_id_t __trid, trace_event_id_t __event1, trace_event_id_t __event2)
{
	return EINVAL;
}

int posix_trace_eventtypelist_getnext_id(trace_id_t __trid, trace_event_id_t *restrict __event, int *restrict __unavailable)
{
	return EINVAL;
}

int posix_trace_eventtypelist_rewind(trace_id_t __trid)
{
	return EINVAL;
}

void posix_trace_event(trace_event_id_t __event_id, const void *restrict __data_ptr, size_t __data_len)
{
}

int posix_trace_getnext_event(trace_id_t __trid, struct posix_trace_event_info *restrict __event, void *restrict __data, size_t __num_bytes, size_t *restrict __data_len, int *restrict __unavailable)
{
	return EINVAL;
}

int posix_trace_timedgetnext_event(trace_id_t __trid, struct posix_trace_event_info *restrict __event, void *restrict __data, size_t __num_bytes, size_t *restrict __data_len, int *restrict __unavailable, const struct timespec *restrict __abstime)
{
	return EINVAL;
}

int posix_trace_trygetnext_event(trace_id_t __trid, struct posix_trace_event_info *restrict __event, void *restrict __data, size_t __num_bytes, size_t *restrict __data_len, int *restrict __unavailable)
{
	return EINVAL;
}

int posix_trace_open(int __file_desc, trace_id_t *__trid)
{
	return EINVAL;
}

int posix_trace_rewind(trace_id_t __trid)
{
	return EINVAL;
}

int posix_trace_close(trace_id_t __trid)
{
	return EINVAL;
}
