/* SPDX-License-Identifier: MIT */
/* log.c - streams with a log: what the file may be, what comes into it and out again, its policies and its errors. */
#include "suite.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sched.h>

static trace_event_id_t one;

static trace_id_t logged(int fd, const trace_attr_t *attr)
{
	trace_id_t trid;

	one = type("one");
	NEED(posix_trace_create_withlog(0, attr, fd, &trid) == 0);
	NEED(posix_trace_start(trid) == 0);
	return trid;
}

static void emit_many(uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		emit_number(one, from);
}

static trace_id_t open_log(const char *path)
{
	int fd = open(path, O_RDONLY);
	trace_id_t log;

	NEED(fd >= 0);
	NEED(posix_trace_open(fd, &log) == 0);
	return log;
}

static bool next_number(trace_id_t log, struct record *r)
{
	while (next_logged(log, r))
		if (!is_system(r->info.posix_event_id))
			return true;
	return false;
}

/* The log holds these numbers, in this order, and no others. */
static void holds(const char *path, uint64_t from, uint64_t to)
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

/* Waits for the end of a flush; gives the status then, with what was told once in between. */
static struct posix_trace_status_info until_flushed(trace_id_t trid)
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

static trace_attr_t *log_attributes(int stream_policy, int log_policy, size_t log_size)
{
	trace_attr_t *attr = attributes(stream_policy, 64, 8);

	OK(posix_trace_attr_setlogfullpolicy(attr, log_policy));
	OK(posix_trace_attr_setlogsize(attr, log_size));
	return attr;
}

/* ------------------------------------------------------------ there and back */

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
	CHECK(fcntl(fd, F_GETFD) >= 0); /* the descriptor is the program's own again */
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
	CHECK(!next_number(log, &r)); /* and so it stays */
	OK(posix_trace_close(log));
	FAILS(EINVAL, posix_trace_close(log));
}

CASE(first_and_last_events)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL), log;
	struct record r, last;

	emit_number(one, 1);
	OK(posix_trace_shutdown(trid)); /* which stops */
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

CASE(from_the_beginning_again)
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
	OK(posix_trace_rewind(log)); /* what was read only in part is there in full */
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

CASE(functions_that_a_log_refuses)
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

CASE(a_log_says_what_was_lost_as_often_as_it_is_asked)
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
	holds(scratch_path(), 0, 10); /* a log after every write, not only at the end */
	emit_many(10, 20);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	holds(scratch_path(), 0, 20);
	emit_many(20, 25);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 25);
}

CASE(flush_is_told)
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

CASE(flush_by_itself)
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
	if (!lost) { /* none lost without a word */
		EQ(gaps, 0);
		EQ(next, n);
	}
}

/* ------------------------------------------------------------ what is not specified, but must do no harm */

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
	EQ(n, 10); /* the one that was read is in the log all the same */
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
	for (n = 0; n < 20; n++) { /* beyond the end, it neither waits for ever nor makes anything up */
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
	EQ(wrong, 0); /* the first ones, without a gap */
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
	EQ(next, 5000); /* up to the newest */
	CHECK(next - first > 50);
	stat(scratch_path(), &file);
	CHECK(file.st_size < 20000 + 200000); /* bounded, what is no event aside */
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

/* ------------------------------------------------------------ files */

CASE(bad_descriptors)
{
	int fd = scratch_file(O_RDWR);
	trace_id_t trid;

	FAILS(EBADF, posix_trace_create_withlog(0, NULL, -1, &trid));
	close(fd);
	FAILS(EBADF, posix_trace_create_withlog(0, NULL, fd, &trid));
	fd = open(scratch_path(), O_RDONLY);
	FAILS(EBADF, posix_trace_create_withlog(0, NULL, fd, &trid));
	/* nothing was made */
	FAILS(ESRCH, posix_trace_create_withlog(dead_pid(), NULL, scratch_file(O_RDWR), &trid));
}

CASE(files_that_cannot_loop)
{
	int ends[2], error;
	trace_id_t trid;

	NEED(pipe(ends) == 0);
	FAILS(EINVAL, posix_trace_create_withlog(0, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_LOOP, 1000), ends[1], &trid));
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	FAILS(EINVAL, posix_trace_create_withlog(0, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_LOOP, 1000), ends[1], &trid));
	/* appended to, they are a matter of taste */
	error = posix_trace_create_withlog(0, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000), ends[1], &trid);
	CHECK(error == 0 || error == EINVAL);
	if (!error)
		OK(posix_trace_shutdown(trid));
}

CASE(descriptor_that_appends)
{
	trace_id_t trid;
	int fd, error;

	one = type("one");
	fd = scratch_file(O_RDWR | O_APPEND);
	error = posix_trace_create_withlog(0, NULL, fd, &trid);
	CHECK(error == 0 || error == EINVAL);
	if (error)
		return;
	OK(posix_trace_start(trid));
	emit_many(0, 10);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	emit_many(10, 20);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 20);
}

