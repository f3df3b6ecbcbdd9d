/* SPDX-License-Identifier: MIT */
/* controller.h - the object of a trace_id_t: a stream that this process controls, or a log that it has opened. */
#ifndef PX_CONTROLLER_H
#define PX_CONTROLLER_H

#include "log.h"
#include "traced.h"
#include "records.h"

enum px_kind { PX_FREE = 0, PX_STREAM = 1, PX_LOG = 2 };

/* The next event of px_next_event(): from the ring, a RESUME, or the held record. */
enum px_phase { PX_NORMAL, PX_RESUME_DUE, PX_HELD_DUE };

/* The state of reading, in memory that the finisher shares. */
struct px_reading {
	struct px_reader reader;
	enum px_phase phase;
	uint32_t pad;
	struct px_record held; /* the record after a gap; it continues behind this struct */
};

/*
 * Between threads: id and users are seq_cst, as px_trace_use() says. agent_ready, flush_wanted, ending and flushing are
 * seq_cst: a thread sets them before it rings the agent's bell, or wakes its futex; the agent loads them before it sleeps.
 * flush_error is set with release and taken by an exchange. A lock protects all other members, or they are set before the
 * trace is published.
 */
struct px_trace {
	trace_id_t id;	/* 0 = nobody may use the trace any more */
	uint32_t users; /* threads that use the trace */
	uint32_t generation;
	enum px_kind kind;
	struct px_attr attr;
	int64_t real_offset;	  /* nanoseconds from the clock of the records to CLOCK_REALTIME */
	trace_event_id_t list_at; /* the event type that was listed last */

	/* a stream */
	pthread_mutex_t lock;	  /* protects taking records out; innermost, except for the locks of names */
	pthread_mutex_t log_lock; /* protects writing to the log; taken before lock */
	struct px_buffer buffer;
	struct px_reading *reading;
	struct px_record *scratch;     /* the record that was taken last; shared like `reading` */
	struct px_path directory;      /* directory of the stream's file */
	uint32_t user;		       /* its owner */
	struct px_path page_directory; /* directory of the traced process's page and names: its user may have changed */
	uint32_t page_user;
	uint32_t pid;
	uint64_t start;
	struct px_control *control; /* page of the traced process */
	struct px_names *names;
	struct px_names *names_before; /* the table before; threads may still read it */
	uint32_t family_pid;	       /* the family of the names */
	uint64_t family_start;

	/* a stream: its agent, a thread of this process */
	pthread_t agent;
	uint32_t agent_ready; /* futex word: 1 = the agent holds the stream, 2 = it could not lock the mutex */
	uint32_t flush_wanted;
	uint32_t ending;

	/* a stream with a log */
	struct px_log *log;
	uint32_t finisher; /* the process that outlives us; 0 = none */
	uint64_t finisher_start;
	uint32_t flushing;
	uint32_t flush_error; /* the first error since the last question for the status */
	int last_error;	      /* error of the last flush */
	void *kept;	      /* records that an analyzer took before they were flushed; under lock */
	size_t kept_at;	      /* the log has the records before this offset */
	size_t kept_size;
	size_t kept_room;

	/* an opened log */
	struct px_log_reader *opened;
};

/* px_record_room - bytes of the longest record of a stream, including the stream's own events. */
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
 * px_trace_use - the trace with @id, if it is of one of @kinds; else NULL
 * px_trace_done - end the use. The trace stays valid between the two calls.
 */
struct px_trace *px_trace_use(trace_id_t id, unsigned int kinds);
void px_trace_done(struct px_trace *trace);

/*
 * px_trace_claim - a free trace, without an id; NULL if there is none. Under the guard.
 * px_trace_publish - give the trace its id
 */
struct px_trace *px_trace_claim(void);
trace_id_t px_trace_publish(struct px_trace *trace);

/*
 * px_trace_retract - take the id away. Return: false if another thread has done so.
 * px_trace_quiesce - wait until no thread uses the trace. Not under the guard: the users may be waiting for the guard.
 * px_trace_release - make the trace free
 */
bool px_trace_retract(struct px_trace *trace, trace_id_t id);
void px_trace_quiesce(struct px_trace *trace);
void px_trace_release(struct px_trace *trace);

/* px_trace_next - the id of the next trace of one of @kinds from index @at on; moves @at past it. Return: 0 at the end. */
trace_id_t px_trace_next(uint32_t *at, unsigned int kinds);

/* ------------------------------------------------------------ types.c */

/* px_trace_names - the names of the stream or log; NULL if there are only standard names. Under the guard, or by the agent. */
const struct px_names *px_trace_names(struct px_trace *trace);

/* ------------------------------------------------------------ next_event.c */

/* px_next_event - store the next event of a stream in @to; an event may report a gap. Under trace.lock. */
enum px_take px_next_event(struct px_trace *trace, struct px_record *to);

/* ------------------------------------------------------------ flush.c */

/* px_flush - write all recorded events to the log. Return: 0 or an error number. Blocks. */
int px_flush(struct px_trace *trace, bool final);

/* px_write_status - write the stream's status to the log. Return: 0 or an error number. */
int px_write_status(struct px_trace *trace, bool final);

/* px_flush_ask - ask the agent to flush. px_flush_due - has somebody asked for a flush, or does FLUSH need room? */
void px_flush_ask(struct px_trace *trace);
bool px_flush_due(const struct px_trace *trace);

/* px_keep - keep a record that an analyzer has taken, for the next flush. Under trace.lock. */
void px_keep(struct px_trace *trace, const struct px_record *record);

/* px_note_error - note the error of a flush, if @err is not 0. The status reports the first error. */
void px_note_error(struct px_trace *trace, int err);

/* ------------------------------------------------------------ control.c */

/* px_stop - stop the stream if it runs; @address: the caller of the public function */
void px_stop(struct px_trace *trace, const void *address);

/* ------------------------------------------------------------ registration.c */

/* px_page_map - map the page of the traced process, from the directory that has the page. Return: 0 or an error number. */
int px_page_map(struct px_trace *trace);

/* px_stream_register - make the stream, and give it a slot. The registry is locked. Return: 0 or an error number. */
int px_stream_register(struct px_trace *trace, struct px_registry *registry);

/* px_stream_enter - the traced process records in the stream from now on. px_stream_leave - no longer. */
void px_stream_enter(struct px_trace *trace);
void px_stream_leave(struct px_trace *trace);

/* px_stream_withdraw - remove the stream from the page, the directory and the registry. The registry is locked. */
void px_stream_withdraw(struct px_trace *trace, struct px_registry *registry);

/* ------------------------------------------------------------ finisher.c */

/*
 * px_finisher_start - start a process that ends the stream if this process ends without a shutdown. Return: its id, or 0.
 * px_finisher_end - wait until the finisher has ended. The agent has unlocked the stream before.
 */
uint32_t px_finisher_start(struct px_trace *trace);
void px_finisher_end(uint32_t finisher);

/* ------------------------------------------------------------ agent.c */

/*
 * px_agent_start - start the thread that holds the stream and flushes it
 * px_agent_end - flush for the last time, unlock the stream, and end the thread
 * Return: 0 or an error number.
 */
int px_agent_start(struct px_trace *trace);
int px_agent_end(struct px_trace *trace);

#endif
