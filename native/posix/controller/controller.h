/* SPDX-License-Identifier: MIT */
/* controller.h - what a trace_id_t stands for: a stream that this process controls, or a log that it has opened. */
#ifndef PX_CONTROLLER_H
#define PX_CONTROLLER_H

#include "log.h"
#include "traced.h"
#include "records.h"

enum px_kind { PX_FREE = 0, PX_STREAM = 1, PX_LOG = 2 };

/* What px_next_event() is to deliver next. */
enum px_phase { PX_NORMAL, PX_RESUME_DUE, PX_HELD_DUE };

/* Where reading is; in memory that the finisher shares. */
struct px_reading {
	struct px_reader reader;
	enum px_phase phase;
	uint32_t pad;
	struct px_record held; /* and on: the record that comes after a gap */
};

/*
 * Between threads: id and users are seq_cst, as px_trace_use() says. agent_ready, flush_wanted, ending and flushing are
 * seq_cst: set before the agent's bell is rung, or its futex woken, and looked at before it sleeps. flush_error is set with
 * release and taken by an exchange. All else is under a lock, or set before the trace is published.
 */
struct px_trace {
	trace_id_t id;	/* 0 = nobody may use it any more */
	uint32_t users; /* threads that do */
	uint32_t generation;
	enum px_kind kind;
	struct px_attr attr;
	int64_t real_offset;	  /* nanoseconds from the clock of the records to CLOCK_REALTIME */
	trace_event_id_t list_at; /* event type listed last */

	/* of a stream */
	pthread_mutex_t lock;	  /* whoever takes records out; innermost, but for the locks of names */
	pthread_mutex_t log_lock; /* whoever writes to the log; taken before lock */
	struct px_buffer buffer;
	struct px_reading *reading;
	struct px_record *scratch; /* the record that was taken last; shared like `reading` */
	struct px_path directory;  /* of the stream's file */
	uint32_t user;
	struct px_path
		page_directory; /* of the page and the names of the process traced: it may have changed its user */
	uint32_t page_user;
	uint32_t pid;
	uint64_t start;
	struct px_control *control; /* page of the process traced */
	struct px_names *names;
	struct px_names *names_before; /* somebody may still look at them */
	uint32_t family_pid;	       /* whose names these are */
	uint64_t family_start;

	/* of a stream: its agent, a thread of ours */
	pthread_t agent;
	uint32_t agent_ready; /* futex word: 1 = holds the stream, 2 = it could not */
	uint32_t flush_wanted;
	uint32_t ending;

	/* of a stream with a log */
	struct px_log *log;
	uint32_t finisher; /* process that outlives us; 0 = none */
	uint64_t finisher_start;
	uint32_t flushing;
	uint32_t flush_error; /* the first since somebody asked */
	int last_error;	      /* of the last flush */
	void *kept;	      /* records that an analyzer took before they were flushed; under lock */
	size_t kept_at;	      /* everything before it has gone to the log */
	size_t kept_size;
	size_t kept_room;

	/* of an opened log */
	struct px_log_reader *opened;
};

/* px_record_room - bytes of the longest record of a stream, those of its own included. */
static inline size_t px_record_room(const struct px_attr *attr)
{
	return (size_t)(px_cells(attr->max_data) + px_cells(2 * sizeof(trace_event_set_t))) * PX_CELL;
}

static inline size_t px_reading_size(const struct px_attr *attr)
{
	return sizeof(struct px_reading) + px_record_room(attr);
}

/* ------------------------------------------------------------ trace_id.c */

/*
 * px_trace_use - what @id stands for, if it is of one of @kinds; NULL if it is not. px_trace_done - the caller is done.
 * Between the two it stays, whatever others do.
 */
struct px_trace *px_trace_use(trace_id_t id, unsigned int kinds);
void px_trace_done(struct px_trace *trace);

