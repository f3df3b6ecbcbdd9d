/* SPDX-License-Identifier: MIT */
/* sets.c - sets of event types, and the filter of a stream. */
#include "suite.h"

static bool has(const trace_event_set_t *set, trace_event_id_t id)
{
	int is = -1;

	OK(posix_trace_eventset_ismember(id, set, &is));
	return is;
}

static trace_event_set_t empty(void)
{
	trace_event_set_t set;

	memset(&set, 0xff, sizeof(set));
	OK(posix_trace_eventset_empty(&set));
	return set;
}

static trace_event_set_t only(trace_event_id_t id)
{
	trace_event_set_t set = empty();

	OK(posix_trace_eventset_add(id, &set));
	return set;
}

static bool filters(trace_id_t trid, trace_event_id_t id)
{
	trace_event_set_t set = empty();

	OK(posix_trace_get_filter(trid, &set));
	return has(&set, id);
}

static const trace_event_id_t system_types[] = {
	POSIX_TRACE_ERROR,    POSIX_TRACE_START,  POSIX_TRACE_STOP,	   POSIX_TRACE_FILTER,
	POSIX_TRACE_OVERFLOW, POSIX_TRACE_RESUME, POSIX_TRACE_FLUSH_START, POSIX_TRACE_FLUSH_STOP,
};

CASE(empty_set)
{
	trace_event_set_t set = empty();
	size_t i;

	for (i = 0; i < 8; i++)
		CHECK(!has(&set, system_types[i]));
	CHECK(!has(&set, POSIX_TRACE_UNNAMED_USEREVENT));
	CHECK(!has(&set, type("one")));
}

CASE(add_and_del)
{
	trace_event_id_t one = type("one"), two = type("two");
	trace_event_set_t set = empty();

	OK(posix_trace_eventset_add(one, &set));
	CHECK(has(&set, one) && !has(&set, two));
	OK(posix_trace_eventset_add(one, &set)); /* once more is no error */
	OK(posix_trace_eventset_add(two, &set));
	CHECK(has(&set, one) && has(&set, two));
	OK(posix_trace_eventset_del(one, &set));
	CHECK(!has(&set, one) && has(&set, two));
	OK(posix_trace_eventset_del(one, &set)); /* nor is this */
	OK(posix_trace_eventset_add(POSIX_TRACE_STOP, &set));
	OK(posix_trace_eventset_add(POSIX_TRACE_UNNAMED_USEREVENT, &set));
	CHECK(has(&set, POSIX_TRACE_STOP) && !has(&set, POSIX_TRACE_START));
	CHECK(has(&set, POSIX_TRACE_UNNAMED_USEREVENT));
}

CASE(every_type_can_be_a_member)
{
	trace_event_id_t ids[TRACE_USER_EVENT_MAX - 1];
	trace_event_set_t set = empty();
	char name[TRACE_EVENT_NAME_MAX + 1];
	int i, n = 0;

	for (i = 0; i < TRACE_USER_EVENT_MAX - 1; i++) {
		snprintf(name, sizeof(name), "type %d", i);
		ids[i] = type(name);
		if (posix_trace_eventset_add(ids[i], &set) == 0)
			n++;
	}
	EQ(n, TRACE_USER_EVENT_MAX - 1);
	for (i = 0; i < TRACE_USER_EVENT_MAX - 1; i += 2)
		posix_trace_eventset_del(ids[i], &set);
	for (i = n = 0; i < TRACE_USER_EVENT_MAX - 1; i++) {
		int is = -1;

		posix_trace_eventset_ismember(ids[i], &set, &is);
		n += !!is == i % 2;
	}
	EQ(n, TRACE_USER_EVENT_MAX - 1);
}

