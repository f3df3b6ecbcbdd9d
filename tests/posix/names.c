/* SPDX-License-Identifier: MIT */
/* names.c - event types: names and identifiers, from the program's side and from the controller's; their list. */
#include "suite.h"

#include <poll.h>
#include <semaphore.h>

static const struct {
	trace_event_id_t id;
	const char *name;
} predefined[] = {
	{POSIX_TRACE_ERROR, "posix_trace_error"},
	{POSIX_TRACE_START, "posix_trace_start"},
	{POSIX_TRACE_STOP, "posix_trace_stop"},
	{POSIX_TRACE_FILTER, "posix_trace_filter"},
	{POSIX_TRACE_OVERFLOW, "posix_trace_overflow"},
	{POSIX_TRACE_RESUME, "posix_trace_resume"},
	{POSIX_TRACE_FLUSH_START, "posix_trace_flush_start"},
	{POSIX_TRACE_FLUSH_STOP, "posix_trace_flush_stop"},
	{POSIX_TRACE_UNNAMED_USEREVENT, "posix_trace_unnamed_userevent"},
};

static const char *name_of(trace_id_t trid, trace_event_id_t id)
{
	static char name[TRACE_EVENT_NAME_MAX + 1];

	strcpy(name, "?");
	OK(posix_trace_eventid_get_name(trid, id, name));
	return name;
}

/* How many times a stream's list has a type. */
static int listed(trace_id_t trid, trace_event_id_t wanted)
{
	trace_event_id_t id;
	int unavailable = -1, n = 0;

	OK(posix_trace_eventtypelist_rewind(trid));
	for (;;) {
		OK(posix_trace_eventtypelist_getnext_id(trid, &id, &unavailable));
		if (unavailable)
			return n;
		n += same_type(id, wanted);
	}
}

CASE(one_name_one_type)
{
	trace_event_id_t one = type("one"), two = type("two"), again = type("one");
	size_t i;

	CHECK(same_type(one, again));
	CHECK(!same_type(one, two));
	for (i = 0; i < 9; i++)
		CHECK(!same_type(one, predefined[i].id) && !same_type(two, predefined[i].id));
	CHECK(!same_type(type("One"), one));
}

CASE(long_names)
{
	char name[TRACE_EVENT_NAME_MAX + 2];
	trace_event_id_t longest, other;
	trace_id_t trid = stream_of(0, NULL);

	memset(name, 'n', sizeof(name));
	name[TRACE_EVENT_NAME_MAX] = '\0';
	OK(posix_trace_eventid_open(name, &longest));
	TEXT(name_of(trid, longest), name);
	OK(posix_trace_trid_eventid_open(trid, name, &other));
	CHECK(same_type(longest, other));
	name[TRACE_EVENT_NAME_MAX - 1] = 'm';
	OK(posix_trace_eventid_open(name, &other)); /* the last byte counts */
	CHECK(!same_type(longest, other));

	name[TRACE_EVENT_NAME_MAX] = 'n';
	name[TRACE_EVENT_NAME_MAX + 1] = '\0';
	other = longest;
	FAILS(ENAMETOOLONG, posix_trace_eventid_open(name, &other));
	FAILS(ENAMETOOLONG, posix_trace_trid_eventid_open(trid, name, &other));
	CHECK(same_type(longest, other));
}

CASE(predefined_names)
{
	trace_id_t trid = stream_of(0, NULL);
	size_t i;

	for (i = 0; i < 9; i++)
		TEXT(name_of(trid, predefined[i].id), predefined[i].name);
}

CASE(predefined_names_may_be_opened)
{
	trace_id_t trid = stream_of(0, NULL);
	trace_event_id_t id, again;

	/* POSIX does not say whether this is the system's type, but it is a type, and always the same */
	OK(posix_trace_eventid_open("posix_trace_start", &id));
	OK(posix_trace_eventid_open("posix_trace_start", &again));
	CHECK(same_type(id, again));
	TEXT(name_of(trid, id), "posix_trace_start");
}

CASE(name_fits_exactly)
{
	trace_id_t trid = stream_of(0, NULL);
	char name[16];

	memset(name, 0x7f, sizeof(name));
	OK(posix_trace_eventid_get_name(trid, type("seven.."), name));
	TEXT(name, "seven..");
	EQ(name[8], 0x7f); /* nothing after the end of the name */
}

