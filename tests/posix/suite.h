/* SPDX-License-Identifier: MIT */
/* suite.h - cases of the <trace.h> suite: each in its own process, every check counted. */
/*
 *     CASE(stop_is_idempotent)
 *     {
 *             trace_id_t trid = stream_of(0, NULL);
 *
 *             OK(posix_trace_stop(trid));
 *             FAILS(EINVAL, posix_trace_flush(trid));
 *             EQ(drain(trid), 0);
 *     }
 *
 * A check that fails is printed and counted, and the case goes on. NEED ends the case if a condition of its remainder fails.
 * A case that hangs is ended after SUITE_SECONDS (240), with all processes that it started.
 */
#ifndef SUITE_H
#define SUITE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <trace.h>
#include <unistd.h>

struct suite_case {
	const char *name;
	void (*run)(void);
	int line;
	struct suite_case *next;
};

void suite_add(struct suite_case *c);
bool suite_check(bool good, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void suite_stop(void) __attribute__((noreturn));
void suite_skip(const char *why) __attribute__((noreturn));

/* The action of `PROGRAM --role NAME ARG...`: the part of a process started by exec. */
int suite_role(const char *name, char **args);

#define CASE(name)                                                          \
	static void name(void);                                             \
	__attribute__((constructor)) static void add_##name(void)           \
	{                                                                   \
		static struct suite_case c = {#name, name, __LINE__, NULL}; \
		suite_add(&c);                                              \
	}                                                                   \
	static void name(void)

/* A truth; a number with its expected value; a call that succeeds, or fails with one error. */
#define CHECK(truth) suite_check(!!(truth), __FILE__, __LINE__, "%s", #truth)
#define EQ(is, should)                                                                                             \
	({                                                                                                         \
		long long is_ = (long long)(is), should_ = (long long)(should);                                    \
		suite_check(is_ == should_, __FILE__, __LINE__, "%s is %lld, not %s (%lld)", #is, is_, #should, \
			    should_);                                                                              \
	})
#define FAILS(error, call)                                                                                         \
	({                                                                                                         \
		int got_ = (call);                                                                                 \
		suite_check(got_ == (error), __FILE__, __LINE__, "%s gives %s, not %s", #call, error_name(got_), \
			    error_name(error));                                                                    \
	})
#define OK(call) FAILS(0, call)
#define TEXT(is, should)                                                                                      \
	({                                                                                                    \
		const char *is_ = (is), *should_ = (should);                                                  \
		suite_check(strcmp(is_, should_) == 0, __FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #is, \
			    is_, should_);                                                                    \
	})
#define NEED(truth)                                                                    \
	do {                                                                           \
		if (!suite_check(!!(truth), __FILE__, __LINE__, "needed: %s", #truth)) \
			suite_stop();                                                  \
	} while (0)

const char *error_name(int error);

/* ------------------------------------------------------------ streams */

/* A suspended stream with these attributes (NULL: the defaults); a started stream. */
trace_id_t stream_of(pid_t pid, const trace_attr_t *attr);
trace_id_t started(const trace_attr_t *attr);
trace_event_id_t type(const char *name);
bool same_type(trace_event_id_t one, trace_event_id_t other);
struct posix_trace_status_info status_of(trace_id_t trid);

/* Attributes: a policy, and a size of the stream in events with that much data. */
trace_attr_t *attributes(int policy, size_t events, size_t data_len);

/* An event as it was read. */
struct record {
	struct posix_trace_event_info info;
	size_t length;
	char data[4096];
	int unavailable;
};

/* Read without waiting; false at the end. Events of user types only; all events, counted. */
bool next_of(trace_id_t trid, struct record *record);
bool next_user(trace_id_t trid, struct record *record);
bool next_logged(trace_id_t log, struct record *record);
bool is_system(trace_event_id_t id);
int drain(trace_id_t trid);
int count_user(trace_id_t trid);
int count_type(trace_id_t trid, trace_event_id_t id);

static inline void emit_number(trace_event_id_t id, uint64_t number)
{
	posix_trace_event(id, &number, sizeof(number));
}
uint64_t number_of(const struct record *record);

/* ------------------------------------------------------------ time, threads, processes, files */

long long ns_of(struct timespec t);
struct timespec after_ms(int ms); /* CLOCK_REALTIME */
pthread_t thread(void *(*run)(void *), void *arg);
void join(pthread_t thread);

/* A process that runs a function; its exit status is the function's result. Its checks are counted here. */
struct child {
	pid_t pid;
	int to, from; /* pipes, one byte a handshake */
};
struct child child(int (*run)(struct child *parent, void *arg), void *arg);
void notify(const struct child *other);
bool notified(const struct child *other); /* waits; false if the other has ended */
int status_of_child(struct child *c);  /* waits for its end: exit status, or minus the signal */
pid_t dead_pid(void);
void forget_child(struct child *c); /* kill -9 */
const char *self(void);

/* A file that no other case has; it is removed with the case. */
int scratch_file(int flags);
const char *scratch_path(void);

bool thorough(void); /* false under valgrind, the sanitizers and the like: fewer rounds */

#endif
