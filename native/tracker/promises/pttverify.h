/* SPDX-License-Identifier: MIT */
/* pttverify.h - holds a trace against what POSIX promises of the thread library itself. */
/*
 * Model. Events are fed in the order of time, as the reader's cursors deliver them. The verifier keeps what each thread
 * and object is known to be doing and reports every event, or absence of one, that a library which keeps its promises
 * cannot have caused. Time stamps bound what really happened from one side only (a release is stamped before it is
 * done, an acquisition afterwards); the rules use nothing else, and docs/explanation/verify.md says what each of them
 * proves and when it is silent.
 *
 *     verify = ptt_verify_create();
 *     ptt_verify_process(verify, number, &process);           (every process of the reader)
 *     ptt_tracker_share((struct tracker *)verify, …);           (memory that it shares)
 *     ptt_tracker_thread((struct tracker *)verify, …);          (every thread of the reader)
 *     while ((n = ptt_cursor_read(cursor, &columns, max)) > 0)
 *             ptt_verify_feed(verify, &columns, n);
 *     ptt_verify_finish(verify, patience_ns);
 *     rows = ptt_verify_violations(verify, &count);
 *
 * Functions return 0 or negated errno values; a verifier belongs to one thread at a time.
 */
#ifndef PTTVERIFY_H
#define PTTVERIFY_H

#include <stdint.h>

struct ptt_columns;
struct ptt_verify;

#define PTT_VERIFY_VERSION 2
#define PTT_VERIFY_API __attribute__((visibility("default")))
#define PTT_VERIFY_EVENTS 4 /* most that prove one violation */

/* An event as the reader delivered it; the payload is valid as long as the reader's is. */
struct ptt_verify_event {
	int64_t ts;
	uint64_t object;
	uint64_t site;
	uint64_t payload;
	uint32_t thread; /* number in the reader */
	uint32_t id;
};

enum ptt_verify_severity { PTT_VERIFY_ERROR, PTT_VERIFY_WARNING };

struct ptt_verify_violation {
	uint64_t object; /* address */
	int64_t ts;      /* of the event that shows it */
	uint64_t count;  /* how often the rule was broken in this way; the events are those of the first time */
	int64_t number[2]; /* what the rule compared, see ptt_verify_rule_name() */
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

/* What is known of a process beside its events. Times in ns of the traceset, INT64_MIN where nobody knows. */
struct ptt_verify_process {
	int64_t alive;     /* when the recorder last saw it alive */
	int64_t monotonic; /* CLOCK_MONOTONIC at time 0 */
	int64_t realtime;  /* CLOCK_REALTIME at time 0 */
	uint32_t incomplete; /* events of it may be missing: what threads do to one another cannot be judged */
	uint32_t reserved;
};

PTT_VERIFY_API int ptt_verify_version(void);
PTT_VERIFY_API struct ptt_verify *ptt_verify_create(void);
PTT_VERIFY_API void ptt_verify_destroy(struct ptt_verify *verify);
PTT_VERIFY_API int ptt_verify_process(struct ptt_verify *verify, uint32_t number, const struct ptt_verify_process *known);
/* ptt_verify_feed - follows the next n events; all columns must be there but the processors. 0 or a negative error number. */
PTT_VERIFY_API int ptt_verify_feed(struct ptt_verify *verify, const struct ptt_columns *columns, int64_t n);
/*
 * ptt_verify_finish - judges what never ended
 *
 * @patience: a thread that should have gone on this long before its process ended, in ns, was not woken
 */
PTT_VERIFY_API int ptt_verify_finish(struct ptt_verify *verify, int64_t patience);
/* ptt_verify_violations - all of them, valid until the verifier is fed or destroyed. */
PTT_VERIFY_API const struct ptt_verify_violation *ptt_verify_violations(const struct ptt_verify *verify, uint64_t *count);
/* ptt_verify_rule_name - NULL when there are no more; `checks`: how often the rule was applied. */
PTT_VERIFY_API const char *ptt_verify_rule_name(uint32_t rule);
PTT_VERIFY_API uint64_t ptt_verify_checks(const struct ptt_verify *verify, uint32_t rule);
/* ptt_verify_skip_name - NULL when there are no more; `skips`: how often a rule was silent for this reason. */
PTT_VERIFY_API const char *ptt_verify_skip_name(uint32_t reason);
PTT_VERIFY_API uint64_t ptt_verify_skips(const struct ptt_verify *verify, uint32_t reason);

#endif
