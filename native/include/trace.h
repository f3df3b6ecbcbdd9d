/* SPDX-License-Identifier: MIT */
/*
 * trace.h - the Trace option of POSIX.1-2008, with Trace Event Filter, Trace Log and Trace Inherit, for Linux.
 *
 * Link with -lposixtrace (pkg-config posixtrace). All functions but posix_trace_event() and posix_trace_eventid_equal()
 * return 0 or an error number, and leave errno alone. The page posix-choices of nptltrace's documentation describes our
 * choices where the standard leaves a choice.
 */
#ifndef _TRACE_H
#define _TRACE_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
/* A strict -std=c99 hides these two in the headers above. */
#include <bits/pthreadtypes.h>
#include <bits/types/struct_timespec.h>
#endif

#ifdef __cplusplus
extern "C" {
#define __ptt_restrict __restrict
#else
#define __ptt_restrict restrict
#endif

/* ------------------------------------------------------------ options and limits */

/* The C library says that it does not have these; this library does. */
#undef _POSIX_TRACE
#undef _POSIX_TRACE_EVENT_FILTER
#undef _POSIX_TRACE_INHERIT
#undef _POSIX_TRACE_LOG
#define _POSIX_TRACE 200809L
#define _POSIX_TRACE_EVENT_FILTER 200809L
#define _POSIX_TRACE_INHERIT 200809L
#define _POSIX_TRACE_LOG 200809L

#ifndef _POSIX_TRACE_EVENT_NAME_MAX
#define _POSIX_TRACE_EVENT_NAME_MAX 30
#endif
#ifndef _POSIX_TRACE_NAME_MAX
#define _POSIX_TRACE_NAME_MAX 8
#endif
#ifndef _POSIX_TRACE_SYS_MAX
#define _POSIX_TRACE_SYS_MAX 8
#endif
#ifndef _POSIX_TRACE_USER_EVENT_MAX
#define _POSIX_TRACE_USER_EVENT_MAX 32
#endif

#ifndef TRACE_EVENT_NAME_MAX
#define TRACE_EVENT_NAME_MAX 63 /* bytes of the name of an event type, its null not counted */
#endif
#ifndef TRACE_NAME_MAX
#define TRACE_NAME_MAX 64 /* bytes of the name of a stream, and of the generation version, the null counted */
#endif
#ifndef TRACE_SYS_MAX
#define TRACE_SYS_MAX 64 /* streams at a time, for all processes of a user together */
#endif
#ifndef TRACE_USER_EVENT_MAX
#define TRACE_USER_EVENT_MAX 256 /* user event types of a process, the unnamed one counted */
#endif

/* ------------------------------------------------------------ types */

typedef unsigned int trace_id_t;
typedef unsigned int trace_event_id_t;

/* A set of event types: a value, which may be assigned and passed. */
typedef struct {
	unsigned long long __ptt_bits[16];
} trace_event_set_t;

/* Attributes of a stream; only the library uses the content. */
typedef union {
	unsigned long long __ptt_align;
	unsigned char __ptt_bytes[512];
} trace_attr_t;

struct posix_trace_status_info {
	int posix_stream_status;         /* POSIX_TRACE_RUNNING, POSIX_TRACE_SUSPENDED */
	int posix_stream_full_status;    /* POSIX_TRACE_FULL, POSIX_TRACE_NOT_FULL */
	int posix_stream_overrun_status; /* POSIX_TRACE_OVERRUN, POSIX_TRACE_NO_OVERRUN */
	int posix_stream_flush_status;   /* POSIX_TRACE_FLUSHING, POSIX_TRACE_NOT_FLUSHING */
	int posix_stream_flush_error;    /* the first error number since this was last asked, or 0 */
	int posix_log_overrun_status;    /* POSIX_TRACE_OVERRUN, POSIX_TRACE_NO_OVERRUN */
	int posix_log_full_status;       /* POSIX_TRACE_FULL, POSIX_TRACE_NOT_FULL */
};

struct posix_trace_event_info {
	trace_event_id_t posix_event_id;
	pid_t posix_pid;
	void *posix_prog_address; /* where the trace point was reached */
	pthread_t posix_thread_id;
	struct timespec posix_timestamp;
	int posix_truncation_status; /* POSIX_TRACE_NOT_TRUNCATED, _TRUNCATED_RECORD, _TRUNCATED_READ */
};

/* ------------------------------------------------------------ constants */

/* All values differ, except three values that are fixed at 0: so a program cannot mistake one for another. */

#define POSIX_TRACE_RUNNING 1
#define POSIX_TRACE_SUSPENDED 2
#define POSIX_TRACE_FULL 3
#define POSIX_TRACE_NOT_FULL 0
#define POSIX_TRACE_OVERRUN 4
#define POSIX_TRACE_NO_OVERRUN 0
#define POSIX_TRACE_FLUSHING 5
#define POSIX_TRACE_NOT_FLUSHING 0

#define POSIX_TRACE_NOT_TRUNCATED 16
#define POSIX_TRACE_TRUNCATED_RECORD 17
#define POSIX_TRACE_TRUNCATED_READ 18

#define POSIX_TRACE_LOOP 32
#define POSIX_TRACE_UNTIL_FULL 33
#define POSIX_TRACE_FLUSH 34
#define POSIX_TRACE_APPEND 35
#define POSIX_TRACE_CLOSE_FOR_CHILD 36
#define POSIX_TRACE_INHERITED 37

#define POSIX_TRACE_WOPID_EVENTS 48
#define POSIX_TRACE_SYSTEM_EVENTS 49
#define POSIX_TRACE_ALL_EVENTS 50
#define POSIX_TRACE_SET_EVENTSET 51
#define POSIX_TRACE_ADD_EVENTSET 52
#define POSIX_TRACE_SUB_EVENTSET 53

/* Event types that every stream has. */
#define POSIX_TRACE_ERROR ((trace_event_id_t)1)
#define POSIX_TRACE_START ((trace_event_id_t)2)
#define POSIX_TRACE_STOP ((trace_event_id_t)3)
#define POSIX_TRACE_FILTER ((trace_event_id_t)4)
#define POSIX_TRACE_OVERFLOW ((trace_event_id_t)5)
#define POSIX_TRACE_RESUME ((trace_event_id_t)6)
#define POSIX_TRACE_FLUSH_START ((trace_event_id_t)7)
#define POSIX_TRACE_FLUSH_STOP ((trace_event_id_t)8)
#define POSIX_TRACE_UNNAMED_USEREVENT ((trace_event_id_t)9)
#define POSIX_TRACE_UNNAMED_USER_EVENT POSIX_TRACE_UNNAMED_USEREVENT /* the standard spells it both ways */

/* ------------------------------------------------------------ attributes */

int posix_trace_attr_init(trace_attr_t *__attr);
int posix_trace_attr_destroy(trace_attr_t *__attr);

int posix_trace_attr_getgenversion(const trace_attr_t *__attr, char *__genversion);
int posix_trace_attr_getname(const trace_attr_t *__attr, char *__tracename);
int posix_trace_attr_setname(trace_attr_t *__attr, const char *__tracename);
int posix_trace_attr_getcreatetime(const trace_attr_t *__attr, struct timespec *__createtime);
int posix_trace_attr_getclockres(const trace_attr_t *__attr, struct timespec *__resolution);

int posix_trace_attr_getinherited(const trace_attr_t *__ptt_restrict __attr, int *__ptt_restrict __inheritancepolicy);
int posix_trace_attr_setinherited(trace_attr_t *__attr, int __inheritancepolicy);
int posix_trace_attr_getstreamfullpolicy(const trace_attr_t *__ptt_restrict __attr, int *__ptt_restrict __streampolicy);
int posix_trace_attr_setstreamfullpolicy(trace_attr_t *__attr, int __streampolicy);
int posix_trace_attr_getlogfullpolicy(const trace_attr_t *__ptt_restrict __attr, int *__ptt_restrict __logpolicy);
int posix_trace_attr_setlogfullpolicy(trace_attr_t *__attr, int __logpolicy);

int posix_trace_attr_getmaxdatasize(const trace_attr_t *__ptt_restrict __attr, size_t *__ptt_restrict __maxdatasize);
int posix_trace_attr_setmaxdatasize(trace_attr_t *__attr, size_t __maxdatasize);
int posix_trace_attr_getstreamsize(const trace_attr_t *__ptt_restrict __attr, size_t *__ptt_restrict __streamsize);
int posix_trace_attr_setstreamsize(trace_attr_t *__attr, size_t __streamsize);
int posix_trace_attr_getmaxsystemeventsize(const trace_attr_t *__ptt_restrict __attr,
					   size_t *__ptt_restrict __eventsize);
int posix_trace_attr_getmaxusereventsize(const trace_attr_t *__ptt_restrict __attr, size_t __data_len,
					 size_t *__ptt_restrict __eventsize);
int posix_trace_attr_getlogsize(const trace_attr_t *__ptt_restrict __attr, size_t *__ptt_restrict __logsize);
int posix_trace_attr_setlogsize(trace_attr_t *__attr, size_t __logsize);

/* ------------------------------------------------------------ the controller */

int posix_trace_create(pid_t __pid, const trace_attr_t *__ptt_restrict __attr, trace_id_t *__ptt_restrict __trid);
int posix_trace_create_withlog(pid_t __pid, const trace_attr_t *__ptt_restrict __attr, int __file_desc,
			       trace_id_t *__ptt_restrict __trid);
int posix_trace_flush(trace_id_t __trid);
int posix_trace_shutdown(trace_id_t __trid);
int posix_trace_clear(trace_id_t __trid);
int posix_trace_start(trace_id_t __trid);
int posix_trace_stop(trace_id_t __trid);
int posix_trace_get_attr(trace_id_t __trid, trace_attr_t *__attr);
int posix_trace_get_status(trace_id_t __trid, struct posix_trace_status_info *__statusinfo);
int posix_trace_get_filter(trace_id_t __trid, trace_event_set_t *__set);
int posix_trace_set_filter(trace_id_t __trid, const trace_event_set_t *__set, int __how);

/* ------------------------------------------------------------ event types and sets of them */

int posix_trace_eventid_open(const char *__ptt_restrict __event_name, trace_event_id_t *__ptt_restrict __event_id);
int posix_trace_trid_eventid_open(trace_id_t __trid, const char *__ptt_restrict __event_name,
				  trace_event_id_t *__ptt_restrict __event);
int posix_trace_eventid_get_name(trace_id_t __trid, trace_event_id_t __event, char *__event_name);
int posix_trace_eventid_equal(trace_id_t __trid, trace_event_id_t __event1, trace_event_id_t __event2);
int posix_trace_eventtypelist_getnext_id(trace_id_t __trid, trace_event_id_t *__ptt_restrict __event,
					 int *__ptt_restrict __unavailable);
int posix_trace_eventtypelist_rewind(trace_id_t __trid);

int posix_trace_eventset_empty(trace_event_set_t *__set);
int posix_trace_eventset_fill(trace_event_set_t *__set, int __what);
int posix_trace_eventset_add(trace_event_id_t __event_id, trace_event_set_t *__set);
int posix_trace_eventset_del(trace_event_id_t __event_id, trace_event_set_t *__set);
int posix_trace_eventset_ismember(trace_event_id_t __event_id, const trace_event_set_t *__ptt_restrict __set,
				  int *__ptt_restrict __ismember);

/* ------------------------------------------------------------ the traced process */

/* Safe in signal handlers; keeps errno; no cancellation point. */
void posix_trace_event(trace_event_id_t __event_id, const void *__ptt_restrict __data_ptr, size_t __data_len);

/* ------------------------------------------------------------ the analyzer */

int posix_trace_getnext_event(trace_id_t __trid, struct posix_trace_event_info *__ptt_restrict __event,
			      void *__ptt_restrict __data, size_t __num_bytes, size_t *__ptt_restrict __data_len,
			      int *__ptt_restrict __unavailable);
int posix_trace_timedgetnext_event(trace_id_t __trid, struct posix_trace_event_info *__ptt_restrict __event,
				   void *__ptt_restrict __data, size_t __num_bytes, size_t *__ptt_restrict __data_len,
				   int *__ptt_restrict __unavailable, const struct timespec *__ptt_restrict __abstime);
int posix_trace_trygetnext_event(trace_id_t __trid, struct posix_trace_event_info *__ptt_restrict __event,
				 void *__ptt_restrict __data, size_t __num_bytes, size_t *__ptt_restrict __data_len,
				 int *__ptt_restrict __unavailable);
int posix_trace_open(int __file_desc, trace_id_t *__trid);
int posix_trace_rewind(trace_id_t __trid);
int posix_trace_close(trace_id_t __trid);

#undef __ptt_restrict
#ifdef __cplusplus
}
#endif

#endif