CASE(types_run_out)
{
	trace_event_id_t ids[TRACE_USER_EVENT_MAX - 1], id;
	trace_id_t trid = stream_of(0, NULL);
	char name[TRACE_EVENT_NAME_MAX + 1];
	int i, wrong = 0;

	for (i = 0; i < TRACE_USER_EVENT_MAX - 1; i++) {
		snprintf(name, sizeof(name), "type %d", i);
		if (posix_trace_eventid_open(name, &ids[i]) || same_type(ids[i], POSIX_TRACE_UNNAMED_USEREVENT))
			wrong++;
	}
	EQ(wrong, 0);
	OK(posix_trace_eventid_open("one too many", &id)); /* no error */
	CHECK(same_type(id, POSIX_TRACE_UNNAMED_USEREVENT));
	OK(posix_trace_trid_eventid_open(trid, "another one", &id));
	CHECK(same_type(id, POSIX_TRACE_UNNAMED_USEREVENT));
	/* the other types are unchanged */
	CHECK(same_type(type("type 0"), ids[0]));
	snprintf(name, sizeof(name), "type %d", TRACE_USER_EVENT_MAX - 2);
	CHECK(same_type(type(name), ids[TRACE_USER_EVENT_MAX - 2]));
	TEXT(name_of(trid, ids[TRACE_USER_EVENT_MAX - 2]), name);
	/* and the type of unnamed events can be recorded */
	OK(posix_trace_start(trid));
	emit_number(id, 1);
	EQ(count_user(trid), 1);
}

CASE(types_opened_before_the_stream)
{
	trace_event_id_t before = type("before"), id;
	trace_id_t trid = stream_of(0, NULL);

	TEXT(name_of(trid, before), "before");
	OK(posix_trace_trid_eventid_open(trid, "before", &id));
	CHECK(same_type(id, before));
	EQ(listed(trid, before), 1);
}

CASE(types_opened_by_the_controller_first)
{
	trace_id_t trid = stream_of(0, NULL);
	trace_event_id_t id;

	OK(posix_trace_trid_eventid_open(trid, "by the controller", &id));
	CHECK(same_type(type("by the controller"), id));
	TEXT(name_of(trid, id), "by the controller");
}

CASE(streams_of_one_process_agree)
{
	trace_id_t one = stream_of(0, NULL), two = stream_of(0, NULL);
	trace_event_id_t first, second;

	OK(posix_trace_trid_eventid_open(one, "same", &first));
	OK(posix_trace_trid_eventid_open(two, "same", &second));
	CHECK(same_type(first, second));
	TEXT(name_of(two, first), "same");
	/* the names are the process's and outlive any stream */
	OK(posix_trace_shutdown(one));
	OK(posix_trace_shutdown(two));
	one = stream_of(0, NULL);
	TEXT(name_of(one, first), "same");
}

CASE(equality)
{
	trace_event_id_t one = type("one"), two = type("two"), again = type("one");
	trace_id_t trid = stream_of(0, NULL);

	CHECK(posix_trace_eventid_equal(trid, one, again) != 0);
	CHECK(posix_trace_eventid_equal(trid, one, two) == 0);
	CHECK(posix_trace_eventid_equal(trid, POSIX_TRACE_START, POSIX_TRACE_START) != 0);
	CHECK(posix_trace_eventid_equal(trid, POSIX_TRACE_START, POSIX_TRACE_STOP) == 0);
	CHECK(posix_trace_eventid_equal(trid, one, POSIX_TRACE_UNNAMED_USEREVENT) == 0);
}

CASE(type_without_a_name)
{
	trace_id_t trid = stream_of(0, NULL);
	char name[TRACE_EVENT_NAME_MAX + 1];
	trace_event_id_t nonsense;

	memset(&nonsense, 0xee, sizeof(nonsense));
	FAILS(EINVAL, posix_trace_eventid_get_name(trid, nonsense, name));
}

