/* SPDX-License-Identifier: MIT */
/* event.c - the trace point: what it records and where; a program may call it anywhere, also in signal handlers. */
#include "suite.h"

#include <sys/time.h>

CASE(what_is_recorded)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	struct record r;

	posix_trace_event(one, "twelve bytes", 12);
	NEED(next_user(trid, &r));
	CHECK(same_type(r.info.posix_event_id, one));
	EQ(r.info.posix_pid, getpid());
	CHECK(pthread_equal(r.info.posix_thread_id, pthread_self()));
	EQ(r.info.posix_truncation_status, POSIX_TRACE_NOT_TRUNCATED);
	CHECK(r.info.posix_timestamp.tv_nsec >= 0 && r.info.posix_timestamp.tv_nsec < 1000000000);
	EQ(r.length, 12);
	EQ(memcmp(r.data, "twelve bytes", 12), 0);
	EQ(r.unavailable, 0);
}

CASE(no_data)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	struct record r;

	posix_trace_event(one, NULL, 0);
	posix_trace_event(one, "not looked at", 0);
	NEED(next_user(trid, &r));
	EQ(r.length, 0);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_NOT_TRUNCATED);
	NEED(next_user(trid, &r));
	EQ(r.length, 0);
	CHECK(!next_user(trid, &r));
}

CASE(data_of_every_length)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(attributes(POSIX_TRACE_UNTIL_FULL, 300, 300));
	unsigned char data[300];
	struct record r;
	size_t i, wrong = 0;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7);
	for (i = 0; i <= sizeof(data) - 1; i++)
		posix_trace_event(one, data, i);
	for (i = 0; i <= sizeof(data) - 1; i++) {
		NEED(next_user(trid, &r));
		wrong += r.length != i || memcmp(r.data, data, i) != 0;
	}
	EQ(wrong, 0);
}

CASE(data_is_copied)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	char data[8] = "before";
	struct record r;

	posix_trace_event(one, data, sizeof(data));
	strcpy(data, "after");
	NEED(next_user(trid, &r));
	TEXT(r.data, "before");
}

CASE(long_data_is_cut)
{
	trace_event_id_t one = type("one");
	trace_id_t small = started(attributes(POSIX_TRACE_LOOP, 64, 10)), large;
	char data[100];
	struct record r;

	large = started(attributes(POSIX_TRACE_LOOP, 64, 100));
	memset(data, 'd', sizeof(data));
	posix_trace_event(one, data, 10);
	posix_trace_event(one, data, 11);
	posix_trace_event(one, data, 100);
	NEED(next_user(small, &r));
	EQ(r.length, 10);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_NOT_TRUNCATED);
	NEED(next_user(small, &r));
	EQ(r.length, 10);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_TRUNCATED_RECORD);
	NEED(next_user(small, &r));
	EQ(r.length, 10);
	EQ(memcmp(r.data, data, 10), 0);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_TRUNCATED_RECORD);
	/* each stream cuts by its own limit */
	NEED(next_user(large, &r));
	NEED(next_user(large, &r));
	EQ(r.length, 11);
	NEED(next_user(large, &r));
	EQ(r.length, 100);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_NOT_TRUNCATED);
}

CASE(stream_that_takes_no_data)
{
	trace_event_id_t one = type("one");
	trace_attr_t attr;
	struct record r;
	trace_id_t trid;

	NEED(posix_trace_attr_init(&attr) == 0);
	OK(posix_trace_attr_setmaxdatasize(&attr, 0));
	trid = started(&attr);
	posix_trace_event(one, "data", 4);
	posix_trace_event(one, NULL, 0);
	NEED(next_user(trid, &r));
	EQ(r.length, 0);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_TRUNCATED_RECORD);
	NEED(next_user(trid, &r));
	EQ(r.info.posix_truncation_status, POSIX_TRACE_NOT_TRUNCATED);
}

CASE(every_stream_that_runs)
{
	trace_event_id_t one = type("one");
	trace_id_t running = started(NULL), other = started(NULL), suspended = stream_of(0, NULL);

	emit_number(one, 1);
	EQ(count_user(running), 1);
	EQ(count_user(other), 1);
	EQ(count_user(suspended), 0);
	OK(posix_trace_shutdown(other));
	emit_number(one, 2);
	EQ(count_user(running), 1);
}

CASE(time_does_not_run_backwards)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(attributes(POSIX_TRACE_UNTIL_FULL, 1000, 8));
	long long last = 0, now;
	struct record r;
	int i, back = 0;

	for (i = 0; i < 1000; i++)
		emit_number(one, i);
	for (i = 0; i < 1000; i++) {
		NEED(next_user(trid, &r));
		now = ns_of(r.info.posix_timestamp);
		back += now < last;
		last = now;
	}
	EQ(back, 0);
}

/* ------------------------------------------------------------ where */

static void *after_call;

