/* SPDX-License-Identifier: MIT */
/* policies.c - full streams: loop and until full, which events are lost, and how the loss is reported. */
#include "suite.h"

#define EVENTS 32

static trace_event_id_t one;

static trace_id_t small(int policy)
{
	one = type("one");
	return started(attributes(policy, EVENTS, 8));
}

static void emit_many(uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		emit_number(one, from);
}

/* ------------------------------------------------------------ events that must fit */

/* The stream holds as many events of these lengths as their sizes say, in any order. */
static void fits(int policy, const size_t *lengths, size_t n)
{
	size_t total = 0, i, k, size, system_size, wrong = 0;
	trace_attr_t attr;
	struct record r;
	trace_id_t trid;
	char data[512];

	one = type("one");
	memset(data, 'f', sizeof(data));
	NEED(posix_trace_attr_init(&attr) == 0);
	OK(posix_trace_attr_setstreamfullpolicy(&attr, policy));
	OK(posix_trace_attr_setmaxdatasize(&attr, 512));
	OK(posix_trace_attr_getmaxsystemeventsize(&attr, &system_size));
	for (i = 0; i < 200; i++) {
		posix_trace_attr_getmaxusereventsize(&attr, lengths[i % n], &size);
		total += size;
	}
	OK(posix_trace_attr_setstreamsize(&attr, total + system_size)); /* the start event */
	trid = started(&attr);
	for (k = 0; k < 5; k++) { /* again and again, so that it wraps everywhere */
		for (i = 0; i < 200; i++)
			posix_trace_event(one, data, lengths[i % n]);
		for (i = 0; i < 200; i++)
			wrong += !next_user(trid, &r) || r.length != lengths[i % n];
		drain(trid);
	}
	EQ(wrong, 0);
	EQ(status_of(trid).posix_stream_overrun_status, POSIX_TRACE_NO_OVERRUN);
	OK(posix_trace_shutdown(trid));
}

CASE(events_that_fit_are_not_lost)
{
	const size_t none[] = {0}, eight[] = {8}, odd[] = {1, 13, 7}, large[] = {512}, mixed[] = {512, 0, 0, 333, 1};

	fits(POSIX_TRACE_UNTIL_FULL, none, 1);
	fits(POSIX_TRACE_UNTIL_FULL, eight, 1);
	fits(POSIX_TRACE_UNTIL_FULL, odd, 3);
	fits(POSIX_TRACE_UNTIL_FULL, large, 1);
	fits(POSIX_TRACE_UNTIL_FULL, mixed, 5);
	fits(POSIX_TRACE_LOOP, none, 1);
	fits(POSIX_TRACE_LOOP, odd, 3);
	fits(POSIX_TRACE_LOOP, large, 1);
	fits(POSIX_TRACE_LOOP, mixed, 5);
}

CASE(events_that_fit_are_not_lost_beside_system_events)
{
	size_t size, system_size;
	trace_event_set_t none;
	trace_attr_t attr;
	struct record r;
	trace_id_t trid;
	int i, users = 0, filters = 0;

	one = type("one");
	NEED(posix_trace_attr_init(&attr) == 0 && posix_trace_eventset_empty(&none) == 0);
	OK(posix_trace_attr_setstreamfullpolicy(&attr, POSIX_TRACE_UNTIL_FULL));
	OK(posix_trace_attr_getmaxusereventsize(&attr, 8, &size));
	OK(posix_trace_attr_getmaxsystemeventsize(&attr, &system_size));
	OK(posix_trace_attr_setstreamsize(&attr, 30 * size + 32 * system_size)); /* a start and a stop as well */
	trid = started(&attr);
	for (i = 0; i < 30; i++) {
		emit_number(one, (uint64_t)i);
		OK(posix_trace_set_filter(trid, &none, POSIX_TRACE_SET_EVENTSET));
	}
	OK(posix_trace_stop(trid));
	EQ(status_of(trid).posix_stream_overrun_status, POSIX_TRACE_NO_OVERRUN);
	while (next_of(trid, &r)) {
		users += same_type(r.info.posix_event_id, one);
		filters += same_type(r.info.posix_event_id, POSIX_TRACE_FILTER);
	}
	EQ(users, 30);
	EQ(filters, 30);
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_STOP)); /* the last event */
}

