/* SPDX-License-Identifier: MIT */
/* eventset.c - sets of event types. */
#include "posix.h"

int posix_trace_eventset_empty(trace_event_set_t *set)
{
	if (!set)
		return EINVAL;
	memset(set, 0, sizeof(*set));
	return 0;
}

static void add_range(trace_event_set_t *set, trace_event_id_t from, trace_event_id_t end)
{
	for (trace_event_id_t id = from; id < end; id++)
		set->__ptt_bits[id / 64] |= 1ull << id % 64;
}

int posix_trace_eventset_fill(trace_event_set_t *set, int what)
{
	trace_event_set_t filled = {{0}};

	if (!set)
		return EINVAL;
	switch (what) {
	case POSIX_TRACE_WOPID_EVENTS:
		add_range(&filled, POSIX_TRACE_ERROR, POSIX_TRACE_ERROR + 1);
		break;
	case POSIX_TRACE_SYSTEM_EVENTS:
		add_range(&filled, POSIX_TRACE_ERROR, POSIX_TRACE_UNNAMED_USEREVENT);
		add_range(&filled, PX_EVENT_SYSTEM, PX_EVENT_USER);
		break;
	case POSIX_TRACE_ALL_EVENTS:
		add_range(&filled, 1, PX_EVENT_COUNT);
		break;
	default:
		return EINVAL;
	}
	*set = filled;
	return 0;
}

int posix_trace_eventset_add(trace_event_id_t event_id, trace_event_set_t *set)
{
	if (!set || !px_event_is_valid(event_id))
		return EINVAL;
	set->__ptt_bits[event_id / 64] |= 1ull << event_id % 64;
	return 0;
}

int posix_trace_eventset_del(trace_event_id_t event_id, trace_event_set_t *set)
{
	if (!set || !px_event_is_valid(event_id))
		return EINVAL;
	set->__ptt_bits[event_id / 64] &= ~(1ull << event_id % 64);
	return 0;
}

int posix_trace_eventset_ismember(trace_event_id_t event_id, const trace_event_set_t *restrict set,
				  int *restrict ismember)
{
	if (!set || !ismember || !px_event_is_valid(event_id))
		return EINVAL;
	*ismember = px_set_has(set, event_id);
	return 0;
}
