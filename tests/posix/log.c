/* SPDX-License-Identifier: MIT */
/* log.c - streams with a log: what the log holds, when, and the policies of the log. */
#include "logs.h"

#include <sys/stat.h>

/* ------------------------------------------------------------ written and read */

CASE(written_and_read)
{
	trace_attr_t attr, is;
	struct posix_trace_status_info status;
	char name[TRACE_EVENT_NAME_MAX + 1];
	struct timespec made, read_back;
	trace_id_t trid, log;
	struct record r;
	size_t size;
	int policy, fd;

	NEED(posix_trace_attr_init(&attr) == 0 && posix_trace_attr_init(&is) == 0);
	OK(posix_trace_attr_setname(&attr, "my_log"));
	OK(posix_trace_attr_setmaxdatasize(&attr, 24));
	OK(posix_trace_attr_setlogsize(&attr, 100000));
	fd = scratch_file(O_RDWR);
	trid = logged(fd, &attr);
	OK(posix_trace_get_attr(trid, &is));
	OK(posix_trace_attr_getcreatetime(&is, &made));
	emit_number(one, 4711);
	posix_trace_event(type("two"), "0123456789012345678901234567890", 30);
	OK(posix_trace_stop(trid));
	OK(posix_trace_shutdown(trid));
	CHECK(fcntl(fd, F_GETFD) >= 0); /* the descriptor belongs to the program again */
	close(fd);

	log = open_log(scratch_path());
	OK(posix_trace_get_attr(log, &is));
	OK(posix_trace_attr_getname(&is, name));
	TEXT(name, "my_log");
	OK(posix_trace_attr_getmaxdatasize(&is, &size));
	EQ(size, 24);
	OK(posix_trace_attr_getlogsize(&is, &size));
	EQ(size, 100000);
	OK(posix_trace_attr_getstreamfullpolicy(&is, &policy));
	EQ(policy, POSIX_TRACE_FLUSH);
	OK(posix_trace_attr_getlogfullpolicy(&is, &policy));
	EQ(policy, POSIX_TRACE_LOOP);
	OK(posix_trace_attr_getcreatetime(&is, &read_back));
	EQ(ns_of(read_back), ns_of(made));
	OK(posix_trace_attr_getgenversion(&is, name));
	CHECK(strlen(name) > 0);
	OK(posix_trace_get_status(log, &status));
	EQ(status.posix_stream_status, POSIX_TRACE_SUSPENDED);
	EQ(status.posix_stream_overrun_status, POSIX_TRACE_NO_OVERRUN);
	EQ(status.posix_log_overrun_status, POSIX_TRACE_NO_OVERRUN);
	EQ(status.posix_stream_flush_status, POSIX_TRACE_NOT_FLUSHING);

	NEED(next_number(log, &r));
	EQ(r.info.posix_pid, getpid());
	CHECK(pthread_equal(r.info.posix_thread_id, pthread_self()));
	OK(posix_trace_eventid_get_name(log, r.info.posix_event_id, name));
	TEXT(name, "one");
	EQ(number_of(&r), 4711);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_NOT_TRUNCATED);
	NEED(next_number(log, &r));
	OK(posix_trace_eventid_get_name(log, r.info.posix_event_id, name));
	TEXT(name, "two");
	EQ(r.length, 24);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_TRUNCATED_RECORD);
	CHECK(!next_number(log, &r));
	CHECK(!next_number(log, &r)); /* and this stays so */
	OK(posix_trace_close(log));
	FAILS(EINVAL, posix_trace_close(log));
}

CASE(first_and_last_events)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL), log;
	struct record r, last;

	emit_number(one, 1);
	OK(posix_trace_shutdown(trid)); /* also stops the stream */
	log = open_log(scratch_path());
	NEED(next_logged(log, &r));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_START));
	memset(&last, 0, sizeof(last));
	while (next_logged(log, &r))
		if (!same_type(r.info.posix_event_id, POSIX_TRACE_FLUSH_START) &&
		    !same_type(r.info.posix_event_id, POSIX_TRACE_FLUSH_STOP))
			last = r;
	CHECK(same_type(last.info.posix_event_id, POSIX_TRACE_STOP));
}

