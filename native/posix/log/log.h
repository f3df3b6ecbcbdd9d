/* SPDX-License-Identifier: MIT */
/* log.h - logs: the agent of a stream writes them, an analyzer reads them. layout.h declares their contents. */
#ifndef PX_LOG_H
#define PX_LOG_H

#include "names.h"

/* ------------------------------------------------------------ writing */

struct px_log;

/* px_log_begin - begin a log on a duplicate of @fd. Return: 0, EBADF, EINVAL, ENOMEM or ENOSPC. */
int px_log_begin(struct px_log **log, int fd, const struct px_attr *attr, uint32_t pid, int64_t real_offset);
void px_log_end(struct px_log *log);
int px_log_descriptor(const struct px_log *log);

/*
 * px_log_add - add a record to the current block
 * @taken: place in the stream behind the last record that was taken out; px_log_taken() returns it
 * Return: false if the block is full: call px_log_write() before the next record.
 */
bool px_log_add(struct px_log *log, const struct px_record *record, uint64_t taken);
uint64_t px_log_taken(const struct px_log *log);

/*
 * px_log_write - write the new names, and then the current block. After an error, the names and records stay for the next
 * call. Return: 0, ENOSPC or EFBIG. May block. The caller must have blocked the signals SIGXFSZ and SIGPIPE.
 */
int px_log_write(struct px_log *log, const struct px_names *names);

/* px_log_write_status - write a status. Return: 0, ENOSPC or EFBIG. */
int px_log_write_status(struct px_log *log, const struct px_log_status *status);

/* px_log_clear - void all events that were written so far. Return: 0, ENOSPC or EFBIG. */
int px_log_clear(struct px_log *log);

/* px_log_is_full - did the log reach its size? px_log_overran - did the log lose events since the last reset? */
bool px_log_is_full(const struct px_log *log);
bool px_log_overran(struct px_log *log, bool reset);

/* ------------------------------------------------------------ reading */

struct px_log_reader;

/*
 * px_log_read_whole - read the newest log in @fd. If the controller died, wait up to 30 s for the rest from its finisher.
 * Return: 0, EINVAL or ENOMEM. Blocks; allocates; is no cancellation point. End with px_log_read_end().
 */
int px_log_read_whole(struct px_log_reader **reader, int fd);

void px_log_read_end(struct px_log_reader *reader);

const struct px_log_head *px_log_head_of(const struct px_log_reader *reader);
const struct px_log_status *px_log_status_of(const struct px_log_reader *reader);
const struct px_names *px_log_names_of(const struct px_log_reader *reader);

/* px_log_next - the next record, valid until px_log_read_end(); NULL at the end. */
const struct px_record *px_log_next(struct px_log_reader *reader);
void px_log_rewind(struct px_log_reader *reader);

#endif
