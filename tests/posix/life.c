/* SPDX-License-Identifier: MIT */
/* life.c - a stream from its creation to its end: states, errors, invalid identifiers. */
#include "suite.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

CASE(new_stream)
{
	trace_id_t trid = stream_of(0, NULL);
	struct posix_trace_status_info is = status_of(trid);

	EQ(is.posix_stream_status, POSIX_TRACE_SUSPENDED);
	EQ(is.posix_stream_full_status, POSIX_TRACE_NOT_FULL);
	EQ(is.posix_stream_overrun_status, POSIX_TRACE_NO_OVERRUN);
	EQ(is.posix_stream_flush_status, POSIX_TRACE_NOT_FLUSHING);
	EQ(is.posix_stream_flush_error, 0);
	EQ(is.posix_log_overrun_status, POSIX_TRACE_NO_OVERRUN);
	EQ(is.posix_log_full_status, POSIX_TRACE_NOT_FULL);
	EQ(drain(trid), 0);
}

CASE(start_and_stop)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = stream_of(getpid(), NULL);
	struct record r;
	int automatic = -1;

	emit_number(one, 1); /* before the start: not recorded */
	OK(posix_trace_start(trid));
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_RUNNING);
	OK(posix_trace_start(trid)); /* does nothing more */
	emit_number(one, 2);
	OK(posix_trace_stop(trid));
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_SUSPENDED);
	OK(posix_trace_stop(trid));
	emit_number(one, 3); /* after the stop: not recorded */
	OK(posix_trace_start(trid));
	emit_number(one, 4);

	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_START));
	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, one));
	EQ(number_of(&r), 2);
	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_STOP));
	EQ(r.length, sizeof(int));
	memcpy(&automatic, r.data, sizeof(automatic));
	EQ(automatic, 0);
	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_START));
	NEED(next_of(trid, &r));
	EQ(number_of(&r), 4);
	CHECK(!next_of(trid, &r));
}

CASE(no_such_process)
{
	trace_id_t trid, before;

	memset(&trid, 0x5a, sizeof(trid));
	before = trid;
	FAILS(ESRCH, posix_trace_create(dead_pid(), NULL, &trid));
	CHECK(memcmp(&trid, &before, sizeof(trid)) == 0); /* stored on success only */
	FAILS(ESRCH, posix_trace_create_withlog(dead_pid(), NULL, scratch_file(O_RDWR), &trid));
	CHECK(memcmp(&trid, &before, sizeof(trid)) == 0);
	FAILS(ESRCH, posix_trace_create(INT_MAX, NULL, &trid));
}

CASE(flush_needs_a_log)
{
	trace_attr_t attr;
	trace_id_t trid;

	NEED(posix_trace_attr_init(&attr) == 0);
	OK(posix_trace_attr_setstreamfullpolicy(&attr, POSIX_TRACE_FLUSH));
	FAILS(EINVAL, posix_trace_create(0, &attr, &trid));
	trid = stream_of(0, NULL);
	FAILS(EINVAL, posix_trace_flush(trid));
	OK(posix_trace_shutdown(trid));
}

CASE(null_for_the_identifier_is_refused)
{
	FAILS(EINVAL, posix_trace_create(0, NULL, NULL));
	FAILS(EINVAL, posix_trace_create_withlog(0, NULL, scratch_file(O_RDWR), NULL));
	FAILS(EINVAL, posix_trace_open(scratch_file(O_RDWR), NULL));
}

/* Every function that takes an identifier refuses this identifier. */
static void refused(trace_id_t trid)
{
	struct timespec soon = after_ms(0);
	struct posix_trace_status_info status;
	char name[TRACE_EVENT_NAME_MAX + 1];
	trace_event_set_t set;
	trace_event_id_t id;
	trace_attr_t attr;
	struct record r;
	int unavailable;

	OK(posix_trace_eventset_empty(&set));
	OK(posix_trace_attr_init(&attr));
	FAILS(EINVAL, posix_trace_flush(trid));
	FAILS(EINVAL, posix_trace_shutdown(trid));
	FAILS(EINVAL, posix_trace_clear(trid));
	FAILS(EINVAL, posix_trace_start(trid));
	FAILS(EINVAL, posix_trace_stop(trid));
	FAILS(EINVAL, posix_trace_get_attr(trid, &attr));
	FAILS(EINVAL, posix_trace_get_status(trid, &status));
	FAILS(EINVAL, posix_trace_trid_eventid_open(trid, "one", &id));
	FAILS(EINVAL, posix_trace_eventid_get_name(trid, POSIX_TRACE_START, name));
	FAILS(EINVAL, posix_trace_eventtypelist_getnext_id(trid, &id, &unavailable));
	FAILS(EINVAL, posix_trace_eventtypelist_rewind(trid));
	FAILS(EINVAL, posix_trace_get_filter(trid, &set));
	FAILS(EINVAL, posix_trace_set_filter(trid, &set, POSIX_TRACE_SET_EVENTSET));
	FAILS(EINVAL, posix_trace_getnext_event(trid, &r.info, r.data, sizeof(r.data), &r.length, &unavailable));
	FAILS(EINVAL, posix_trace_timedgetnext_event(trid, &r.info, r.data, sizeof(r.data), &r.length, &unavailable,
						     &soon));
	FAILS(EINVAL, posix_trace_trygetnext_event(trid, &r.info, r.data, sizeof(r.data), &r.length, &unavailable));
	FAILS(EINVAL, posix_trace_rewind(trid));
	FAILS(EINVAL, posix_trace_close(trid));
}