CASE(fill)
{
	trace_event_id_t one = type("one");
	trace_event_set_t set = only(one);
	size_t i;

	OK(posix_trace_eventset_fill(&set, POSIX_TRACE_SYSTEM_EVENTS));
	for (i = 0; i < 8; i++)
		CHECK(has(&set, system_types[i]));
	CHECK(!has(&set, one)); /* replaced, not added */
	CHECK(!has(&set, POSIX_TRACE_UNNAMED_USEREVENT));

	OK(posix_trace_eventset_fill(&set, POSIX_TRACE_ALL_EVENTS));
	for (i = 0; i < 8; i++)
		CHECK(has(&set, system_types[i]));
	CHECK(has(&set, one) && has(&set, POSIX_TRACE_UNNAMED_USEREVENT));
	CHECK(has(&set, type("opened afterwards")));

	OK(posix_trace_eventset_fill(&set, POSIX_TRACE_WOPID_EVENTS));
	CHECK(!has(&set, one) && !has(&set, POSIX_TRACE_UNNAMED_USEREVENT));
}

CASE(bad_sets)
{
	trace_event_set_t set = empty();
	trace_event_id_t one = type("one"), nonsense;
	int is;

	memset(&nonsense, 0xee, sizeof(nonsense));
	FAILS(EINVAL, posix_trace_eventset_fill(&set, 4711));
	FAILS(EINVAL, posix_trace_eventset_empty(NULL));
	FAILS(EINVAL, posix_trace_eventset_fill(NULL, POSIX_TRACE_ALL_EVENTS));
	FAILS(EINVAL, posix_trace_eventset_add(one, NULL));
	FAILS(EINVAL, posix_trace_eventset_del(one, NULL));
	FAILS(EINVAL, posix_trace_eventset_ismember(one, NULL, &is));
	FAILS(EINVAL, posix_trace_eventset_ismember(one, &set, NULL));
	FAILS(EINVAL, posix_trace_eventset_add(nonsense, &set));
	FAILS(EINVAL, posix_trace_eventset_del(nonsense, &set));
	FAILS(EINVAL, posix_trace_eventset_ismember(nonsense, &set, &is));
}

/* ------------------------------------------------------------ filter */

CASE(new_stream_filters_nothing)
{
	trace_id_t trid = stream_of(0, NULL);
	size_t i;

	for (i = 0; i < 8; i++)
		CHECK(!filters(trid, system_types[i]));
	CHECK(!filters(trid, type("one")));
}

CASE(set_add_and_sub)
{
	trace_event_id_t one = type("one"), two = type("two");
	trace_event_set_t set_one = only(one), set_two = only(two), none = empty();
	trace_id_t trid = stream_of(0, NULL);

	OK(posix_trace_set_filter(trid, &set_one, POSIX_TRACE_SET_EVENTSET));
	CHECK(filters(trid, one) && !filters(trid, two));
	OK(posix_trace_set_filter(trid, &set_two, POSIX_TRACE_ADD_EVENTSET));
	CHECK(filters(trid, one) && filters(trid, two));
	OK(posix_trace_set_filter(trid, &set_one, POSIX_TRACE_SUB_EVENTSET));
	CHECK(!filters(trid, one) && filters(trid, two));
	OK(posix_trace_set_filter(trid, &set_one, POSIX_TRACE_SET_EVENTSET));
	CHECK(filters(trid, one) && !filters(trid, two));
	OK(posix_trace_set_filter(trid, &none, POSIX_TRACE_SET_EVENTSET));
	CHECK(!filters(trid, one) && !filters(trid, two));
}

CASE(filtered_types_are_not_recorded)
{
	trace_event_id_t one = type("one"), two = type("two");
	trace_event_set_t set_one = only(one);
	trace_id_t trid = started(NULL);
	struct record r;

	emit_number(one, 1);
	OK(posix_trace_set_filter(trid, &set_one, POSIX_TRACE_ADD_EVENTSET));
	emit_number(one, 2);
	emit_number(two, 3);
	OK(posix_trace_set_filter(trid, &set_one, POSIX_TRACE_SUB_EVENTSET));
	emit_number(one, 4);
	NEED(next_user(trid, &r));
	EQ(number_of(&r), 1); /* recorded events stay */
	NEED(next_user(trid, &r));
	EQ(number_of(&r), 3);
	NEED(next_user(trid, &r));
	EQ(number_of(&r), 4);
	CHECK(!next_user(trid, &r));
}

