/* SPDX-License-Identifier: MIT */
/* joining.h - what becomes of a process that cannot join the recording of its session directory. */
#ifndef PTT_HANDLER_JOINING_H
#define PTT_HANDLER_JOINING_H

/*
 * Both take the arguments of a handler that writes to a recorder: the session directory, its place, the recorder's standard
 * error, the trace directory. All but the first may be missing. Both make system calls.
 */

/* ptt_refuse - counts this process as not joined, says why if it may, and turns tracing off. @err: errno, or 0 */
void ptt_refuse(const char *handler, char **args, const char *what, int err) __attribute__((visibility("hidden")));

/* ptt_joined - turns tracing off if the session could not be joined, and says why where somebody should know. @err: 0 or -errno */
void ptt_joined(const char *handler, char **args, int err) __attribute__((visibility("hidden")));

#endif