CASE(nothing_works_after_shutdown)
{
	trace_id_t trid = started(NULL), other;

	emit_number(type("one"), 1);
	OK(posix_trace_shutdown(trid));
	refused(trid);
	other = stream_of(0, NULL); /* nor after another stream took its place */
	refused(trid);
	OK(posix_trace_shutdown(other));
	emit_number(type("one"), 2); /* and the trace point does nothing */
}

CASE(unknown_identifiers_are_refused)
{
	trace_id_t trid;

	memset(&trid, 0, sizeof(trid));
	refused(trid);
	memset(&trid, 0xff, sizeof(trid));
	refused(trid);
	memset(&trid, 0x41, sizeof(trid));
	refused(trid);
}

CASE(functions_of_logs_refuse_active_streams)
{
	trace_id_t trid = stream_of(0, NULL);

	FAILS(EINVAL, posix_trace_rewind(trid));
	FAILS(EINVAL, posix_trace_close(trid));
	OK(posix_trace_start(trid));
}

CASE(errno_is_left_alone)
{
	struct posix_trace_status_info status;
	trace_event_set_t set;
	trace_event_id_t id;
	trace_attr_t attr;
	trace_id_t trid, log;
	struct record r;
	int fd = scratch_file(O_RDWR);

	errno = 4711;
	EQ(posix_trace_attr_init(&attr) | posix_trace_attr_setstreamsize(&attr, 4096), 0);
	EQ(posix_trace_create_withlog(0, &attr, fd, &trid), 0);
	EQ(posix_trace_start(trid) | posix_trace_eventid_open("one", &id) | posix_trace_eventset_empty(&set), 0);
	EQ(posix_trace_set_filter(trid, &set, POSIX_TRACE_SET_EVENTSET) | posix_trace_get_status(trid, &status), 0);
	emit_number(id, 1);
	EQ(posix_trace_flush(trid) | posix_trace_stop(trid) | posix_trace_clear(trid), 0);
	EQ(posix_trace_shutdown(trid), 0);
	FAILS(EINVAL, posix_trace_shutdown(trid));
	EQ(posix_trace_open(fd, &log), 0);
	EQ(posix_trace_getnext_event(log, &r.info, r.data, sizeof(r.data), &r.length, &r.unavailable), 0);
	EQ(posix_trace_close(log), 0);
	FAILS(EBADF, posix_trace_create_withlog(0, NULL, -1, &trid));
	EQ(errno, 4711);
}

/* ------------------------------------------------------------ clear */

CASE(clear_while_running)
{
	trace_event_id_t one = type("one"), again;
	trace_id_t trid = started(attributes(POSIX_TRACE_LOOP, 16, 8));
	char name[TRACE_EVENT_NAME_MAX + 1];
	struct record r;
	int i;

	for (i = 0; i < 2000; i++)
		emit_number(one, i);
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_FULL);
	OK(posix_trace_clear(trid));
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_RUNNING);
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_NOT_FULL);
	emit_number(one, 4711);
	NEED(next_user(trid, &r));
	EQ(number_of(&r), 4711);
	CHECK(!next_user(trid, &r));
	OK(posix_trace_trid_eventid_open(trid, "one", &again)); /* names stay */
	CHECK(same_type(one, again));
	OK(posix_trace_eventid_get_name(trid, one, name));
	TEXT(name, "one");
}