/* px_trace_claim - a free one, without an id. Under the guard. px_trace_publish - give it its id. */
struct px_trace *px_trace_claim(void);
trace_id_t px_trace_publish(struct px_trace *trace);

/*
 * px_trace_retract - take the id away; false if somebody else has. px_trace_quiesce - wait until nobody uses it any more;
 * not under the guard, for which they may be waiting. px_trace_release - make it free.
 */
bool px_trace_retract(struct px_trace *trace, trace_id_t id);
void px_trace_quiesce(struct px_trace *trace);
void px_trace_release(struct px_trace *trace);

/* px_trace_next - the id of a stream or log in the table behind place @at, which moves on; 0 at the end. */
trace_id_t px_trace_next(uint32_t *at, unsigned int kinds);

/* ------------------------------------------------------------ types.c */

/* px_trace_names - the names that the stream or log knows; NULL if none but the standard's. Under the guard, or by the agent. */
const struct px_names *px_trace_names(struct px_trace *trace);

/* px_trace_open_name - id of a name that the controller of another process gives it, made if there is room. Under the guard. */
trace_event_id_t px_trace_open_name(struct px_trace *trace, const char *name);

/* ------------------------------------------------------------ next_event.c */

/* px_next_event - the next event of a stream, also an event that reports a gap, into @to. Under trace.lock. */
enum px_take px_next_event(struct px_trace *trace, struct px_record *to);

/* ------------------------------------------------------------ flush.c */

/* px_flush - put all that is recorded by now into the log. Return: 0 or an error number. Blocks. */
int px_flush(struct px_trace *trace, bool final);

/* px_write_status - put the stream's status into the log. Return: 0 or an error number. */
int px_write_status(struct px_trace *trace, bool final);

/* px_flush_ask - have the agent flush. px_flush_due - should it, because of that or for want of room? */
void px_flush_ask(struct px_trace *trace);
bool px_flush_due(const struct px_trace *trace);

/* px_keep - have a record that an analyzer has taken go to the log all the same. Under trace.lock. */
void px_keep(struct px_trace *trace, const struct px_record *record);

/* px_note_error - a flush failed; of several errors the first is reported. */
void px_note_error(struct px_trace *trace, int err);

/* px_clear_log - forget what was flushed or kept so far. Return: 0 or an error number. */
int px_clear_log(struct px_trace *trace);

/* ------------------------------------------------------------ control.c */

/* px_stop - stop the stream, if it is running, for a call from @address. */
void px_stop(struct px_trace *trace, const void *address);

/* ------------------------------------------------------------ registration.c */

/* px_page_map - map the page of the process traced, in whatever directory it has made it. Return: 0 or an error number. */
int px_page_map(struct px_trace *trace);

/* px_stream_register - make the stream, and give it a slot. The registry is locked. Return: 0 or an error number. */
int px_stream_register(struct px_trace *trace, struct px_registry *registry);

/* px_stream_enter - have the process record in the stream from now on. px_stream_leave - no longer. */
void px_stream_enter(struct px_trace *trace);
void px_stream_leave(struct px_trace *trace);

/* px_stream_withdraw - take the stream away from where others find it. The registry is locked. */
void px_stream_withdraw(struct px_trace *trace, struct px_registry *registry);

/* ------------------------------------------------------------ finisher.c */

/*
 * px_finisher_start - start a process that sees to the stream's end if this one ends without doing so. Return: its id, or 0.
 * px_finisher_end - the stream has been let go of: wait until that process has noticed.
 */
uint32_t px_finisher_start(struct px_trace *trace);
void px_finisher_end(uint32_t finisher);

/* ------------------------------------------------------------ agent.c */

/*
 * px_agent_start - begin to hold the stream, and to flush it. px_agent_end - see to the last flush, and let go of it.
 * Both return 0 or an error number.
 */
int px_agent_start(struct px_trace *trace);
int px_agent_end(struct px_trace *trace);

#endif
