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

/* what stands for the number of a system call */
#define PTT_TASK_IN_NO_CALL (-1)
#define PTT_TASK_RUNS (-2)
#define PTT_TASK_GONE (-3)

/* memory of a thread that is read with it: from the word on that its stack pointer is in, and around its futex */
#define PTT_TASK_STACK 512
#define PTT_TASK_BEFORE 48
#define PTT_TASK_BEHIND 32
#define PTT_TASK_MEMORY (PTT_TASK_STACK + PTT_TASK_BEFORE + PTT_TASK_BEHIND)

struct ptt_task {
	int32_t tid; /* which thread, as the caller's PID namespace counts it */
	int32_t inner_tid; /* as its own counts it */
	int64_t turns; /* how often it has had a processor, before all else was read; -1 = it is gone */
	int64_t call; /* the number of the system call that it is in, or what stands for it */
	uint64_t arguments[6];
	uint64_t sp, pc; /* 0 if the thread runs */
	char name[24];
	char state; /* the kernel's letter; S of all that are in a system call in which threads live on */
	uint8_t has_stack, has_futex; /* whether that memory could be read */
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