static void *one_event(void *number)
{
	emit_number(one, (uint64_t)(uintptr_t)number);
	return NULL;
}

CASE(events_of_many_threads_that_fit_are_not_lost)
{
	trace_id_t trid;
	uintptr_t i;

	one = type("one");
	trid = started(attributes(POSIX_TRACE_UNTIL_FULL, 200, 8));
	for (i = 0; i < 200; i++)
		join(thread(one_event, (void *)i));
	EQ(count_user(trid), 200);
	EQ(status_of(trid).posix_stream_overrun_status, POSIX_TRACE_NO_OVERRUN);
}

CASE(a_window_of_one_event)
{
	trace_id_t trid;

	one = type("one");
	trid = started(attributes(POSIX_TRACE_UNTIL_FULL, 1, 8));
	emit_number(one, 1);
	EQ(count_user(trid), 1);
}

/* ------------------------------------------------------------ until full */

CASE(until_full_stops_by_itself)
{
	trace_id_t trid = small(POSIX_TRACE_UNTIL_FULL);
	struct posix_trace_status_info is;
	uint64_t next = 0;
	struct record r;
	int automatic = 0;

	is = status_of(trid);
	EQ(is.posix_stream_status, POSIX_TRACE_RUNNING);
	EQ(is.posix_stream_full_status, POSIX_TRACE_NOT_FULL);
	emit_many(0, 100 * EVENTS);
	is = status_of(trid);
	EQ(is.posix_stream_status, POSIX_TRACE_SUSPENDED);
	EQ(is.posix_stream_full_status, POSIX_TRACE_FULL);
	EQ(is.posix_stream_overrun_status, POSIX_TRACE_OVERRUN);
	EQ(status_of(trid).posix_stream_overrun_status, POSIX_TRACE_NO_OVERRUN); /* reported once */
	OK(posix_trace_start(trid)); /* changes nothing */
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_SUSPENDED);
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_FULL);
	OK(posix_trace_stop(trid));
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_FULL);

	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_START));
	while (next_of(trid, &r) && same_type(r.info.posix_event_id, one))
		EQ(number_of(&r), next++); /* the first events, without a gap */
	CHECK(next >= EVENTS);
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_STOP));
	EQ(r.length, sizeof(int));
	memcpy(&automatic, r.data, sizeof(automatic));
	CHECK(automatic != 0);
}

CASE(until_full_restarts_after_it_was_read)
{
	trace_id_t trid = small(POSIX_TRACE_UNTIL_FULL);
	struct record r;
	bool start_seen = false;
	int last_stop = 0;

	emit_many(0, 100 * EVENTS);
	while (next_of(trid, &r))
		last_stop = same_type(r.info.posix_event_id, POSIX_TRACE_STOP);
	EQ(last_stop, 1);
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_RUNNING);
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_NOT_FULL);
	emit_many(5000, 5002);
	while (next_of(trid, &r) && !same_type(r.info.posix_event_id, one))
		start_seen |= same_type(r.info.posix_event_id, POSIX_TRACE_START);
	CHECK(start_seen); /* before the first event of the new window */
	EQ(number_of(&r), 5000);
	NEED(next_of(trid, &r));
	EQ(number_of(&r), 5001);
	CHECK(!next_of(trid, &r));
}

CASE(until_full_window_after_window)
{
	trace_id_t trid = small(POSIX_TRACE_UNTIL_FULL);
	int round, starts = 0, stops = 0, wrong = 0;
	struct record r;

	for (round = 0; round < 10; round++) {
		uint64_t next = 0;

		emit_many(0, 100 * EVENTS);
		while (next_of(trid, &r)) {
			starts += same_type(r.info.posix_event_id, POSIX_TRACE_START);
			stops += same_type(r.info.posix_event_id, POSIX_TRACE_STOP);
			if (same_type(r.info.posix_event_id, one))
				wrong += number_of(&r) != next++;
		}
		wrong += next < EVENTS;
	}
	EQ(wrong, 0);
	EQ(stops, 10);
	CHECK(starts == 10 || starts == 11); /* the next window may be open already */
}

