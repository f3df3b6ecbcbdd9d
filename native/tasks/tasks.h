/* SPDX-License-Identifier: MIT */
/* tasks.h - what the kernel says of the threads of a process, below /proc/PID/task, and what they sleep on. */
/*
 * The files of a thread are short, and opening them takes most of the time. Where threads are many, several processors
 * read them at once, while the caller does something else.
 */
#ifndef PTT_TASKS_H
#define PTT_TASKS_H

#include <stdint.h>

#define PTT_TASKS_API __attribute__((visibility("default")))
#define PTT_TASKS_ABI 3

/* in place of the number of a system call: no call, a running thread, a thread that has ended */
#define PTT_TASK_IN_NO_CALL (-1)
#define PTT_TASK_RUNS (-2)
#define PTT_TASK_GONE (-3)

/* bytes to read of a thread's memory: from the word at its stack pointer on, and around its futex */
#define PTT_TASK_STACK 512
#define PTT_TASK_BEFORE 48
#define PTT_TASK_BEHIND 32
#define PTT_TASK_MEMORY (PTT_TASK_STACK + PTT_TASK_BEFORE + PTT_TASK_BEHIND)

struct ptt_task {
	int32_t tid; /* the thread id in the caller's PID namespace */
	int32_t inner_tid; /* the thread id in the thread's own PID namespace */
	int64_t turns; /* how often it has had a processor, before all other reads; -1 = it is gone */
	int64_t call; /* the number of its system call, or one of the values above */
	uint64_t arguments[6];
	uint64_t sp, pc; /* 0 if the thread runs */
	char name[24];
	char state; /* the kernel's letter; S for every thread in a system call that does not end the thread */
	uint8_t has_stack, has_futex; /* whether the read of this memory succeeded */
	char pad[5];
};
_Static_assert(sizeof(struct ptt_task) == 120, "struct ptt_task");

PTT_TASKS_API uint32_t ptt_tasks_abi(void);

/*
 * Begins to read all of threads, and PTT_TASK_MEMORY bytes for each; is_inside says that the process is in a PID
 * namespace of its own. Both are the readers' until ptt_tasks_end().
 */
PTT_TASKS_API void *ptt_tasks_begin(int32_t pid, struct ptt_task *tasks, char *memory, uint64_t count,
				    int32_t is_inside);

/* Returns when all is read. */
PTT_TASKS_API void ptt_tasks_end(void *reading);

/* Reads how often they have had a processor, and nothing else. */
PTT_TASKS_API void ptt_tasks_turns(int32_t pid, struct ptt_task *tasks, uint64_t count);

#endif