#if defined(__clang__) /* makes no clones */
#define NEVER_INLINE __attribute__((noinline))
#else
#define NEVER_INLINE __attribute__((noinline, noclone))
#endif

NEVER_INLINE static void emit_here(trace_event_id_t id)
{
	posix_trace_event(id, NULL, 0);
	__asm__ volatile("" ::: "memory"); /* no tail call */
	after_call = __builtin_return_address(0);
}

CASE(address_is_the_callers)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	struct record r, again;
	char *begin = (char *)emit_here;

	emit_here(one);
	emit_here(one);
	NEED(next_user(trid, &r));
	/* inside the calling function, not in the library or the caller's caller; sanitizers make the function large */
	CHECK((char *)r.info.posix_prog_address >= begin);
	CHECK((char *)r.info.posix_prog_address < begin + 1024);
	CHECK(r.info.posix_prog_address != after_call);
	NEED(next_user(trid, &again));
	CHECK(r.info.posix_prog_address == again.info.posix_prog_address);
}

CASE(trace_point_through_a_pointer)
{
	void (*volatile point)(trace_event_id_t, const void *, size_t) = posix_trace_event; /* in case it is a macro too */
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	struct record r;

	point(one, "x", 1);
	(posix_trace_event)(one, "y", 1);
	NEED(next_user(trid, &r));
	EQ(r.data[0], 'x');
	NEED(next_user(trid, &r));
	EQ(r.data[0], 'y');
}

/* ------------------------------------------------------------ harmless */

CASE(errno_is_kept)
{
	trace_event_id_t one = type("one");
	trace_id_t trid;
	int i;

	errno = 4711;
	emit_number(one, 1);
	EQ(errno, 4711);
	trid = started(attributes(POSIX_TRACE_UNTIL_FULL, 8, 8));
	errno = 4711;
	for (i = 0; i < 500; i++)
		emit_number(one, i);
	EQ(errno, 4711);
	OK(posix_trace_shutdown(trid));
}

CASE(bad_types_are_harmless)
{
	trace_event_id_t nonsense;
	trace_id_t trid = started(NULL);
	unsigned int i;

	for (i = 0; i < 256; i += 5) {
		memset(&nonsense, (int)i, sizeof(nonsense));
		posix_trace_event(nonsense, "data", 4);
	}
	emit_number(type("one"), 1);
	CHECK(count_user(trid) >= 1);
}

CASE(no_stream_no_effect)
{
	emit_number(type("one"), 1);
	posix_trace_event(POSIX_TRACE_UNNAMED_USEREVENT, NULL, 0);
	EQ(count_user(stream_of(0, NULL)), 0);
}

/* ------------------------------------------------------------ cancellation */

static volatile bool got_through;

static void *emit_cancelled(void *id)
{
	trace_event_id_t *one = id;
	trace_id_t trid;
	struct record r;
	trace_attr_t attr;
	trace_event_set_t set;
	char name[TRACE_EVENT_NAME_MAX + 1];

	pthread_cancel(pthread_self());
	emit_number(*one, 1);
	/* none of these is a cancellation point either */
	posix_trace_eventid_open("by a thread that is cancelled", one);
	posix_trace_attr_init(&attr);
	posix_trace_attr_setname(&attr, "x");
	posix_trace_attr_getname(&attr, name);
	posix_trace_attr_destroy(&attr);
	posix_trace_eventset_fill(&set, POSIX_TRACE_ALL_EVENTS);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	trid = stream_of(0, NULL);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	posix_trace_start(trid);
	emit_number(*one, 2);
	posix_trace_stop(trid);
	posix_trace_trid_eventid_open(trid, "another", one);
	posix_trace_eventid_get_name(trid, *one, name);
	posix_trace_eventid_equal(trid, *one, *one);
	posix_trace_trygetnext_event(trid, &r.info, r.data, sizeof(r.data), &r.length, &r.unavailable);
	got_through = true;
	pthread_testcancel();
	return NULL;
}

CASE(no_cancellation_point)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	pthread_t t;
	void *value;

#ifdef __SANITIZE_THREAD__
	suite_skip("with ThreadSanitizer anything is a cancellation point");
#endif
	t = thread(emit_cancelled, &one);
	pthread_join(t, &value);
	CHECK(got_through);
	CHECK(value == PTHREAD_CANCELED);
	CHECK(count_user(trid) >= 1);
}

/* ------------------------------------------------------------ threads */

#define WRITERS 8

static trace_event_id_t writers_type;
static unsigned int each;

static void *write_numbers(void *number)
{
	uint32_t data[2] = {(uint32_t)(intptr_t)number, 0};

	for (; data[1] < each; data[1]++)
		posix_trace_event(writers_type, data, sizeof(data));
	return NULL;
}