CASE(clear_while_suspended)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);

	emit_number(one, 1);
	OK(posix_trace_stop(trid));
	OK(posix_trace_clear(trid));
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_SUSPENDED);
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_NOT_FULL);
	EQ(drain(trid), 0);
	emit_number(one, 2);
	EQ(drain(trid), 0);
	OK(posix_trace_start(trid));
	emit_number(one, 3);
	EQ(count_user(trid), 1);
}

CASE(clear_makes_a_full_stream_empty)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(attributes(POSIX_TRACE_UNTIL_FULL, 16, 8));
	int i;

	for (i = 0; i < 2000; i++)
		emit_number(one, i);
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_FULL);
	OK(posix_trace_clear(trid));
	EQ(status_of(trid).posix_stream_full_status, POSIX_TRACE_NOT_FULL);
	EQ(count_user(trid), 0);
	OK(posix_trace_start(trid)); /* POSIX does not say whether the stream still runs */
	emit_number(one, 1);
	EQ(count_user(trid), 1);
}

/* ------------------------------------------------------------ how many */

CASE(streams_run_out)
{
	static trace_id_t trids[TRACE_SYS_MAX + 1];
	trace_id_t more;
	int n, error = 0;

	for (n = 0; n <= TRACE_SYS_MAX; n++) {
		error = posix_trace_create(0, NULL, &trids[n]);
		if (error)
			break;
	}
	FAILS(EAGAIN, error);
	CHECK(n > 0 && n <= TRACE_SYS_MAX); /* other processes may have some streams */
	NEED(n > 0);
	FAILS(EAGAIN, posix_trace_create_withlog(0, NULL, scratch_file(O_RDWR), &more));
	OK(posix_trace_shutdown(trids[--n]));
	OK(posix_trace_create(0, NULL, &trids[n]));
	for (; n >= 0; n--)
		OK(posix_trace_shutdown(trids[n]));
}

static size_t shared_memory_used(void)
{
	struct statvfs is;

	NEED(statvfs("/dev/shm", &is) == 0);
	return (is.f_blocks - is.f_bfree) * is.f_bsize;
}

/* Does the kernel free memory that is removed from a mapping? A processor emulator may not ask it to. */
static bool removes_memory(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool removed;

	NEED(page != MAP_FAILED);
	*page = 1;
	removed = madvise(page, size, MADV_REMOVE) == 0 && !*page;
	munmap(page, size);
	return removed;
}

CASE(memory_is_given_back)
{
	trace_event_id_t one = type("one");
	trace_attr_t attr;
	size_t before;
	int i;

	if (!getenv("SUITE_APART"))
		suite_skip("others use the memory as well");
	if (!removes_memory())
		suite_skip("memory of a mapping cannot be given back here");
	NEED(posix_trace_attr_init(&attr) == 0);
	OK(posix_trace_attr_setstreamsize(&attr, 1 << 20));
	before = shared_memory_used();
	for (i = 0; i < 20; i++) {
		trace_id_t trid = started(&attr);

		emit_number(one, 1);
		CHECK(shared_memory_used() >= before + (1 << 20));
		OK(posix_trace_shutdown(trid));
	}
	CHECK(shared_memory_used() < before + (1 << 20)); /* the traced process itself holds none of the memory */
}

CASE(no_descriptors_left)
{
	static trace_id_t trids[2 * TRACE_SYS_MAX];
	trace_event_id_t one = type("one");
	trace_id_t before = started(NULL);
	struct rlimit limit, few;
	int n, error = 0, fds;

	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (fds = 3; fds < 12; fds++) { /* whichever descriptor is missing, the library mistakes it for nothing else */
		few = (struct rlimit){(rlim_t)fds, limit.rlim_max};
		NEED(setrlimit(RLIMIT_NOFILE, &few) == 0);
		for (n = 0; n < 2 * TRACE_SYS_MAX; n++) {
			error = posix_trace_create(0, NULL, &trids[n]);
			if (error)
				break;
		}
		CHECK(error == ENOMEM || error == EAGAIN);
		CHECK(n < TRACE_SYS_MAX);
		NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		while (n-- > 0)
			OK(posix_trace_shutdown(trids[n]));
	}
	emit_number(one, 1); /* and no process has taken this process for dead */
	EQ(count_user(before), 1);
	OK(posix_trace_shutdown(before));
}

