/* SPDX-License-Identifier: MIT */
/* process.h - shared by the hooks that make processes: the child of a fork, and the environment of a new program. */
#ifndef PTT_PROCESS_H
#define PTT_PROCESS_H

#include <alloca.h>
#include <sys/types.h>

#include "tracer.h"

/* Field kind of PROCESS_FORK. */
enum ptt_fork_kind { PTT_FORK, PTT_BARE_FORK, PTT_VFORK, PTT_CLONE, PTT_FORK_BY_SYSCALL };

/* ------------------------------------------------------------ fork.c */

/* ptt_start_process - register the handlers of pthread_atfork(), before any other library. */
void ptt_start_process(void) HIDDEN;

/* ptt_report_start - report the first events of a process. */
void ptt_report_start(void) HIDDEN;

/* ------------------------------------------------------------ children.c */

/* ptt_report_fork - the calling thread has made process @child; 0: unknown id. */
void ptt_report_fork(enum ptt_fork_kind kind, long child, void *site) HIDDEN;

/*
 * ptt_proc_has_our_ids - does /proc belong to the PID namespace of this process? Makes a system call; false in a
 * confined program.
 */
bool ptt_proc_has_our_ids(void) HIDDEN;

/* ptt_report_daemon - in the parent of a fork: report the fork of daemon(), because the parent ends inside it. */
void ptt_report_daemon(void) HIDDEN;
void ptt_leave_daemon(void) HIDDEN; /* in the child */

/* ------------------------------------------------------------ shared_storage.c */

/* Field cause of EVENTS_LOST. */
#define PTT_LOST_SHARED_STORAGE 1

/*
 * ptt_share_storage - call it before clone() with @flags: if the child uses the thread-local storage of the calling
 * thread, neither is recorded from now on
 * Return: true if the recording of the thread stops with this call. Async-signal-safe.
 */
bool ptt_share_storage(uint64_t flags) HIDDEN;

void ptt_own_storage(void) HIDDEN;    /* the kernel refused the call, and there is no child */
void ptt_forget_storage(void) HIDDEN; /* in the child of a fork, which has its own copy */

/*
 * ptt_report_lost - when the process ends or executes a program: report the number of events that were not recorded,
 * if any.
 */
void ptt_report_lost(void) HIDDEN;

/* ------------------------------------------------------------ covered.c */

/* ptt_report_uncovered - list the modules that are not traced in a file of the session, for the recorder. */
void ptt_report_uncovered(void) HIDDEN;

/* ------------------------------------------------------------ environment.c */

/*
 * ptt_start_environment - keep the environment that programs started from here need to be traced
 * @variable: value of PTHREAD_NPTL_TRACE
 * @children: are child processes traced, too? If not, the variable is removed from the environment
 */
void ptt_start_environment(const char *variable, bool children) HIDDEN;

/* Memory for an environment that is too large for a stack. The owner unmaps it after the call that uses it. */
struct ptt_room {
	char *at;
	size_t size;
};

/* Bytes of an environment on the stack, at most. A stack may have 16 KiB, and the real function needs some of it. */
#define PTT_STACK_ROOM 2048

/*
 * ptt_environment_size - bytes for a copy of @env with the tracer; 0: @env needs no change
 * @own: this process executes the program, unless it is a child of vfork()
 */
size_t ptt_environment_size(char *const *env, bool own) HIDDEN;

/* ptt_environment_fill - copy @env, with the tracer, to @place. Return: @place, or @env if @place is NULL. */
char **ptt_environment_fill(void *place, char *const *env) HIDDEN;

/*
 * ptt_room_map - map @size bytes; NULL: no memory. ptt_room_unmap - unmap them, if any. Both are async-signal-safe
 * and keep errno.
 */
void *ptt_room_map(struct ptt_room *room, size_t size) HIDDEN;
void ptt_room_unmap(struct ptt_room *room) HIDDEN;

/*
 * WITH_TRACER - @env, with the tracer if the program removed it
 * @room: the caller unmaps it afterwards
 * A small environment is on the stack of the caller. Async-signal-safe, also in a child of vfork().
 */
#define WITH_TRACER(room, env, own)                                                                         \
	({                                                                                                  \
		char *const *program_ = (env);                                                              \
		size_t size_ = ptt_environment_size(program_, own);                                         \
                                                                                                            \
		size_ ? ptt_environment_fill(                                                               \
				size_ <= PTT_STACK_ROOM ? alloca(size_) : ptt_room_map(room, size_), program_) \
		      : (char **)program_;                                                                  \
	})

#endif
