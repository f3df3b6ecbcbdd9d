/* SPDX-License-Identifier: MIT */
/* convert.h - the interface of libpttposix.so: POSIX trace logs as traces that all tools read. */
#ifndef PX_CONVERT_H
#define PX_CONVERT_H

/*
 * ptt_posix_convert - write the events of a log as a CTF trace
 * @log: the log's file
 * @directory: of the trace; exists, and is empty
 * Events of the tracer, which the handler `posix` has put into the stream, become what they were; all others become
 * POSIX_TRACE_EVENT. Return: 0 or -errno; -EINVAL if it is no log. Blocks; allocates.
 */
__attribute__((visibility("default"))) int ptt_posix_convert(const char *log, const char *directory);

#endif
