/* SPDX-License-Identifier: MIT */
/* process.h - what the hooks that make processes share: the child of a fork, and the environment of a new program. */
#ifndef PTT_PROCESS_H
#define PTT_PROCESS_H

#include <alloca.h>
#include <sys/types.h>

#include "tracer.h"

/* Field kind of PROCESS_FORK. */
enum ptt_fork_kind { PTT_FORK, PTT_BARE_FORK, PTT_VFORK, PTT_CLONE, PTT_FORK_BY_SYSCALL };

/* ------------------------------------------------------------ fork.c */

/* ptt_start_process - see to the children of forks, before anybody else does. */
void ptt_start_process(void) HIDDEN;

/* ptt_report_start - the first events of a process. */
void ptt_report_start(void) HIDDEN;

/* ------------------------------------------------------------ children.c */

/* ptt_report_fork - the calling thread has made process @child, 0 if its id is not known. */
void ptt_report_fork(enum ptt_fork_kind kind, long child, void *site) HIDDEN;

/*
 * ptt_proc_has_our_ids - does /proc have processes under the ids by which this process knows them? Not if /proc belongs to another PID
 * namespace. Makes a system call; false in a confined program.
 */
bool ptt_proc_has_our_ids(void) HIDDEN;

/* ptt_report_daemon - in the parent of a fork: it ends inside daemon(), if it is there, so this is the time to report. */
void ptt_report_daemon(void) HIDDEN;
void ptt_leave_daemon(void) HIDDEN; /* in the child */

/* ------------------------------------------------------------ shared_storage.c */

/* Field cause of EVENTS_LOST. */
#define PTT_LOST_SHARED_STORAGE 1

/*
 * ptt_share_storage - before a clone() with @flags: if its child uses the thread-local storage of the calling thread,
 * neither is recorded from now on
 * Return: whether that begins here. Async-signal-safe.
 */
bool ptt_share_storage(uint64_t flags) HIDDEN;

void ptt_own_storage(void) HIDDEN;    /* the kernel has refused the call, and there is no child */
void ptt_forget_storage(void) HIDDEN; /* in the child of a fork, which has a copy of its own */

/* ptt_report_lost - how many events were not recorded, if any; where the process ends or executes a program. */
void ptt_report_lost(void) HIDDEN;

/* ------------------------------------------------------------ covered.c */

/* ptt_report_uncovered - write down for the recorder, in the directory that it shares with us, which modules are not traced. */
void ptt_report_uncovered(void) HIDDEN;

/* ------------------------------------------------------------ environment.c */

/*
 * ptt_start_environment - what a program started from here needs to be traced
 * @variable: value of PTHREAD_NPTL_TRACE
 * @children: whether programs of other processes are traced too; if not, the variable leaves the environment
 */
void ptt_start_environment(const char *variable, bool children) HIDDEN;

/* Room for an environment that is too large for a stack. Its owner unmaps it when the call that used it comes back. */
struct ptt_room {
	char *at;
	size_t size;
};

/* Threads have stacks of 16 KiB and less, and the real function needs some of it. */
#define PTT_STACK_ROOM 2048

/*
 * ptt_environment_size - bytes needed for an @env with the tracer in it; 0 where @env can stay as it is
 * @own: this process is to execute the program, unless it is a child of vfork
 */
size_t ptt_environment_size(char *const *env, bool own) HIDDEN;

/* ptt_environment_fill - put @env with the tracer into @place. Return: @place, or @env where that is NULL. */
char **ptt_environment_fill(void *place, char *const *env) HIDDEN;

/* ptt_room_map - @size bytes, or NULL. ptt_room_unmap - what there is. Async-signal-safe, errno stays. */
void *ptt_room_map(struct ptt_room *room, size_t size) HIDDEN;
void ptt_room_unmap(struct ptt_room *room) HIDDEN;

/*
 * WITH_TRACER - @env, with the tracer put back where the program left it out
 * @room: unmapped by the caller afterwards
 * A small one is on the stack of the caller. Async-signal-safe, also in a child of vfork.
 */
#define WITH_TRACER(room, env, own)                                                                         \
	({                                                                                                  \
		char *const *given_ = (env);                                                                \
		size_t size_ = ptt_environment_size(given_, own);                                           \
                                                                                                            \
		size_ ? ptt_environment_fill(                                                               \
				size_ <= PTT_STACK_ROOM ? alloca(size_) : ptt_room_map(room, size_), given_) \
		      : (char **)given_;                                                                    \
	})

#endif