CASE(write_only)
{
	trace_id_t trid = logged(scratch_file(O_WRONLY), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_LOOP, 30000));

	emit_many(0, 40);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	emit_many(40, 60);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 60);
}

CASE(older_bytes_in_the_file)
{
	static char junk[300000];
	trace_id_t trid;
	int fd = scratch_file(O_WRONLY);

	memset(junk, 0x55, sizeof(junk));
	EQ(write(fd, junk, sizeof(junk)), sizeof(junk));
	EQ(lseek(fd, 0, SEEK_SET), 0);
	trid = logged(fd, NULL);
	emit_many(0, 10);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 10);
}

CASE(older_log_in_the_file)
{
	trace_id_t trid = logged(scratch_file(O_WRONLY), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000));
	uint64_t next;
	int fd;

	for (next = 0; next < 1000; next += 50) {
		emit_many(next, next + 50);
		OK(posix_trace_flush(trid));
		until_flushed(trid);
	}
	OK(posix_trace_shutdown(trid));
	fd = open(scratch_path(), O_WRONLY);
	trid = logged(fd, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000));
	emit_many(5000, 5003);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	holds(scratch_path(), 5000, 5003); /* nothing of the older one, even before the end */
	emit_many(5003, 5005);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 5000, 5005);
}

CASE(descriptor_may_be_closed_by_mistake)
{
	int fd = scratch_file(O_WRONLY);
	trace_id_t trid = logged(fd, NULL);

	emit_many(0, 10);
	close(fd); /* undefined, but the log is complete all the same where the library has its own */
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 10);
}

/* ------------------------------------------------------------ files that are full */

static void no_room(trace_id_t trid, int expected)
{
	struct posix_trace_status_info is = {0};
	int error, i;

	for (i = 0; i < 200 && !is.posix_stream_flush_error; i++) {
		emit_many(0, 50);
		error = posix_trace_flush(trid);
		CHECK(error == 0 || error == expected);
		is = until_flushed(trid);
		if (error)
			break;
		if (is.posix_stream_flush_error) {
			EQ(is.posix_stream_flush_error, expected);
			EQ(status_of(trid).posix_stream_flush_error, 0); /* told once */
		}
	}
	CHECK(i < 200);
	error = posix_trace_shutdown(trid);
	CHECK(error == 0 || error == expected);
	emit_many(0, 5); /* and the program goes on */
}

CASE(device_without_room)
{
	int fd = open("/dev/full", O_WRONLY), error;
	trace_id_t trid;

	one = type("one");
	error = posix_trace_create_withlog(0, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000), fd, &trid);
	CHECK(error == ENOSPC || error == EINVAL || error == 0);
	if (error)
		return;
	OK(posix_trace_start(trid));
	emit_many(0, 10);
	FAILS(ENOSPC, posix_trace_shutdown(trid));
}

CASE(disk_without_room)
{
	char path[PATH_MAX];
	trace_id_t trid;
	int fd;

	scratch_file(O_RDWR);
	unlink(scratch_path());
	mkdir(scratch_path(), 0700);
	if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, "") ||
	    mount("none", scratch_path(), "tmpfs", 0, "size=256k")) {
		rmdir(scratch_path());
		suite_skip("cannot mount a small file system");
	}
	snprintf(path, sizeof(path), "%s/log", scratch_path());
	fd = open(path, O_RDWR | O_CREAT, 0600);
	NEED(fd >= 0);
	trid = logged(fd, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000));
	no_room(trid, ENOSPC);
	{ /* what there was room for is a log */
		trace_id_t log = open_log(path);
		struct record r;
		uint64_t n = 0;

		while (next_number(log, &r))
			n++;
		CHECK(n > 0);
		OK(posix_trace_close(log));
	}
	close(fd);
	umount2(scratch_path(), MNT_DETACH);
	rmdir(scratch_path());
}

CASE(file_as_large_as_it_may_be)
{
	struct rlimit limit = {200000, 200000};
	trace_id_t trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000)), log;
	struct record r;

	NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	no_room(trid, EFBIG); /* SIGXFSZ would have ended the program */
	log = open_log(scratch_path());
	NEED(next_number(log, &r));
	EQ(number_of(&r), 0);
}

static volatile int too_large;

static void count_signal(int number)
{
	(void)number;
	too_large++;
}

CASE(signals_of_the_program_stay_its_own)
{
	struct rlimit limit = {100000, 100000};
	trace_id_t trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000));
	struct sigaction action;
	static char data[200000];
	sigset_t set;

	signal(SIGXFSZ, count_signal);
	NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	no_room(trid, EFBIG);
	EQ(too_large, 0); /* none for what the library wrote */
	EQ(sigaction(SIGXFSZ, NULL, &action), 0);
	CHECK(action.sa_handler == count_signal);
	EQ(pthread_sigmask(SIG_SETMASK, NULL, &set), 0);
	CHECK(!sigismember(&set, SIGXFSZ));
	CHECK(write(scratch_file(O_RDWR), data, sizeof(data)) <= 100000);
	CHECK(write(scratch_file(O_RDWR | O_APPEND), data, 1) == 1);
}