CASE(rewind_reads_from_the_beginning)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL), log;
	struct record r;
	int round;

	emit_many(0, 5);
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	for (round = 0; round < 3; round++) {
		NEED(next_number(log, &r));
		EQ(number_of(&r), 0);
		while (round && next_number(log, &r))
			;
		OK(posix_trace_rewind(log));
	}
	OK(posix_trace_close(log));
	FAILS(EINVAL, posix_trace_rewind(log));
}

CASE(small_buffer_cuts_what_a_log_gives)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL), log;
	struct record r;

	emit_number(one, 0x1122334455667788);
	emit_number(one, 2);
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	do
		OK(posix_trace_getnext_event(log, &r.info, r.data, 3, &r.length, &r.unavailable));
	while (!same_type(r.info.posix_event_id, one));
	EQ(r.length, 3);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_TRUNCATED_READ);
	NEED(next_number(log, &r));
	EQ(number_of(&r), 2);
	OK(posix_trace_rewind(log)); /* an event that was read only in part is complete */
	NEED(next_number(log, &r));
	EQ(number_of(&r), 0x1122334455667788);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_NOT_TRUNCATED);
}

CASE(types_of_a_log)
{
	trace_id_t trid, log;
	trace_event_id_t id;
	int unavailable = -1, n = 0, found = 0;
	char name[TRACE_EVENT_NAME_MAX + 1];

	trid = logged(scratch_file(O_RDWR), NULL);
	type("never recorded");
	OK(posix_trace_trid_eventid_open(trid, "by the controller", &id));
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	for (;;) {
		OK(posix_trace_eventtypelist_getnext_id(log, &id, &unavailable));
		if (unavailable)
			break;
		OK(posix_trace_eventid_get_name(log, id, name));
		n++;
		found += !strcmp(name, "one") + !strcmp(name, "never recorded") + !strcmp(name, "by the controller") +
			 !strcmp(name, "posix_trace_start") + !strcmp(name, "posix_trace_unnamed_userevent");
	}
	EQ(found, 5);
	CHECK(n >= 12);
	OK(posix_trace_eventtypelist_rewind(log));
	OK(posix_trace_eventtypelist_getnext_id(log, &id, &unavailable));
	EQ(unavailable, 0);
	CHECK(posix_trace_eventid_equal(log, id, id) != 0);
	CHECK(posix_trace_eventid_equal(log, POSIX_TRACE_START, POSIX_TRACE_STOP) == 0);
}

CASE(logs_refuse_functions_of_active_streams)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL), log;
	trace_event_set_t set;
	trace_event_id_t id;
	struct record r;

	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	OK(posix_trace_eventset_empty(&set));
	FAILS(EINVAL, posix_trace_flush(log));
	FAILS(EINVAL, posix_trace_shutdown(log));
	FAILS(EINVAL, posix_trace_clear(log));
	FAILS(EINVAL, posix_trace_start(log));
	FAILS(EINVAL, posix_trace_stop(log));
	FAILS(EINVAL, posix_trace_get_filter(log, &set));
	FAILS(EINVAL, posix_trace_set_filter(log, &set, POSIX_TRACE_SET_EVENTSET));
	FAILS(EINVAL, posix_trace_trid_eventid_open(log, "one", &id));
	FAILS(EINVAL, posix_trace_trygetnext_event(log, &r.info, r.data, sizeof(r.data), &r.length, &r.unavailable));
}

CASE(two_readers_of_one_log)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL), first, second;
	struct record r;

	emit_many(0, 5);
	OK(posix_trace_shutdown(trid));
	first = open_log(scratch_path());
	second = open_log(scratch_path());
	NEED(next_number(first, &r));
	NEED(next_number(first, &r));
	EQ(number_of(&r), 1);
	NEED(next_number(second, &r));
	EQ(number_of(&r), 0);
	OK(posix_trace_close(first));
	NEED(next_number(second, &r));
	EQ(number_of(&r), 1);
}

CASE(a_log_reports_lost_events_every_time)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_LOOP, POSIX_TRACE_LOOP, 100000)), log;

	emit_many(0, 1000);
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	EQ(status_of(log).posix_stream_overrun_status, POSIX_TRACE_OVERRUN);
	EQ(status_of(log).posix_stream_overrun_status, POSIX_TRACE_OVERRUN);
}