CASE(filters_are_each_streams_own)
{
	trace_event_id_t one = type("one");
	trace_event_set_t set_one = only(one);
	trace_id_t open = started(NULL), closed = started(NULL);

	OK(posix_trace_set_filter(closed, &set_one, POSIX_TRACE_SET_EVENTSET));
	emit_number(one, 1);
	EQ(count_user(open), 1);
	EQ(count_user(closed), 0);
}

CASE(change_while_running_is_recorded)
{
	trace_event_id_t one = type("one"), two = type("two");
	trace_event_set_t set_one = only(one), set_two = only(two), data[2];
	trace_id_t trid = stream_of(0, NULL);
	struct record r;

	OK(posix_trace_set_filter(trid, &set_one, POSIX_TRACE_SET_EVENTSET));
	EQ(drain(trid), 0); /* not while suspended */
	OK(posix_trace_start(trid));
	OK(posix_trace_set_filter(trid, &set_two, POSIX_TRACE_SET_EVENTSET));

	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_START)); /* says what is filtered from now on */
	EQ(r.length, sizeof(trace_event_set_t));
	memcpy(data, r.data, sizeof(data[0]));
	CHECK(has(&data[0], one) && !has(&data[0], two));

	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_FILTER)); /* old, then new */
	EQ(r.length, sizeof(data));
	memcpy(data, r.data, sizeof(data));
	CHECK(has(&data[0], one) && !has(&data[0], two));
	CHECK(!has(&data[1], one) && has(&data[1], two));
	CHECK(!next_of(trid, &r));
}

CASE(user_types_are_not_recorded_when_all_are_filtered)
{
	trace_event_id_t one = type("one");
	trace_event_set_t all = empty();
	trace_id_t trid = started(NULL);

	OK(posix_trace_eventset_fill(&all, POSIX_TRACE_ALL_EVENTS));
	OK(posix_trace_set_filter(trid, &all, POSIX_TRACE_SET_EVENTSET));
	emit_number(one, 1);
	emit_number(POSIX_TRACE_UNNAMED_USEREVENT, 2);
	emit_number(type("opened afterwards"), 3);
	EQ(count_user(trid), 0);
}

CASE(bad_changes_change_nothing)
{
	trace_event_id_t one = type("one");
	trace_event_set_t set_one = only(one), set;
	trace_id_t trid = started(NULL);

	FAILS(EINVAL, posix_trace_set_filter(trid, &set_one, 4711));
	FAILS(EINVAL, posix_trace_set_filter(trid, NULL, POSIX_TRACE_SET_EVENTSET));
	FAILS(EINVAL, posix_trace_get_filter(trid, NULL));
	CHECK(!filters(trid, one));
	EQ(count_type(trid, POSIX_TRACE_FILTER), 0);
	OK(posix_trace_shutdown(trid));
	FAILS(EINVAL, posix_trace_get_filter(trid, &set));
	FAILS(EINVAL, posix_trace_set_filter(trid, &set_one, POSIX_TRACE_SET_EVENTSET));
}

CASE(filter_of_process_independent_events)
{
	trace_id_t trid = started(NULL);
	trace_event_id_t first, second;
	trace_event_set_t set = empty();

	OK(posix_trace_eventset_fill(&set, POSIX_TRACE_WOPID_EVENTS));
	OK(posix_trace_trid_eventid_open(trid, "first", &first));
	OK(posix_trace_trid_eventid_open(trid, "second", &second));
	OK(posix_trace_eventset_add(first, &set));
	OK(posix_trace_eventset_add(second, &set));
	OK(posix_trace_eventset_del(POSIX_TRACE_ERROR, &set));
	OK(posix_trace_set_filter(trid, &set, POSIX_TRACE_SET_EVENTSET));
	emit_number(type("first"), 1);
	emit_number(type("third"), 3);
	emit_number(type("second"), 2);
	EQ(count_user(trid), 1);
	CHECK(!filters(trid, POSIX_TRACE_ERROR));
}
