/* SPDX-License-Identifier: MIT */
/* pttverify.h - compares a trace with the promises of POSIX about the thread library itself. */
/*
 * Model. Feed the events in the order of time, as the cursors of the reader deliver them. The verifier keeps the known state of
 * each thread and object. It reports each event, and each missing event, that a correct library cannot have caused. A time stamp
 * bounds the real moment from one side only: a release is stamped before it happens, an acquisition afterwards. The rules rely on
 * nothing else. docs/explanation/verify.md says what each rule proves, and when it is silent.
 *
 *     verify = ptt_verify_create();
 *     ptt_verify_process(verify, number, &process);           (every process of the reader)
 *     ptt_tracker_share((struct tracker *)verify, …);           (shared memory of the process)
 *     ptt_tracker_thread((struct tracker *)verify, …);          (every thread of the reader)
 *     while ((n = ptt_cursor_read(cursor, &columns, max)) > 0)
 *             ptt_verify_feed(verify, &columns, n);
 *     ptt_verify_finish(verify, patience_ns);
 *     rows = ptt_verify_violations(verify, &count);
 *
 * Functions return 0 or negated errno values. They may allocate. A verifier belongs to one thread at a time.
 */
#ifndef PTTVERIFY_H
#define PTTVERIFY_H

#include <stdint.h>

struct ptt_columns;
struct ptt_verify;

#define PTT_VERIFY_VERSION 2
#define PTT_VERIFY_API __attribute__((visibility("default")))
#define PTT_VERIFY_EVENTS 4 /* maximum of events that prove a violation */

/* An event from the reader. The payload is valid as long as the payload in the reader. */
struct ptt_verify_event {
	int64_t ts; /* ns since the start of the traceset */
	uint64_t object;
	uint64_t site;
	uint64_t payload;
	uint32_t thread; /* number in the reader */
	uint32_t id;
};

enum ptt_verify_severity { PTT_VERIFY_ERROR, PTT_VERIFY_WARNING };

struct ptt_verify_violation {
	uint64_t object; /* address */
	int64_t ts;      /* of the last of its events */
	uint64_t count;  /* how often the rule was broken in this way; the events belong to the first time */
	int64_t number[2]; /* the numbers that the rule compared: see rule_names in report.c */
	uint32_t rule;
	uint32_t severity;
	uint32_t process;
	uint32_t kind; /* of the object, a domain of the catalogue */
	uint32_t event_count;
	uint32_t reserved;
	struct ptt_verify_event event[PTT_VERIFY_EVENTS]; /* in the order of time */
};

_Static_assert(sizeof(struct ptt_verify_event) == 40, "event");
_Static_assert(sizeof(struct ptt_verify_violation) == 64 + PTT_VERIFY_EVENTS * 40, "violation");

/* Facts about a process that are not in its events. Times in ns of the traceset; INT64_MIN = unknown. */
struct ptt_verify_process {
	int64_t alive;     /* when the recorder last saw it alive */
	int64_t monotonic; /* CLOCK_MONOTONIC at time 0 */
	int64_t realtime;  /* CLOCK_REALTIME at time 0 */
	uint32_t incomplete; /* its events may be incomplete, so only single calls are judged */
	uint32_t reserved;
};

PTT_VERIFY_API int ptt_verify_version(void);
/* ptt_verify_create - creates a verifier without events; NULL: there is no memory. */
PTT_VERIFY_API struct ptt_verify *ptt_verify_create(void);
PTT_VERIFY_API void ptt_verify_destroy(struct ptt_verify *verify);
/* ptt_verify_process - declares facts about a process, by its number in the reader. */
PTT_VERIFY_API int ptt_verify_process(struct ptt_verify *verify, uint32_t number, const struct ptt_verify_process *known);
/* ptt_verify_feed - follows the next @n events. Only the column of processors is optional. 0 or -errno. */
PTT_VERIFY_API int ptt_verify_feed(struct ptt_verify *verify, const struct ptt_columns *columns, int64_t n);
/*
 * ptt_verify_finish - judges the waits that never ended
 *
 * @patience: time in ns. A thread that could have continued for this long before its process ended was not woken.
 */
PTT_VERIFY_API int ptt_verify_finish(struct ptt_verify *verify, int64_t patience);
/* ptt_verify_violations - all violations, valid until the next events. @count: their number */
PTT_VERIFY_API const struct ptt_verify_violation *ptt_verify_violations(const struct ptt_verify *verify, uint64_t *count);
/* ptt_verify_rule_name - the name of a rule; NULL: there is no such rule. ptt_verify_checks - how often it was applied. */
PTT_VERIFY_API const char *ptt_verify_rule_name(uint32_t rule);
PTT_VERIFY_API uint64_t ptt_verify_checks(const struct ptt_verify *verify, uint32_t rule);
/* ptt_verify_skip_name - the name of a reason; NULL: there is no such reason. ptt_verify_skips - how often rules were silent for it. */
PTT_VERIFY_API const char *ptt_verify_skip_name(uint32_t reason);
PTT_VERIFY_API uint64_t ptt_verify_skips(const struct ptt_verify *verify, uint32_t reason);

#endif