CASE(limit_is_too_small_for_a_stream)
{
	struct rlimit limit = {4096, 4096};
	trace_id_t trid;

	signal(SIGXFSZ, count_signal);
	NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EQ(posix_trace_create(0, NULL, &trid), ENOMEM);
	EQ(too_large, 0);
}

/* ------------------------------------------------------------ files that are no logs */

static void no_log(int fd)
{
	trace_id_t log;
	int error = posix_trace_open(fd, &log);

	CHECK(error == EINVAL || error == EBADF);
}

CASE(not_a_log)
{
	static char junk[100000];
	int fd;

	no_log(-1);
	no_log(4711);
	no_log(open("/", O_RDONLY));
	no_log(open("/dev/null", O_RDWR));
	no_log(open("/dev/zero", O_RDONLY));
	no_log(open(self(), O_RDONLY));
	fd = scratch_file(O_RDWR);
	no_log(fd);
	memset(junk, 0xa5, sizeof(junk));
	EQ(write(fd, junk, sizeof(junk)), sizeof(junk));
	EQ(lseek(fd, 0, SEEK_SET), 0);
	no_log(fd);
	FAILS(EINVAL, posix_trace_open(scratch_file(O_RDWR), NULL));
}

/* Reads a log to its end, or to where it says that it is broken; returns how many of its numbers were right. */
static uint64_t read_broken(const char *path)
{
	trace_id_t log;
	struct record r;
	uint64_t next = 0;
	trace_event_id_t id;
	int unavailable = 0, fd = open(path, O_RDONLY), steps;

	if (posix_trace_open(fd, &log)) {
		close(fd);
		return 0;
	}
	for (steps = 0; steps < 5000 && !unavailable; steps++)
		if (posix_trace_eventtypelist_getnext_id(log, &id, &unavailable))
			break;
	for (steps = 0; steps < 5000; steps++) {
		if (posix_trace_getnext_event(log, &r.info, r.data, sizeof(r.data), &r.length, &r.unavailable) ||
		    r.unavailable)
			break;
		if (r.length > sizeof(r.data))
			return UINT64_MAX;
		if (same_type(r.info.posix_event_id, one) && r.length == 8 && number_of(&r) == next)
			next++;
	}
	posix_trace_close(log);
	close(fd);
	return steps < 5000 ? next : UINT64_MAX;
}

static char *log_bytes(size_t *size)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL);
	struct stat file;
	char *bytes;
	int fd;

	emit_many(0, 100);
	OK(posix_trace_shutdown(trid));
	fd = open(scratch_path(), O_RDONLY);
	NEED(fstat(fd, &file) == 0);
	*size = (size_t)file.st_size;
	bytes = malloc(*size);
	NEED(bytes && read(fd, bytes, *size) == (ssize_t)*size);
	close(fd);
	return bytes;
}

CASE(logs_cut_short)
{
	size_t size, cut, step, wrong = 0;
	char *bytes = log_bytes(&size);
	int fd = scratch_file(O_RDWR);

	step = size / (thorough() ? 200 : 20) + 1;
	EQ(write(fd, bytes, size), size);
	EQ(read_broken(scratch_path()), 100);
	for (cut = size; cut > step; cut -= step) {
		EQ(ftruncate(fd, (off_t)cut), 0);
		wrong += read_broken(scratch_path()) > 100;
	}
	EQ(wrong, 0);
	free(bytes);
}

CASE(logs_with_wrong_bytes)
{
	size_t size, at, wrong = 0;
	char *bytes = log_bytes(&size);
	int fd = scratch_file(O_RDWR), i, rounds = thorough() ? 1500 : 60;

	EQ(write(fd, bytes, size), size);
	srandom(4711);
	for (i = 0; i < rounds; i++) {
		char byte = (char)random();

		at = (size_t)random() % (i % 2 && size > 4096 ? 4096 : size);
		EQ(pwrite(fd, &byte, 1, (off_t)at), 1);
		wrong += read_broken(scratch_path()) > 100;
		EQ(pwrite(fd, bytes + at, 1, (off_t)at), 1);
	}
	EQ(wrong, 0);
	EQ(read_broken(scratch_path()), 100);
	free(bytes);
}

/* ------------------------------------------------------------ elsewhere */

static int read_log(struct child *parent, void *path)
{
	(void)parent;
	holds(path, 0, 30);
	return 0;
}

CASE(another_process_reads_it)
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

CASE(an_open_log_is_not_a_childs)
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
