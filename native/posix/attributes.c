/* SPDX-License-Identifier: MIT */
/* attributes.c - the attributes object: a controller configures a stream with it, and learns about a stream from it. */
#include "posix.h"

#define MAGIC UINT64_C(0x7274746170787470) /* "ptxpattr" */
#define STREAM_SIZE 65536u
#define MAX_DATA 256u
#define LOG_SIZE (1u << 20)

const struct px_attr *px_attr_of(const trace_attr_t *attr)
{
	const struct px_attr *a = (const void *)attr;

	return a && a->magic == MAGIC ? a : NULL;
}

static struct px_attr *writable(trace_attr_t *attr)
{
	return (struct px_attr *)px_attr_of(attr);
}

void px_attr_default(struct px_attr *attr)
{
	*attr = (struct px_attr){
		.magic = MAGIC,
		.stream_policy = PX_POLICY_UNSET,
		.log_policy = POSIX_TRACE_LOOP,
		.inheritance = POSIX_TRACE_CLOSE_FOR_CHILD,
		.stream_size = STREAM_SIZE,
		.max_data = MAX_DATA,
		.log_size = LOG_SIZE,
		.version = "nptltrace " PTT_VERSION,
	};
	clock_getres(CLOCK_MONOTONIC, &attr->clock_resolution);
}

void px_attr_store(trace_attr_t *to, const struct px_attr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, sizeof(*from));
}

int posix_trace_attr_init(trace_attr_t *attr)
{
	struct px_attr a;

	if (!attr)
		return EINVAL;
	px_attr_default(&a);
	px_attr_store(attr, &a);
	return 0;
}

int posix_trace_attr_destroy(trace_attr_t *attr)
{
	struct px_attr *a = writable(attr);

	if (!a)
		return EINVAL;
	a->magic = 0;
	return 0;
}

/* Copy the bytes of a member to @to. Return: 0 or EINVAL. */
static int get(const trace_attr_t *attr, size_t offset, size_t size, void *to)
{
	const struct px_attr *a = px_attr_of(attr);

	if (!a || !to)
		return EINVAL;
	memcpy(to, (const char *)a + offset, size);
	return 0;
}

#define GET(attr, member, to) get(attr, offsetof(struct px_attr, member), sizeof(((struct px_attr *)0)->member), to)

/* ------------------------------------------------------------ identification */

int posix_trace_attr_getgenversion(const trace_attr_t *attr, char *genversion)
{
	const struct px_attr *a = px_attr_of(attr);

	if (!a || !genversion)
		return EINVAL;
	strcpy(genversion, a->version);
	return 0;
}

int posix_trace_attr_getname(const trace_attr_t *attr, char *tracename)
{
	const struct px_attr *a = px_attr_of(attr);

	if (!a || !tracename)
		return EINVAL;
	strcpy(tracename, a->name);
	return 0;
}

int posix_trace_attr_setname(trace_attr_t *attr, const char *tracename)
{
	struct px_attr *a = writable(attr);
	size_t length;

	if (!a || !tracename)
		return EINVAL;
	length = strnlen(tracename, sizeof(a->name) - 1);
	memset(a->name, 0, sizeof(a->name));
	memcpy(a->name, tracename, length);
	return 0;
}

int posix_trace_attr_getcreatetime(const trace_attr_t *attr, struct timespec *createtime)
{
	return GET(attr, create_time, createtime);
}

int posix_trace_attr_getclockres(const trace_attr_t *attr, struct timespec *resolution)
{
	return GET(attr, clock_resolution, resolution);
}

/* ------------------------------------------------------------ behaviour */

int posix_trace_attr_getinherited(const trace_attr_t *restrict attr, int *restrict inheritancepolicy)
{
	return GET(attr, inheritance, inheritancepolicy);
}

