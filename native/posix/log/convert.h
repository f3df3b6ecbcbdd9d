/* SPDX-License-Identifier: MIT */
/* convert.h - the interface of libpttposix.so: converts POSIX trace logs to traces that all tools read. */
#ifndef PX_CONVERT_H
#define PX_CONVERT_H

/*
 * ptt_posix_convert - write the events of a log as a CTF trace
 * @log: path of the log's file
 * @directory: path of the trace, an empty directory
 * Events that the handler `posix` put into the stream become the tracer's event types again. All other events become
 * POSIX_TRACE_EVENT. Return: 0 or -errno; -EINVAL if the file has no log. Blocks; allocates.
 */
__attribute__((visibility("default"))) int ptt_posix_convert(const char *log, const char *directory);

#endif
