/* SPDX-License-Identifier: MIT */
/* attributes.c - the attributes object: defaults, the values that each setter accepts, the results of each getter. */
#include "suite.h"

/* Objects of this kind cannot be copied. */
static trace_attr_t *fresh(void)
{
	static trace_attr_t objects[8];
	static int used;

	NEED(posix_trace_attr_init(&objects[used]) == 0);
	return &objects[used++];
}

CASE(defaults)
{
	trace_attr_t *attr = fresh();
	char text[TRACE_NAME_MAX + 1] = "unset";
	struct timespec resolution = {-1, -1};
	size_t size = 0;
	int policy = -1;

	OK(posix_trace_attr_getname(attr, text));
	TEXT(text, "");
	OK(posix_trace_attr_getgenversion(attr, text));
	CHECK(strlen(text) > 0 && strlen(text) < TRACE_NAME_MAX);
	OK(posix_trace_attr_getclockres(attr, &resolution));
	CHECK(ns_of(resolution) > 0 && ns_of(resolution) < 1000000000);
	OK(posix_trace_attr_getinherited(attr, &policy));
	EQ(policy, POSIX_TRACE_CLOSE_FOR_CHILD);
	OK(posix_trace_attr_getlogfullpolicy(attr, &policy));
	EQ(policy, POSIX_TRACE_LOOP);
	OK(posix_trace_attr_getstreamfullpolicy(attr, &policy));
	CHECK(policy == POSIX_TRACE_LOOP || policy == POSIX_TRACE_FLUSH); /* depends on whether there is a log */
	OK(posix_trace_attr_getstreamsize(attr, &size));
	CHECK(size > 0);
	size = 0;
	OK(posix_trace_attr_getlogsize(attr, &size));
	CHECK(size > 0);
	size = 0;
	OK(posix_trace_attr_getmaxdatasize(attr, &size));
	CHECK(size > 0);
	OK(posix_trace_attr_destroy(attr));
}

CASE(destroyed_object_can_be_made_again)
{
	trace_attr_t *attr = fresh();
	char name[TRACE_NAME_MAX + 1] = "unset";

	OK(posix_trace_attr_setname(attr, "first"));
	OK(posix_trace_attr_destroy(attr));
	OK(posix_trace_attr_init(attr));
	OK(posix_trace_attr_getname(attr, name));
	TEXT(name, "");
	OK(posix_trace_attr_destroy(attr));
}

CASE(destroyed_object_is_refused)
{
	trace_attr_t *attr = fresh();
	char text[TRACE_NAME_MAX + 1];
	struct timespec t;
	size_t size;
	int policy;
	trace_id_t trid;

	OK(posix_trace_attr_destroy(attr));
	FAILS(EINVAL, posix_trace_attr_destroy(attr));
	FAILS(EINVAL, posix_trace_attr_getgenversion(attr, text));
	FAILS(EINVAL, posix_trace_attr_getname(attr, text));
	FAILS(EINVAL, posix_trace_attr_getcreatetime(attr, &t));
	FAILS(EINVAL, posix_trace_attr_getclockres(attr, &t));
	FAILS(EINVAL, posix_trace_attr_getinherited(attr, &policy));
	FAILS(EINVAL, posix_trace_attr_setinherited(attr, POSIX_TRACE_INHERITED));
	FAILS(EINVAL, posix_trace_attr_getstreamfullpolicy(attr, &policy));
	FAILS(EINVAL, posix_trace_attr_setstreamfullpolicy(attr, POSIX_TRACE_LOOP));
	FAILS(EINVAL, posix_trace_attr_getlogfullpolicy(attr, &policy));
	FAILS(EINVAL, posix_trace_attr_setlogfullpolicy(attr, POSIX_TRACE_LOOP));
	FAILS(EINVAL, posix_trace_attr_getmaxdatasize(attr, &size));
	FAILS(EINVAL, posix_trace_attr_setmaxdatasize(attr, 16));
	FAILS(EINVAL, posix_trace_attr_getstreamsize(attr, &size));
	FAILS(EINVAL, posix_trace_attr_setstreamsize(attr, 65536));
	FAILS(EINVAL, posix_trace_attr_getlogsize(attr, &size));
	FAILS(EINVAL, posix_trace_attr_setlogsize(attr, 65536));
	FAILS(EINVAL, posix_trace_attr_getmaxsystemeventsize(attr, &size));
	FAILS(EINVAL, posix_trace_attr_getmaxusereventsize(attr, 8, &size));
	FAILS(EINVAL, posix_trace_create(0, attr, &trid));
}