int posix_trace_attr_setinherited(trace_attr_t *attr, int inheritancepolicy)
{
	struct px_attr *a = writable(attr);

	if (!a || (inheritancepolicy != POSIX_TRACE_INHERITED && inheritancepolicy != POSIX_TRACE_CLOSE_FOR_CHILD))
		return EINVAL;
	a->inheritance = (uint32_t)inheritancepolicy;
	return 0;
}

int posix_trace_attr_getstreamfullpolicy(const trace_attr_t *restrict attr, int *restrict streampolicy)
{
	const struct px_attr *a = px_attr_of(attr);

	if (!a || !streampolicy)
		return EINVAL;
	*streampolicy = a->stream_policy == PX_POLICY_UNSET ? POSIX_TRACE_LOOP : (int)a->stream_policy;
	return 0;
}

int posix_trace_attr_setstreamfullpolicy(trace_attr_t *attr, int streampolicy)
{
	struct px_attr *a = writable(attr);

	if (!a || (streampolicy != POSIX_TRACE_LOOP && streampolicy != POSIX_TRACE_UNTIL_FULL &&
		   streampolicy != POSIX_TRACE_FLUSH))
		return EINVAL;
	a->stream_policy = (uint32_t)streampolicy;
	return 0;
}

int posix_trace_attr_getlogfullpolicy(const trace_attr_t *restrict attr, int *restrict logpolicy)
{
	return GET(attr, log_policy, logpolicy);
}

int posix_trace_attr_setlogfullpolicy(trace_attr_t *attr, int logpolicy)
{
	struct px_attr *a = writable(attr);

	if (!a ||
	    (logpolicy != POSIX_TRACE_LOOP && logpolicy != POSIX_TRACE_UNTIL_FULL && logpolicy != POSIX_TRACE_APPEND))
		return EINVAL;
	a->log_policy = (uint32_t)logpolicy;
	return 0;
}

/* ------------------------------------------------------------ sizes */

static int set_size(trace_attr_t *attr, size_t offset, size_t size)
{
	struct px_attr *a = writable(attr);

	if (!a)
		return EINVAL;
	*(uint64_t *)((char *)a + offset) = size;
	return 0;
}

int posix_trace_attr_getmaxdatasize(const trace_attr_t *restrict attr, size_t *restrict maxdatasize)
{
	return GET(attr, max_data, maxdatasize);
}

int posix_trace_attr_setmaxdatasize(trace_attr_t *attr, size_t maxdatasize)
{
	return set_size(attr, offsetof(struct px_attr, max_data), maxdatasize);
}

int posix_trace_attr_getstreamsize(const trace_attr_t *restrict attr, size_t *restrict streamsize)
{
	return GET(attr, stream_size, streamsize);
}

int posix_trace_attr_setstreamsize(trace_attr_t *attr, size_t streamsize)
{
	return set_size(attr, offsetof(struct px_attr, stream_size), streamsize);
}

int posix_trace_attr_getlogsize(const trace_attr_t *restrict attr, size_t *restrict logsize)
{
	return GET(attr, log_size, logsize);
}

int posix_trace_attr_setlogsize(trace_attr_t *attr, size_t logsize)
{
	return set_size(attr, offsetof(struct px_attr, log_size), logsize);
}

int posix_trace_attr_getmaxsystemeventsize(const trace_attr_t *restrict attr, size_t *restrict eventsize)
{
	if (!px_attr_of(attr) || !eventsize)
		return EINVAL;
	/* FILTER is the longest system event */
	*eventsize = px_cells(2 * sizeof(trace_event_set_t)) * PX_CELL;
	return 0;
}

int posix_trace_attr_getmaxusereventsize(const trace_attr_t *restrict attr, size_t data_len, size_t *restrict eventsize)
{
	const struct px_attr *a = px_attr_of(attr);
	uint64_t size;

	if (!a || !eventsize)
		return EINVAL;
	size = data_len < a->max_data ? data_len : a->max_data;
	/* no stream takes more than PX_DATA_MAX */
	*eventsize = (size_t)px_cells(size < PX_DATA_MAX ? size : PX_DATA_MAX) * PX_CELL;
	return 0;
}