/* ------------------------------------------------------------ flush */

CASE(flush_brings_events_into_the_log)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL);

	emit_many(0, 10);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	holds(scratch_path(), 0, 10); /* a valid log after every write, not only at the end */
	emit_many(10, 20);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	holds(scratch_path(), 0, 20);
	emit_many(20, 25);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 25);
}

CASE(flush_is_reported)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL), log;
	struct record r;
	int depth = 0, flushes = 0, wrong = 0;

	emit_many(0, 10);
	OK(posix_trace_flush(trid));
	EQ(until_flushed(trid).posix_stream_flush_error, 0);
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	while (next_logged(log, &r)) {
		if (same_type(r.info.posix_event_id, POSIX_TRACE_FLUSH_START)) {
			wrong += depth++ != 0;
			flushes++;
		}
		if (same_type(r.info.posix_event_id, POSIX_TRACE_FLUSH_STOP))
			wrong += --depth != 0;
	}
	EQ(wrong, 0);
	CHECK(flushes >= 1);
}

CASE(flush_makes_room)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_UNTIL_FULL, POSIX_TRACE_LOOP, 1 << 20));

	emit_many(0, 1000);
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_FULL);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_NOT_FULL);
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_RUNNING);
	OK(posix_trace_shutdown(trid));
}

CASE(flush_of_a_suspended_stream)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL);

	emit_many(0, 10);
	OK(posix_trace_stop(trid));
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_SUSPENDED);
	holds(scratch_path(), 0, 10);
}

CASE(a_full_stream_flushes_itself)
{
	uint64_t n = thorough() ? 100000 : 3000;
	trace_id_t trid, log;
	struct record r;
	uint64_t next = 0, wrong = 0, gaps = 0;
	bool lost;

	trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000));
	emit_many(0, n);
	lost = status_of(trid).posix_stream_overrun_status == POSIX_TRACE_OVERRUN;
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	while (next_number(log, &r)) {
		wrong += number_of(&r) < next;
		gaps += number_of(&r) > next;
		next = number_of(&r) + 1;
	}
	EQ(wrong, 0);
	if (!lost) { /* no event was lost silently */
		EQ(gaps, 0);
		EQ(next, n);
	}
}

/* ------------------------------------------------------------ not specified, but must do no harm */

CASE(active_stream_with_a_log_is_read)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL), log;
	int error, n = 0;
	struct record r;

	emit_many(0, 10);
	error = posix_trace_trygetnext_event(trid, &r.info, r.data, sizeof(r.data), &r.length, &r.unavailable);
	CHECK(error == 0 || error == EINVAL);
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	while (next_number(log, &r))
		n++;
	EQ(n, 10); /* events that were read are in the log all the same */
}

CASE(log_read_with_a_limit)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL), log;
	struct timespec soon = after_ms(50);
	struct record r;
	int error, n;

	emit_many(0, 3);
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	for (n = 0; n < 20; n++) { /* at the end, the reader neither waits forever nor invents events */
		error = posix_trace_timedgetnext_event(log, &r.info, r.data, sizeof(r.data), &r.length, &r.unavailable,
						       &soon);
		CHECK(error == 0 || error == EINVAL || error == ETIMEDOUT);
		if (error || r.unavailable)
			break;
	}
	CHECK(n < 20);
}

/* ------------------------------------------------------------ clear */

CASE(clear_empties_the_log)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL);

	emit_many(0, 50);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	OK(posix_trace_clear(trid));
	emit_many(100, 103);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 100, 103);
}

/* ------------------------------------------------------------ full logs */

