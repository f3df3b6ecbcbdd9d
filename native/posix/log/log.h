/* SPDX-License-Identifier: MIT */
/* log.h - logs: written by the agent of a stream, read by an analyzer; layout.h declares their contents. */
#ifndef PX_LOG_H
#define PX_LOG_H

#include "names.h"

/* ------------------------------------------------------------ writing */

struct px_log;

/* px_log_begin - a log on @fd, which stays the caller's. Return: 0, EBADF, EINVAL, ENOMEM or ENOSPC. */
int px_log_begin(struct px_log **log, int fd, const struct px_attr *attr, uint32_t pid, int64_t real_offset);
void px_log_end(struct px_log *log);
int px_log_descriptor(const struct px_log *log);

/*
 * px_log_add - put a record into the block in the making
 * @taken: place in the stream up to which records have now been taken out; px_log_taken() returns it
 * Return: false if the block has to be written before the next one.
 */
bool px_log_add(struct px_log *log, const struct px_record *record, uint64_t taken);
uint64_t px_log_taken(const struct px_log *log);

/*
 * px_log_write - write the block in the making, and before it the names that are new. What cannot be written stays for
 * the next attempt. Return: 0, ENOSPC or EFBIG. May block; signals that writing may raise must be blocked.
 */
int px_log_write(struct px_log *log, const struct px_names *names);

int px_log_write_status(struct px_log *log, const struct px_log_status *status);

/* px_log_clear - have all events written so far forgotten. */
int px_log_clear(struct px_log *log);

/* px_log_is_full, px_log_overran - did the log reach its size; have events been lost since this was last reset? */
bool px_log_is_full(const struct px_log *log);
bool px_log_overran(struct px_log *log, bool reset);

/* ------------------------------------------------------------ reading */

struct px_log_reader;

/* px_log_read - read the newest log in @fd. Return: 0, EINVAL or ENOMEM. */
int px_log_read(struct px_log_reader **reader, int fd);

/*
 * px_log_read_whole - the same; but if the controller died, what its finisher writes is there too: waits for that, 30 s at most
 * Return: 0, EINVAL or ENOMEM. Blocks, is no cancellation point.
 */
int px_log_read_whole(struct px_log_reader **reader, int fd);

void px_log_read_end(struct px_log_reader *reader);

const struct px_log_head *px_log_head_of(const struct px_log_reader *reader);
const struct px_log_status *px_log_status_of(const struct px_log_reader *reader);
const struct px_names *px_log_names_of(const struct px_log_reader *reader);

/* px_log_next - the next record; NULL at the end. */
const struct px_record *px_log_next(struct px_log_reader *reader);
void px_log_rewind(struct px_log_reader *reader);

#endif
