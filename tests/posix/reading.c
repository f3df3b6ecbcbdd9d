/* SPDX-License-Identifier: MIT */
/* reading.c - reading a stream: order, truncation, waiting with and without a limit, signals, several readers. */
#include "suite.h"

/* The three functions behave alike. */
static int get(trace_id_t trid, struct record *r, size_t size)
{
	return posix_trace_getnext_event(trid, &r->info, r->data, size, &r->length, &r->unavailable);
}

static int try(trace_id_t trid, struct record *r, size_t size)
{
	return posix_trace_trygetnext_event(trid, &r->info, r->data, size, &r->length, &r->unavailable);
}

static int timed(trace_id_t trid, struct record *r, struct timespec until)
{
	return posix_trace_timedgetnext_event(trid, &r->info, r->data, sizeof(r->data), &r->length, &r->unavailable,
					      &until);
}

CASE(oldest_first_and_once)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	struct record r;
	int i;

	for (i = 0; i < 20; i++)
		emit_number(one, i);
	NEED(next_of(trid, &r));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_START));
	for (i = 0; i < 20; i++) {
		NEED(next_of(trid, &r));
		EQ(number_of(&r), i);
	}
	CHECK(!next_of(trid, &r));
	emit_number(one, 4711);
	NEED(next_of(trid, &r));
	EQ(number_of(&r), 4711);
	CHECK(!next_of(trid, &r));
}

CASE(any_of_the_three_reads)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	struct record r;

	OK(get(trid, &r, sizeof(r.data)));
	EQ(r.unavailable, 0);
	emit_number(one, 1);
	emit_number(one, 2);
	emit_number(one, 3);
	OK(get(trid, &r, sizeof(r.data)));
	EQ(number_of(&r), 1);
	EQ(r.unavailable, 0);
	OK(timed(trid, &r, after_ms(60000)));
	EQ(number_of(&r), 2);
	EQ(r.unavailable, 0);
	OK(try(trid, &r, sizeof(r.data)));
	EQ(number_of(&r), 3);
	EQ(r.unavailable, 0);
	OK(try(trid, &r, sizeof(r.data)));
	CHECK(r.unavailable != 0);
}

CASE(small_buffer_cuts)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(attributes(POSIX_TRACE_LOOP, 64, 16));
	char data[40] = "0123456789abcdefghijklmnopqrstuvwxyz";
	struct record r;

	drain(trid);
	posix_trace_event(one, data, 16);
	posix_trace_event(one, data, 16);
	posix_trace_event(one, data, 40);
	posix_trace_event(one, data, 40);
	posix_trace_event(one, data, 16);
	memset(r.data, '#', sizeof(r.data));
	OK(try(trid, &r, 10));
	EQ(r.length, 10);
	EQ(memcmp(r.data, "0123456789#", 11), 0); /* nothing is written beyond */
	EQ(r.info.posix_truncation_status, POSIX_TRACE_TRUNCATED_READ);
	OK(try(trid, &r, 16)); /* the previous event is gone */
	EQ(r.length, 16);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_NOT_TRUNCATED);
	OK(try(trid, &r, 8)); /* cut when recorded and when read: the reading counts */
	EQ(r.length, 8);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_TRUNCATED_READ);
	OK(try(trid, &r, 16));
	EQ(r.length, 16);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_TRUNCATED_RECORD);
	OK(posix_trace_trygetnext_event(trid, &r.info, NULL, 0, &r.length, &r.unavailable));
	EQ(r.length, 0);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_TRUNCATED_READ);
	CHECK(!next_of(trid, &r));
}

CASE(no_data_needs_no_buffer)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	struct record r = {.length = 7};

	drain(trid);
	posix_trace_event(one, NULL, 0);
	OK(posix_trace_getnext_event(trid, &r.info, NULL, 0, &r.length, &r.unavailable));
	EQ(r.length, 0);
	EQ(r.info.posix_truncation_status, POSIX_TRACE_NOT_TRUNCATED);
}

CASE(suspended_streams_are_read)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	struct record r;

	emit_number(one, 1);
	OK(posix_trace_stop(trid));
	OK(get(trid, &r, sizeof(r.data)));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_START));
	OK(get(trid, &r, sizeof(r.data)));
	EQ(number_of(&r), 1);
	OK(get(trid, &r, sizeof(r.data)));
	CHECK(same_type(r.info.posix_event_id, POSIX_TRACE_STOP));
	OK(try(trid, &r, sizeof(r.data)));
	CHECK(r.unavailable != 0);
	FAILS(ETIMEDOUT, timed(trid, &r, after_ms(10)));
}