CASE(list_has_every_type_once)
{
	trace_event_id_t one = type("one"), id;
	trace_id_t trid = stream_of(0, NULL), other = stream_of(0, NULL);
	int unavailable = -1, n = 0, users = 0;
	size_t i;

	for (i = 0; i < 9; i++)
		EQ(listed(trid, predefined[i].id), 1);
	EQ(listed(trid, one), 1);

	OK(posix_trace_eventtypelist_rewind(trid));
	for (;;) {
		OK(posix_trace_eventtypelist_getnext_id(trid, &id, &unavailable));
		if (unavailable)
			break;
		n++;
		users += !is_system(id) && strncmp(name_of(trid, id), "posix_trace_", 12) != 0;
	}
	CHECK(n >= 10);
	CHECK(users >= 1); /* the implementation may have its own system types */
	/* the list stays at its end, but finds a new type there */
	OK(posix_trace_eventtypelist_getnext_id(trid, &id, &unavailable));
	CHECK(unavailable);
	type("a new one");
	EQ(listed(trid, type("a new one")), 1);
	/* each stream has its own place in the list */
	OK(posix_trace_eventtypelist_rewind(trid));
	OK(posix_trace_eventtypelist_rewind(other));
	OK(posix_trace_eventtypelist_getnext_id(trid, &id, &unavailable));
	OK(posix_trace_eventtypelist_getnext_id(trid, &id, &unavailable));
	OK(posix_trace_eventtypelist_getnext_id(other, &one, &unavailable));
	CHECK(!same_type(id, one));
	OK(posix_trace_eventtypelist_rewind(trid));
	OK(posix_trace_eventtypelist_getnext_id(trid, &id, &unavailable));
	CHECK(same_type(id, one));
	EQ(unavailable, 0);
}

CASE(bad_stream)
{
	trace_id_t trid = stream_of(0, NULL);
	char name[TRACE_EVENT_NAME_MAX + 1];
	trace_event_id_t id;
	int unavailable;

	OK(posix_trace_shutdown(trid));
	FAILS(EINVAL, posix_trace_trid_eventid_open(trid, "one", &id));
	FAILS(EINVAL, posix_trace_eventid_get_name(trid, POSIX_TRACE_START, name));
	FAILS(EINVAL, posix_trace_eventtypelist_getnext_id(trid, &id, &unavailable));
	FAILS(EINVAL, posix_trace_eventtypelist_rewind(trid));
}

/* ------------------------------------------------------------ many at once */

#define OPENERS 8

static trace_event_id_t opened[OPENERS][16];
static pthread_barrier_t together;

static void *open_names(void *number)
{
	trace_event_id_t *ids = opened[(intptr_t)number];
	char name[TRACE_EVENT_NAME_MAX + 1];
	int i;

	pthread_barrier_wait(&together);
	for (i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		posix_trace_eventid_open(name, &ids[i]);
	}
	return NULL;
}

CASE(threads_get_the_same_types)
{
	pthread_t threads[OPENERS];
	int i, j, same = 0;

	pthread_barrier_init(&together, NULL, OPENERS);
	for (i = 0; i < OPENERS; i++)
		threads[i] = thread(open_names, (void *)(intptr_t)i);
	for (i = 0; i < OPENERS; i++)
		join(threads[i]);
	for (i = 1; i < OPENERS; i++)
		for (j = 0; j < 16; j++)
			same += same_type(opened[i][j], opened[0][j]);
	EQ(same, (OPENERS - 1) * 16);
	for (i = 1, same = 0; i < 16; i++)
		for (j = 0; j < i; j++)
			same += same_type(opened[0][i], opened[0][j]);
	EQ(same, 0);
}

/* ------------------------------------------------------------ signals */

static sem_t waits_now;
static volatile pid_t taker;

static void on_signal(int number)
{
	(void)number;
	taker = gettid();
}

static bool first_is_asleep(void)
{
	char path[64], text[512], *end;
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[size > 0 ? size : 0] = '\0';
	end = strrchr(text, ')');
	return end && end[2] == 'S';
}

static void *signal_and_open(void *arg)
{
	trace_event_id_t id;

	sem_wait(&waits_now);
	/* The creation of this thread may wake it before it is in poll(). */
	for (int seen = 0; seen < 3; usleep(200))
		seen = first_is_asleep() ? seen + 1 : 0;
	kill(getpid(), SIGUSR1);
	OK(posix_trace_eventid_open("after the signal", &id));
	return arg;
}

CASE(a_signal_stays_with_the_thread_that_it_woke)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t sender;

	sigaction(SIGUSR1, &action, NULL);
	sem_init(&waits_now, 0, 0);
	type("after the signal");
	for (int i = 0; i < (thorough() ? 50 : 10); i++) {
		taker = 0;
		sender = thread(signal_and_open, NULL);
		sem_post(&waits_now);
		EQ(poll(NULL, 0, 10000), -1);
		NEED(taker == getpid());
		join(sender);
	}
}

/* ------------------------------------------------------------ from a library */

CASE(names_may_hold_any_byte)
{
	trace_event_id_t id = type("\xc3\xa4 \"quoted\"\t/"), first = type("");
	trace_id_t trid = stream_of(0, NULL);

	TEXT(name_of(trid, id), "\xc3\xa4 \"quoted\"\t/");
	CHECK(!same_type(first, id));
}