CASE(until_full_stays_stopped_after_a_stop)
{
	trace_id_t trid = small(POSIX_TRACE_UNTIL_FULL);

	emit_many(0, 3);
	OK(posix_trace_stop(trid));
	EQ(count_user(trid), 3);
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_SUSPENDED);
	emit_many(0, 3);
	EQ(count_user(trid), 0);
}

/* ------------------------------------------------------------ loop */

CASE(loop_keeps_the_newest)
{
	trace_id_t trid = small(POSIX_TRACE_LOOP);
	struct posix_trace_status_info is;
	uint64_t first, next;
	struct record r;

	emit_many(0, 100 * EVENTS);
	is = status_of(trid);
	EQ(is.posix_stream_status, POSIX_TRACE_RUNNING);
	EQ(is.posix_stream_full_status, POSIX_TRACE_FULL);
	EQ(is.posix_stream_overrun_status, POSIX_TRACE_OVERRUN);
	EQ(status_of(trid).posix_stream_overrun_status, POSIX_TRACE_NO_OVERRUN);
	NEED(next_user(trid, &r));
	first = number_of(&r);
	CHECK(first > 0 && first <= 99 * EVENTS + 1);
	for (next = first + 1; next_user(trid, &r); next++)
		EQ(number_of(&r), next);
	EQ(next, 100 * EVENTS); /* up to the very last event */
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_NOT_FULL);
}

CASE(loop_reports_what_it_lost)
{
	trace_id_t trid = small(POSIX_TRACE_LOOP), wide;
	long long earliest, latest = 0, stamp;
	struct record r, overflow;

	wide = started(attributes(POSIX_TRACE_UNTIL_FULL, 4 * EVENTS, 8));
	drain(trid);
	emit_number(one, 1);
	NEED(next_of(trid, &r));
	earliest = ns_of(r.info.posix_timestamp);
	emit_many(2, 4); /* the first of these is overwritten first: it lies between the event before and the event after */
	emit_many(4, 100 * EVENTS);
	while (next_user(wide, &r) && number_of(&r) <= 3)
		latest = ns_of(r.info.posix_timestamp);

	NEED(next_of(trid, &overflow));
	CHECK(same_type(overflow.info.posix_event_id, POSIX_TRACE_OVERFLOW));
	EQ(overflow.length, 0);
	stamp = ns_of(overflow.info.posix_timestamp);
	CHECK(stamp >= earliest);
	CHECK(stamp <= latest);
	NEED(next_of(trid, &overflow));
	CHECK(same_type(overflow.info.posix_event_id, POSIX_TRACE_RESUME));
	EQ(overflow.length, 0);
	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, one));
	EQ(ns_of(overflow.info.posix_timestamp), ns_of(r.info.posix_timestamp));
	EQ(count_type(trid, POSIX_TRACE_OVERFLOW), 0); /* one gap, one pair */
}

CASE(loop_every_gap_is_reported)
{
	trace_id_t trid = small(POSIX_TRACE_LOOP);
	int round, overflows = 0, resumes = 0, order = 0;
	long long last = 0;
	struct record r;

	for (round = 0; round < 5; round++) {
		emit_many(0, 10 * EVENTS);
		while (next_of(trid, &r)) {
			order += ns_of(r.info.posix_timestamp) < last;
			last = ns_of(r.info.posix_timestamp);
			overflows += same_type(r.info.posix_event_id, POSIX_TRACE_OVERFLOW);
			resumes += same_type(r.info.posix_event_id, POSIX_TRACE_RESUME);
		}
	}
	EQ(overflows, 5);
	EQ(resumes, 5);
	EQ(order, 0);
}

CASE(loop_gap_while_reading)
{
	trace_id_t trid = small(POSIX_TRACE_LOOP);
	struct record r;
	uint64_t last;

	emit_many(0, 10 * EVENTS);
	NEED(next_user(trid, &r));
	NEED(next_user(trid, &r));
	last = number_of(&r);
	emit_many(10 * EVENTS, 50 * EVENTS); /* overtakes the reader */
	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_OVERFLOW));
	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_RESUME));
	NEED(next_of(trid, &r));
	CHECK(number_of(&r) > last + 1);
}