CASE(log_until_full)
{
	trace_id_t trid, log;
	struct record r, last;
	uint64_t next = 0, wrong = 0;
	struct posix_trace_status_info is;

	trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_UNTIL_FULL, 20000));
	emit_many(0, 5000);
	OK(posix_trace_flush(trid));
	is = until_flushed(trid);
	EQ(is.posix_log_full_status, POSIX_TRACE_FULL);
	EQ(is.posix_log_overrun_status, POSIX_TRACE_OVERRUN);
	EQ(status_of(trid).posix_log_overrun_status, POSIX_TRACE_NO_OVERRUN);
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	memset(&last, 0, sizeof(last));
	while (next_logged(log, &r)) {
		last = r;
		if (same_type(r.info.posix_event_id, one))
			wrong += number_of(&r) != next++;
	}
	EQ(wrong, 0); /* the first events, without a gap */
	CHECK(next > 50 && next < 5000);
	CHECK(same_type(last.info.posix_event_id, POSIX_TRACE_STOP));
	EQ(status_of(log).posix_log_full_status, POSIX_TRACE_FULL);
}

CASE(log_loop)
{
	trace_id_t trid, log;
	struct record r;
	uint64_t first, next, wrong = 0;
	struct stat file;

	trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_LOOP, 20000));
	for (next = 0; next < 5000; next += 50) {
		emit_many(next, next + 50);
		OK(posix_trace_flush(trid));
		until_flushed(trid);
	}
	EQ(status_of(trid).posix_log_full_status, POSIX_TRACE_FULL);
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	EQ(status_of(log).posix_log_overrun_status, POSIX_TRACE_OVERRUN);
	NEED(next_number(log, &r));
	first = number_of(&r);
	CHECK(first > 0);
	for (next = first + 1; next_number(log, &r); next++)
		wrong += number_of(&r) != next; /* oldest first */
	EQ(wrong, 0);
	EQ(next, 5000); /* up to the newest event */
	CHECK(next - first > 50);
	stat(scratch_path(), &file);
	CHECK(file.st_size < 20000 + 200000); /* bounded, apart from data that is no event */
}

CASE(log_append)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000));
	uint64_t next;

	for (next = 0; next < 2000; next += 50) {
		emit_many(next, next + 50);
		OK(posix_trace_flush(trid));
		until_flushed(trid);
	}
	EQ(status_of(trid).posix_log_overrun_status, POSIX_TRACE_NO_OVERRUN);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 2000);
}

CASE(stream_loop_into_a_log)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_LOOP, POSIX_TRACE_LOOP, 1 << 20)), log;
	uint64_t last = 0, n = 0;
	struct record r;

	emit_many(0, 5000);
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	for (; next_number(log, &r); n++)
		last = number_of(&r);
	EQ(last, 4999);
	CHECK(n >= 64 && n < 5000);
}

/* ------------------------------------------------------------ elsewhere */

static int read_log(struct child *parent, void *path)
{
	(void)parent;
	holds(path, 0, 30);
	return 0;
}

CASE(another_process_reads_the_log)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL);
	char path[PATH_MAX];
	struct child c;

	strcpy(path, scratch_path());
	emit_many(0, 30);
	OK(posix_trace_shutdown(trid));
	c = child(read_log, path);
	EQ(status_of_child(&c), 0);
}

static int use_log(struct child *parent, void *log)
{
	struct record r;

	(void)parent;
	FAILS(EINVAL, posix_trace_getnext_event(*(trace_id_t *)log, &r.info, r.data, 8, &r.length, &r.unavailable));
	FAILS(EINVAL, posix_trace_close(*(trace_id_t *)log));
	return 0;
}

CASE(a_child_cannot_use_an_open_log)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL), log;
	struct record r;
	struct child c;

	emit_many(0, 3);
	OK(posix_trace_shutdown(trid));
	log = open_log(scratch_path());
	c = child(use_log, &log);
	EQ(status_of_child(&c), 0);
	NEED(next_number(log, &r));
	EQ(number_of(&r), 0);
	OK(posix_trace_close(log));
}

CASE(several_logs_at_once)
{
	char first[PATH_MAX];
	trace_id_t trids[2];

	trids[0] = logged(scratch_file(O_RDWR), NULL);
	strcpy(first, scratch_path());
	emit_many(0, 3);
	trids[1] = logged(scratch_file(O_RDWR), NULL);
	emit_many(3, 6);
	OK(posix_trace_shutdown(trids[0]));
	OK(posix_trace_shutdown(trids[1]));
	holds(first, 0, 6);
	holds(scratch_path(), 3, 6);
}