CASE(many_after_one_another)
{
	trace_event_id_t one = type("one");
	int i, failed = 0, got = 0, rounds = thorough() ? 3 * TRACE_SYS_MAX : 12;

	for (i = 0; i < rounds; i++) {
		trace_id_t trid;

		if (posix_trace_create(0, NULL, &trid)) {
			failed++;
			continue;
		}
		posix_trace_start(trid);
		emit_number(one, i);
		got += count_user(trid);
		posix_trace_shutdown(trid);
	}
	EQ(failed, 0);
	EQ(got, rounds);
}

CASE(sizes_at_their_ends)
{
	const size_t sizes[] = {0, 1, 7, 4095, 65537};
	trace_event_id_t one = type("one");
	trace_attr_t attr;
	trace_id_t trid;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		int error;

		NEED(posix_trace_attr_init(&attr) == 0);
		if (posix_trace_attr_setstreamsize(&attr, sizes[i]) || posix_trace_attr_setmaxdatasize(&attr, sizes[i]))
			continue;
		error = posix_trace_create(0, &attr, &trid);
		CHECK(error == 0 || error == EINVAL || error == ENOMEM);
		if (error)
			continue;
		OK(posix_trace_start(trid));
		emit_number(one, 1);
		count_user(trid);
		OK(posix_trace_shutdown(trid));
	}
	/* more than the number of types */
	NEED(posix_trace_attr_init(&attr) == 0);
	if (posix_trace_attr_setstreamsize(&attr, SIZE_MAX / 2) == 0) {
		int error = posix_trace_create(0, &attr, &trid);

		CHECK(error == EINVAL || error == ENOMEM);
	}
}

/* ------------------------------------------------------------ other processes */

static int use_parents(struct child *parent, void *trid)
{
	(void)parent;
	refused(*(trace_id_t *)trid);
	return 0;
}

CASE(identifiers_mean_nothing_in_a_child)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	struct child c;

	emit_number(one, 1);
	c = child(use_parents, &trid);
	EQ(status_of_child(&c), 0);
	/* nor does its end take anything from the parent */
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_RUNNING);
	emit_number(one, 2);
	EQ(count_user(trid), 2);
	OK(posix_trace_shutdown(trid));
}

/* ------------------------------------------------------------ threads */

static int busy;

static void *toggle(void *arg)
{
	trace_id_t trid = *(trace_id_t *)arg;
	struct posix_trace_status_info is;
	int i, wrong = 0;

	for (i = 0; i < 300; i++) {
		wrong += posix_trace_start(trid) != 0;
		wrong += posix_trace_get_status(trid, &is) != 0;
		wrong += is.posix_stream_status != POSIX_TRACE_RUNNING && is.posix_stream_status != POSIX_TRACE_SUSPENDED;
		wrong += posix_trace_stop(trid) != 0;
		if (i % 50 == 0)
			wrong += posix_trace_clear(trid) != 0;
	}
	__atomic_add_fetch(&busy, wrong, __ATOMIC_RELAXED);
	return NULL;
}

CASE(controllers_at_once)
{
	trace_id_t trid = stream_of(0, NULL);
	trace_event_id_t one = type("one");
	pthread_t threads[4];
	struct record r;
	int i;

	for (i = 0; i < 4; i++)
		threads[i] = thread(toggle, &trid);
	for (i = 0; i < 2000; i++)
		emit_number(one, i);
	for (i = 0; i < 4; i++)
		join(threads[i]);
	EQ(busy, 0);
	OK(posix_trace_clear(trid));
	OK(posix_trace_start(trid));
	emit_number(one, 4711);
	NEED(next_user(trid, &r));
	EQ(number_of(&r), 4711);
}

static void *one_stream(void *arg)
{
	int i, wrong = 0;

	(void)arg;
	for (i = 0; i < 20; i++) {
		trace_id_t trid;

		if (posix_trace_create(0, NULL, &trid))
			continue; /* too many: other processes have some */
		wrong += posix_trace_start(trid) != 0;
		wrong += posix_trace_shutdown(trid) != 0;
	}
	__atomic_add_fetch(&busy, wrong, __ATOMIC_RELAXED);
	return NULL;
}

static void *keep_emitting(void *stop)
{
	trace_event_id_t one = type("one");

	while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE))
		emit_number(one, 1);
	return NULL;
}

CASE(streams_come_and_go_under_writers)
{
	pthread_t makers[3], writers[2];
	int i, stop = 0;

	for (i = 0; i < 2; i++)
		writers[i] = thread(keep_emitting, &stop);
	for (i = 0; i < 3; i++)
		makers[i] = thread(one_stream, NULL);
	for (i = 0; i < 3; i++)
		join(makers[i]);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < 2; i++)
		join(writers[i]);
	EQ(busy, 0);
}