/* ------------------------------------------------------------ waiting */

CASE(waiting_with_a_limit)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);
	struct timespec limit, now;
	struct record r;

	drain(trid);
	limit = after_ms(50);
	r.unavailable = 0;
	FAILS(ETIMEDOUT, timed(trid, &r, limit));
	clock_gettime(CLOCK_REALTIME, &now);
	CHECK(ns_of(now) >= ns_of(limit)); /* not before its time */
	CHECK(r.unavailable != 0);
	FAILS(ETIMEDOUT, timed(trid, &r, (struct timespec){0, 0}));
	FAILS(EINVAL, timed(trid, &r, (struct timespec){now.tv_sec + 60, 1000000000}));
	FAILS(EINVAL, timed(trid, &r, (struct timespec){now.tv_sec + 60, -1}));
	FAILS(EINVAL, timed(trid, &r, (struct timespec){0, 1000000000}));
	/* if there is an event, the time limit is not checked */
	emit_number(one, 1);
	OK(timed(trid, &r, (struct timespec){0, 0}));
	EQ(number_of(&r), 1);
	emit_number(one, 2);
	OK(timed(trid, &r, (struct timespec){0, 1000000000}));
	EQ(number_of(&r), 2);
	emit_number(one, 3);
	OK(timed(trid, &r, (struct timespec){0, -1}));
	EQ(number_of(&r), 3);
}

struct wait {
	trace_id_t trid;
	struct record r;
	int result;
	bool limited;
	bool waits, over; /* by __atomic_: another thread reads them */
};

