/* SPDX-License-Identifier: MIT */
/* posix.h - the base of all parts of libposixtrace: the public header with its exports, attributes, sets. */
#ifndef PX_POSIX_H
#define PX_POSIX_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* All other symbols of the library are hidden. */
#pragma GCC visibility push(default)
#include "trace.h"
#pragma GCC visibility pop

#include "layout.h"

/* ------------------------------------------------------------ attributes */

#define PX_POLICY_UNSET 0u

struct px_attr {
	uint64_t magic;
	uint32_t stream_policy; /* PX_POLICY_UNSET: LOOP, or FLUSH if there is a log */
	uint32_t log_policy;
	uint32_t inheritance;
	uint32_t pad;
	uint64_t stream_size;
	uint64_t max_data;
	uint64_t log_size;
	struct timespec create_time;
	struct timespec clock_resolution;
	char version[TRACE_NAME_MAX];
	char name[TRACE_NAME_MAX];
};
_Static_assert(sizeof(struct px_attr) <= sizeof(trace_attr_t), "attributes fit into the public type");

/* px_attr_of - the contents of a public object; NULL if the object is not initialised, or @attr is NULL. */
const struct px_attr *px_attr_of(const trace_attr_t *attr);

/* px_attr_default - the values of posix_trace_attr_init(). */
void px_attr_default(struct px_attr *attr);

/* px_attr_store - fill the caller's object. */
void px_attr_store(trace_attr_t *to, const struct px_attr *from);

/* px_cells - cells of a record with @data_size bytes of data. */
static inline uint32_t px_cells(uint64_t data_size)
{
	return (uint32_t)((PX_RECORD_HEAD + data_size + PX_CELL - 1) / PX_CELL);
}

/* ------------------------------------------------------------ sets of event types */

_Static_assert(sizeof(trace_event_set_t) * 8 == PX_EVENT_COUNT, "a bit for each event type");
_Static_assert(TRACE_EVENT_NAME_MAX + 1 == PX_NAME_SIZE, "names");

static inline bool px_event_is_valid(trace_event_id_t id)
{
	return id > 0 && id < PX_EVENT_COUNT;
}

static inline bool px_set_has(const trace_event_set_t *set, trace_event_id_t id)
{
	return set->__ptt_bits[id / 64] >> id % 64 & 1;
}

#endif
