/* SPDX-License-Identifier: MIT */
/* handler.h - shared by the handlers of PTT: attributes, event ids, and the refusal of a process. */
#ifndef PTT_HANDLER_H
#define PTT_HANDLER_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

/* Id of an event in the catalogue. */
#define ID(domain, number) ((uint32_t)(domain) << 6 | (uint32_t)(number))

/* ------------------------------------------------------------ joining.c */

/*
 * Both functions take the arguments of a handler that writes to a recorder: the session directory, its place, the
 * recorder's standard error, the trace directory. All but the first may be missing. Both make system calls.
 */

/* ptt_refuse - counts this process as not joined, says why if it may, and turns tracing off. @err: errno, or 0 */
void ptt_refuse(const char *handler, char **args, const char *what, int err) __attribute__((visibility("hidden")));

/* ptt_joined - turns tracing off if the process could not join, and says why if somebody should know. @err: 0 or -errno */
void ptt_joined(const char *handler, char **args, int err) __attribute__((visibility("hidden")));

#endif