static void *wait_for_event(void *arg)
{
	struct wait *w = arg;

	__atomic_store_n(&w->waits, true, __ATOMIC_RELEASE);
	w->result = w->limited ? timed(w->trid, &w->r, after_ms(50000)) : get(w->trid, &w->r, sizeof(w->r.data));
	__atomic_store_n(&w->over, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_over(const struct wait *w)
{
	return __atomic_load_n(&w->over, __ATOMIC_ACQUIRE);
}

/* Until the thread is in the kernel, where it waits. */
static void until_asleep(struct wait *w)
{
	int i;

	while (!__atomic_load_n(&w->waits, __ATOMIC_ACQUIRE))
		usleep(1000);
	for (i = 0; i < 20 && !is_over(w); i++)
		usleep(1000);
}

static void wakes(trace_id_t trid, bool limited, trace_event_id_t one)
{
	struct wait w = {.trid = trid, .limited = limited};
	pthread_t t = thread(wait_for_event, &w);

	until_asleep(&w);
	CHECK(!is_over(&w));
	emit_number(one, 4711);
	join(t);
	FAILS(0, w.result);
	EQ(w.r.unavailable, 0);
	EQ(number_of(&w.r), 4711);
}

CASE(an_event_wakes_the_reader)
{
	trace_event_id_t one = type("one");
	trace_id_t trid = started(NULL);

	drain(trid);
	wakes(trid, false, one);
	wakes(trid, true, one);
}

CASE(readers_wait_for_streams_that_never_started)
{
	trace_event_id_t one = type("one");
	struct wait w = {.trid = stream_of(0, NULL)};
	pthread_t t = thread(wait_for_event, &w);

	until_asleep(&w);
	emit_number(one, 1); /* not recorded */
	until_asleep(&w);
	CHECK(!is_over(&w));
	OK(posix_trace_start(w.trid));
	join(t);
	FAILS(0, w.result);
	CHECK(same_type(w.r.info.posix_event_id, POSIX_TRACE_START));
}

CASE(shutdown_ends_the_waiting)
{
	struct wait w = {.trid = started(NULL)}, limited = {.limited = true};
	pthread_t t, other;

	drain(w.trid);
	limited.trid = w.trid;
	t = thread(wait_for_event, &w);
	other = thread(wait_for_event, &limited);
	until_asleep(&w);
	until_asleep(&limited);
	OK(posix_trace_shutdown(w.trid));
	join(t);
	join(other);
	FAILS(EINVAL, w.result);
	FAILS(EINVAL, limited.result);
}

static void nothing(int number)
{
	(void)number;
}

static void interrupted(bool limited)
{
	trace_event_id_t one = type("one");
	struct sigaction action = {.sa_handler = nothing}; /* without SA_RESTART */
	struct wait w = {.trid = started(NULL), .limited = limited};
	struct record r;
	pthread_t t;

	sigaction(SIGUSR1, &action, NULL);
	drain(w.trid);
	w.r.unavailable = 0;
	t = thread(wait_for_event, &w);
	until_asleep(&w);
	while (!is_over(&w)) { /* a signal that arrives too early interrupts nothing */
		pthread_kill(t, SIGUSR1);
		usleep(1000);
	}
	join(t);
	FAILS(EINTR, w.result);
	CHECK(w.r.unavailable != 0);
	emit_number(one, 1); /* the interruption lost no event */
	NEED(next_of(w.trid, &r));
	EQ(number_of(&r), 1);
	OK(posix_trace_shutdown(w.trid));
}

CASE(signals_interrupt_the_waiting)
{
	interrupted(false);
	interrupted(true);
}

static void *wait_cancelled(void *arg)
{
	struct wait *w = arg;

	__atomic_store_n(&w->waits, true, __ATOMIC_RELEASE);
	for (;;) /* it may be a cancellation point */
		w->result = timed(w->trid, &w->r, after_ms(20));
	return NULL;
}

CASE(a_cancelled_reader_takes_no_event)
{
	trace_event_id_t one = type("one");
	struct wait w = {.trid = started(NULL)};
	struct record r;
	pthread_t t;

	drain(w.trid);
	t = thread(wait_cancelled, &w);
	until_asleep(&w);
	pthread_cancel(t);
	/* if it were none, the thread would go on forever */
	pthread_detach(t);
	do /* until the thread is gone, it may take the events */
		emit_number(one, 1);
	while (timed(w.trid, &r, after_ms(100)) == ETIMEDOUT);
	EQ(number_of(&r), 1);
	OK(posix_trace_shutdown(w.trid));
}

/* ------------------------------------------------------------ several readers */

#define READERS 4

static trace_id_t shared;
static unsigned char seen[20000];
static int total, twice;

static void *read_some(void *arg)
{
	struct record r;

	(void)arg;
	while (__atomic_load_n(&total, __ATOMIC_RELAXED) > 0) {
		if (timed(shared, &r, after_ms(50)) || is_system(r.info.posix_event_id))
			continue;
		if (__atomic_exchange_n(&seen[number_of(&r)], 1, __ATOMIC_RELAXED))
			__atomic_add_fetch(&twice, 1, __ATOMIC_RELAXED);
		__atomic_sub_fetch(&total, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

CASE(each_event_for_one_reader)
{
	int i, n = thorough() ? 20000 : 500, missing = 0;
	trace_event_id_t one = type("one");
	pthread_t threads[READERS];

	shared = started(attributes(POSIX_TRACE_UNTIL_FULL, 20000, 8));
	total = n;
	for (i = 0; i < READERS; i++)
		threads[i] = thread(read_some, NULL);
	for (i = 0; i < n; i++)
		emit_number(one, i);
	for (i = 0; i < READERS; i++)
		join(threads[i]);
	for (i = 0; i < n; i++)
		missing += !seen[i];
	EQ(missing, 0);
	EQ(twice, 0);
}

CASE(null_for_results_is_refused)
{
	trace_id_t trid = started(NULL);
	struct record r;

	FAILS(EINVAL, posix_trace_trygetnext_event(trid, NULL, r.data, sizeof(r.data), &r.length, &r.unavailable));
	FAILS(EINVAL, posix_trace_trygetnext_event(trid, &r.info, NULL, 8, &r.length, &r.unavailable));
	FAILS(EINVAL, posix_trace_trygetnext_event(trid, &r.info, r.data, sizeof(r.data), NULL, &r.unavailable));
	FAILS(EINVAL, posix_trace_trygetnext_event(trid, &r.info, r.data, sizeof(r.data), &r.length, NULL));
	FAILS(EINVAL, posix_trace_get_status(trid, NULL));
	FAILS(EINVAL, posix_trace_get_attr(trid, NULL));
	EQ(drain(trid), 1); /* no reader has taken an event */
}