CASE(names)
{
	trace_attr_t *attr = fresh(), *other = fresh();
	char longest[TRACE_NAME_MAX], longer[3 * TRACE_NAME_MAX], name[TRACE_NAME_MAX + 2];

	OK(posix_trace_attr_setname(attr, "my_trace"));
	OK(posix_trace_attr_getname(attr, name));
	TEXT(name, "my_trace");
	OK(posix_trace_attr_getname(other, name));
	TEXT(name, "");

	memset(longest, 'x', sizeof(longest));
	longest[TRACE_NAME_MAX - 1] = '\0';
	OK(posix_trace_attr_setname(attr, longest));
	OK(posix_trace_attr_getname(attr, name));
	TEXT(name, longest);

	OK(posix_trace_attr_setname(attr, ""));
	OK(posix_trace_attr_getname(attr, name));
	TEXT(name, "");

	/* a name that is too long is cut */
	memset(longer, 'y', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	OK(posix_trace_attr_setname(attr, longer));
	memset(name, 0x7f, sizeof(name));
	OK(posix_trace_attr_getname(attr, name));
	CHECK(name[TRACE_NAME_MAX] == 0x7f); /* nothing is written beyond the limit */
	CHECK(memchr(name, '\0', TRACE_NAME_MAX) != NULL);
	EQ(strlen(name), TRACE_NAME_MAX - 1);
	EQ(strncmp(name, longer, strlen(name)), 0);
}

CASE(generation_version_fits)
{
	trace_attr_t *attr = fresh();
	char version[TRACE_NAME_MAX + 1];

	memset(version, 0x7f, sizeof(version));
	OK(posix_trace_attr_getgenversion(attr, version));
	EQ(version[TRACE_NAME_MAX], 0x7f);
	CHECK(memchr(version, '\0', TRACE_NAME_MAX) != NULL);
}

CASE(inheritance)
{
	trace_attr_t *attr = fresh();
	int policy = -1;

	OK(posix_trace_attr_setinherited(attr, POSIX_TRACE_INHERITED));
	OK(posix_trace_attr_getinherited(attr, &policy));
	EQ(policy, POSIX_TRACE_INHERITED);
	FAILS(EINVAL, posix_trace_attr_setinherited(attr, 4711));
	FAILS(EINVAL, posix_trace_attr_setinherited(attr, -1));
	OK(posix_trace_attr_getinherited(attr, &policy));
	EQ(policy, POSIX_TRACE_INHERITED);
	OK(posix_trace_attr_setinherited(attr, POSIX_TRACE_CLOSE_FOR_CHILD));
	OK(posix_trace_attr_getinherited(attr, &policy));
	EQ(policy, POSIX_TRACE_CLOSE_FOR_CHILD);
}

CASE(stream_full_policy)
{
	const int policies[] = {POSIX_TRACE_LOOP, POSIX_TRACE_UNTIL_FULL, POSIX_TRACE_FLUSH};
	trace_attr_t *attr = fresh();
	int policy = -1;
	size_t i;

	for (i = 0; i < 3; i++) {
		OK(posix_trace_attr_setstreamfullpolicy(attr, policies[i]));
		OK(posix_trace_attr_getstreamfullpolicy(attr, &policy));
		EQ(policy, policies[i]);
	}
	FAILS(EINVAL, posix_trace_attr_setstreamfullpolicy(attr, POSIX_TRACE_APPEND)); /* only for logs */
	FAILS(EINVAL, posix_trace_attr_setstreamfullpolicy(attr, 4711));
	OK(posix_trace_attr_getstreamfullpolicy(attr, &policy));
	EQ(policy, POSIX_TRACE_FLUSH);
}

CASE(log_full_policy)
{
	const int policies[] = {POSIX_TRACE_UNTIL_FULL, POSIX_TRACE_LOOP, POSIX_TRACE_APPEND};
	trace_attr_t *attr = fresh();
	int policy = -1;
	size_t i;

	for (i = 0; i < 3; i++) {
		OK(posix_trace_attr_setlogfullpolicy(attr, policies[i]));
		OK(posix_trace_attr_getlogfullpolicy(attr, &policy));
		EQ(policy, policies[i]);
	}
	FAILS(EINVAL, posix_trace_attr_setlogfullpolicy(attr, POSIX_TRACE_FLUSH)); /* only for streams */
	FAILS(EINVAL, posix_trace_attr_setlogfullpolicy(attr, 4711));
	OK(posix_trace_attr_getlogfullpolicy(attr, &policy));
	EQ(policy, POSIX_TRACE_APPEND);
}

CASE(sizes)
{
	trace_attr_t *attr = fresh();
	size_t size = 0;

	OK(posix_trace_attr_setmaxdatasize(attr, 100));
	OK(posix_trace_attr_getmaxdatasize(attr, &size));
	EQ(size, 100);
	OK(posix_trace_attr_setlogsize(attr, 100000));
	OK(posix_trace_attr_getlogsize(attr, &size));
	EQ(size, 100000);
	OK(posix_trace_attr_setstreamsize(attr, 123456));
	OK(posix_trace_attr_getstreamsize(attr, &size));
	CHECK(size >= 123456); /* a minimum */
	OK(posix_trace_attr_getmaxdatasize(attr, &size));
	EQ(size, 100);
}

CASE(sizes_of_events)
{
	trace_attr_t *attr = fresh();
	size_t last = 0, size = 0, length;

	OK(posix_trace_attr_setmaxdatasize(attr, 256));
	for (length = 0; length <= 256; length += 32) {
		OK(posix_trace_attr_getmaxusereventsize(attr, length, &size));
		CHECK(size >= length);
		CHECK(size >= last);
		last = size;
	}
	/* data longer than the largest data is cut, and takes no more room */
	OK(posix_trace_attr_getmaxusereventsize(attr, 100000, &size));
	CHECK(size >= last);
	OK(posix_trace_attr_getmaxsystemeventsize(attr, &size));
	CHECK(size >= 2 * sizeof(trace_event_set_t)); /* a change of filter has two sets */
}

CASE(null_is_refused)
{
	trace_attr_t *attr = fresh();
	char text[TRACE_NAME_MAX + 1];
	size_t size;
	int policy;

	FAILS(EINVAL, posix_trace_attr_destroy(NULL));
	FAILS(EINVAL, posix_trace_attr_getname(NULL, text));
	FAILS(EINVAL, posix_trace_attr_getname(attr, NULL));
	FAILS(EINVAL, posix_trace_attr_getgenversion(attr, NULL));
	FAILS(EINVAL, posix_trace_attr_getcreatetime(attr, NULL));
	FAILS(EINVAL, posix_trace_attr_getclockres(attr, NULL));
	FAILS(EINVAL, posix_trace_attr_getinherited(NULL, &policy));
	FAILS(EINVAL, posix_trace_attr_getinherited(attr, NULL));
	FAILS(EINVAL, posix_trace_attr_setinherited(NULL, POSIX_TRACE_INHERITED));
	FAILS(EINVAL, posix_trace_attr_getstreamfullpolicy(attr, NULL));
	FAILS(EINVAL, posix_trace_attr_getlogfullpolicy(attr, NULL));
	FAILS(EINVAL, posix_trace_attr_getmaxdatasize(attr, NULL));
	FAILS(EINVAL, posix_trace_attr_getstreamsize(attr, NULL));
	FAILS(EINVAL, posix_trace_attr_getlogsize(NULL, &size));
	FAILS(EINVAL, posix_trace_attr_getmaxsystemeventsize(attr, NULL));
	FAILS(EINVAL, posix_trace_attr_getmaxusereventsize(attr, 8, NULL));
}

CASE(streams_keep_their_attributes)
{
	trace_attr_t *attr = fresh(), *is = fresh();
	char name[TRACE_NAME_MAX + 1];
	trace_id_t one, two;
	size_t size;
	int policy;

	OK(posix_trace_attr_setname(attr, "one"));
	OK(posix_trace_attr_setmaxdatasize(attr, 40));
	OK(posix_trace_attr_setstreamsize(attr, 30000));
	OK(posix_trace_attr_setstreamfullpolicy(attr, POSIX_TRACE_UNTIL_FULL));
	OK(posix_trace_attr_setinherited(attr, POSIX_TRACE_INHERITED));
	one = stream_of(0, attr);
	OK(posix_trace_attr_setname(attr, "two"));
	two = stream_of(0, attr);
	OK(posix_trace_attr_destroy(attr));

	OK(posix_trace_get_attr(one, is));
	OK(posix_trace_attr_getname(is, name));
	TEXT(name, "one");
	OK(posix_trace_attr_getmaxdatasize(is, &size));
	EQ(size, 40);
	OK(posix_trace_attr_getstreamsize(is, &size));
	CHECK(size >= 30000);
	OK(posix_trace_attr_getstreamfullpolicy(is, &policy));
	EQ(policy, POSIX_TRACE_UNTIL_FULL);
	OK(posix_trace_attr_getinherited(is, &policy));
	EQ(policy, POSIX_TRACE_INHERITED);
	OK(posix_trace_get_attr(two, is));
	OK(posix_trace_attr_getname(is, name));
	TEXT(name, "two");
	/* attributes read from a stream can create another stream */
	OK(posix_trace_shutdown(two));
	two = stream_of(0, is);
	OK(posix_trace_get_attr(two, is));
	OK(posix_trace_attr_getname(is, name));
	TEXT(name, "two");
}

CASE(create_time_is_now)
{
	trace_attr_t *attr = fresh();
	struct timespec before, after, is = {0, 0};
	trace_id_t trid;

	clock_gettime(CLOCK_REALTIME, &before);
	trid = stream_of(0, NULL);
	clock_gettime(CLOCK_REALTIME, &after);
	OK(posix_trace_get_attr(trid, attr));
	OK(posix_trace_attr_getcreatetime(attr, &is));
	CHECK(ns_of(is) >= ns_of(before) - 20000000 && ns_of(is) <= ns_of(after) + 20000000);
}

CASE(policy_that_was_not_set_follows_the_log)
{
	trace_attr_t *attr = fresh();
	trace_id_t trid;
	int policy = -1;

	trid = stream_of(0, attr);
	OK(posix_trace_get_attr(trid, attr));
	OK(posix_trace_attr_getstreamfullpolicy(attr, &policy));
	EQ(policy, POSIX_TRACE_LOOP);

	attr = fresh();
	NEED(posix_trace_create_withlog(0, attr, scratch_file(O_RDWR), &trid) == 0);
	OK(posix_trace_get_attr(trid, attr));
	OK(posix_trace_attr_getstreamfullpolicy(attr, &policy));
	EQ(policy, POSIX_TRACE_FLUSH);

	NEED(posix_trace_create_withlog(0, NULL, scratch_file(O_RDWR), &trid) == 0);
	OK(posix_trace_get_attr(trid, attr));
	OK(posix_trace_attr_getstreamfullpolicy(attr, &policy));
	EQ(policy, POSIX_TRACE_FLUSH);

	/* the program sets the value, and it stays */
	attr = fresh();
	OK(posix_trace_attr_setstreamfullpolicy(attr, POSIX_TRACE_LOOP));
	NEED(posix_trace_create_withlog(0, attr, scratch_file(O_RDWR), &trid) == 0);
	OK(posix_trace_get_attr(trid, attr));
	OK(posix_trace_attr_getstreamfullpolicy(attr, &policy));
	EQ(policy, POSIX_TRACE_LOOP);
}