CASE(loop_without_a_gap_reports_none)
{
	trace_id_t trid = small(POSIX_TRACE_LOOP);
	struct record r;
	int i, reported = 0;

	for (i = 0; i < 2000; i++) { /* wraps many times, but is read in time */
		emit_number(one, i);
		while (next_of(trid, &r))
			reported += same_type(r.info.posix_event_id, POSIX_TRACE_OVERFLOW);
	}
	EQ(reported, 0);
	EQ(status_of(trid).posix_stream_overrun_status, POSIX_TRACE_NO_OVERRUN);
}

CASE(loop_stopped_while_full)
{
	trace_id_t trid = small(POSIX_TRACE_LOOP);
	uint64_t last = 0;
	struct record r;

	emit_many(0, 100 * EVENTS);
	OK(posix_trace_stop(trid));
	emit_many(100 * EVENTS, 200 * EVENTS);
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_SUSPENDED);
	while (next_user(trid, &r))
		last = number_of(&r);
	EQ(last, 100 * EVENTS - 1);
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_NOT_FULL);
}

CASE(loop_data_of_all_lengths_is_whole)
{
	trace_id_t trid;
	unsigned char data[200];
	unsigned int i, wrong = 0, read = 0, rounds = thorough() ? 20000 : 1000;
	struct record r;

	one = type("one");
	trid = started(attributes(POSIX_TRACE_LOOP, EVENTS, 200));
	for (i = 0; i < rounds; i++) {
		memset(data, (int)(i & 0xff), sizeof(data));
		posix_trace_event(one, data, 1 + i % 200);
		if (i % 997 == 0)
			while (next_user(trid, &r)) {
				size_t k;

				read++;
				for (k = 1; k < r.length; k++)
					wrong += r.data[k] != r.data[0];
			}
	}
	EQ(wrong, 0);
	CHECK(read > 0);
}

/* Writers and a reader at full speed: every event read is whole and in order, whatever is lost. */
static bool writers_done;

struct reader {
	trace_id_t trid;
	long long wrong;
};

static void *write_all(void *number)
{
	uint64_t data[3] = {(uint64_t)(uintptr_t)number, 0, 0}, n = thorough() ? 30000 : 1000;

	for (; data[1] < n; data[1]++) {
		data[2] = ~data[1];
		posix_trace_event(one, data, sizeof(data));
	}
	return NULL;
}

static void *read_all(void *arg)
{
	struct reader *reader = arg;
	trace_id_t trid = reader->trid;
	uint64_t next[4] = {0}, data[3];
	long long wrong = 0;
	struct record r;
	bool last;
	int balance = 0;

	do {
		last = __atomic_load_n(&writers_done, __ATOMIC_ACQUIRE);
		while (posix_trace_trygetnext_event(trid, &r.info, r.data, sizeof(r.data), &r.length, &r.unavailable) == 0 &&
		       !r.unavailable) {
			if (same_type(r.info.posix_event_id, POSIX_TRACE_OVERFLOW))
				wrong += balance++ != 0;
			else if (same_type(r.info.posix_event_id, POSIX_TRACE_RESUME))
				wrong += --balance != 0;
			if (!same_type(r.info.posix_event_id, one))
				continue;
			memcpy(data, r.data, sizeof(data));
			wrong += r.length != sizeof(data) || data[0] > 3 || data[2] != ~data[1] || data[1] < next[data[0] & 3];
			next[data[0] & 3] = data[1] + 1;
		}
	} while (!last);
	reader->wrong = wrong;
	return NULL;
}

static void at_full_speed(int policy)
{
	struct reader reader;
	pthread_t writers[4], t;
	uintptr_t i;

	one = type("one");
	reader = (struct reader){.trid = started(attributes(policy, 1000, 24))};
	writers_done = false;
	t = thread(read_all, &reader);
	for (i = 0; i < 4; i++)
		writers[i] = thread(write_all, (void *)i);
	for (i = 0; i < 4; i++)
		join(writers[i]);
	__atomic_store_n(&writers_done, true, __ATOMIC_RELEASE);
	join(t);
	EQ(reader.wrong, 0);
	OK(posix_trace_shutdown(reader.trid));
}

CASE(reader_and_writers_at_full_speed)
{
	at_full_speed(POSIX_TRACE_LOOP);
	at_full_speed(POSIX_TRACE_UNTIL_FULL);
}