CASE(threads_write_at_once)
{
	uint32_t next[WRITERS] = {0}, data[2];
	pthread_t ids[WRITERS], seen[WRITERS];
	unsigned int i, wrong = 0, strangers = 0;
	struct record r;
	trace_id_t trid;

	each = thorough() ? 5000 : 200;
	writers_type = type("number");
	trid = started(attributes(POSIX_TRACE_UNTIL_FULL, (size_t)WRITERS * each, 8));
	for (i = 0; i < WRITERS; i++)
		ids[i] = thread(write_numbers, (void *)(intptr_t)i);
	memcpy(seen, ids, sizeof(seen));
	for (i = 0; i < WRITERS; i++)
		join(ids[i]);
	while (next_user(trid, &r)) {
		memcpy(data, r.data, sizeof(data));
		if (data[0] >= WRITERS) {
			wrong++;
			continue;
		}
		wrong += data[1] != next[data[0]]++;
		strangers += !pthread_equal(seen[data[0]], r.info.posix_thread_id);
	}
	EQ(wrong, 0);
	EQ(strangers, 0);
	for (i = 0; i < WRITERS; i++)
		EQ(next[i], each);
	EQ(status_of(trid).posix_stream_overrun_status, POSIX_TRACE_NO_OVERRUN);
}

/* ------------------------------------------------------------ signals */

static trace_event_id_t in_handler, in_main;
static volatile uint64_t handled;

static void emit_in_handler(int number)
{
	(void)number;
	emit_number(in_handler, handled);
	handled++;
}

CASE(signal_handlers_interrupt_the_trace_point)
{
	struct sigaction action = {.sa_handler = emit_in_handler, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	uint64_t next_main = 0, next_handler = 0, written, wrong = 0, rounds = thorough() ? 400 : 30;
	struct record r;
	trace_id_t trid;

	in_handler = type("handler");
	in_main = type("main");
	trid = started(attributes(POSIX_TRACE_UNTIL_FULL, 300000, 8));
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (written = 0; (handled < rounds || written < 1000) && written < 250000; written++)
		emit_number(in_main, written);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN); /* also discards the last signal if it is still pending */
	signal(SIGALRM, SIG_DFL);
	alarm(240);
	while (next_user(trid, &r)) {
		if (same_type(r.info.posix_event_id, in_main))
			wrong += number_of(&r) != next_main++;
		else
			wrong += number_of(&r) != next_handler++;
	}
	EQ(wrong, 0);
	EQ(next_main, written);
	EQ(next_handler, handled);
	CHECK(handled > 0);
}

/* The handler may run anywhere: it cannot wait for a lock of the function that it interrupts. */
CASE(signal_handlers_interrupt_every_function)
{
	struct sigaction action = {.sa_handler = emit_in_handler, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	int round, rounds = thorough() ? 200 : 10, failed = 0, fd = scratch_file(O_RDWR);
	struct posix_trace_status_info status;
	char name[TRACE_EVENT_NAME_MAX + 1];
	trace_event_set_t set;
	trace_event_id_t id;
	struct record r;
	trace_id_t trid;

	in_handler = type("handler");
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (round = 0; round < rounds; round++) {
		snprintf(name, sizeof(name), "name %d", round % 100);
		failed += posix_trace_eventid_open(name, &id) != 0;
		failed += (round % 2 ? posix_trace_create(0, NULL, &trid) :
				       posix_trace_create_withlog(0, NULL, fd, &trid)) != 0;
		failed += posix_trace_start(trid) != 0;
		failed += posix_trace_eventset_empty(&set) != 0;
		failed += posix_trace_set_filter(trid, &set, POSIX_TRACE_SET_EVENTSET) != 0;
		failed += posix_trace_eventid_get_name(trid, id, name) != 0;
		failed += posix_trace_get_status(trid, &status) != 0;
		emit_number(id, 1);
		failed += posix_trace_trygetnext_event(trid, &r.info, r.data, sizeof(r.data), &r.length,
						       &r.unavailable) != 0;
		failed += posix_trace_clear(trid) != 0;
		failed += posix_trace_stop(trid) != 0;
		failed += posix_trace_shutdown(trid) != 0;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	EQ(failed, 0);
	CHECK(handled > 0);
}

static void emit_twice(int number)
{
	emit_number(in_handler, 1);
	if (number == SIGUSR1)
		raise(SIGUSR2);
	emit_number(in_handler, 2);
}

CASE(handlers_in_handlers)
{
	struct sigaction action = {.sa_handler = emit_twice};
	trace_id_t trid = started(NULL);

	in_handler = type("handler");
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	raise(SIGUSR1);
	EQ(count_user(trid), 4);
}

CASE(thread_that_ends_leaves_its_events)
{
	trace_id_t trid;
	int i;

	writers_type = type("number");
	each = 10;
	trid = started(NULL);
	for (i = 0; i < 20; i++)
		join(thread(write_numbers, NULL));
	EQ(count_user(trid), 200);
}
