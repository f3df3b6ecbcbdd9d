/* SPDX-License-Identifier: MIT */
/* flush.h - the events of a stream on their way into its log. */
#ifndef PX_FLUSH_H
#define PX_FLUSH_H

#include "trace_id.h"

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

#endif
