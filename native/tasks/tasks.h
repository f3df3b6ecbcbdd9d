/* SPDX-License-Identifier: MIT */
/* tasks.h - the state of the threads of a process from /proc/PID/task, and the memory that they sleep on. */
/*
 * The files of a thread are short, and opening them takes most of the time. For many threads, several processors read
 * the files at once, while the caller continues.
 */
#ifndef PTT_TASKS_H
#define PTT_TASKS_H

#include <stdint.h>

#define PTT_TASKS_API __attribute__((visibility("default")))
#define PTT_TASKS_ABI 3

/* in place of the number of a system call: the thread is in no call, runs, or has ended */
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
	int64_t turns; /* how often it has had a processor, read first; -1 = it has ended */
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
 * ptt_tasks_begin - begin to read the state of threads, and PTT_TASK_MEMORY bytes of memory for each thread
 * @is_inside: the process is in a PID namespace of its own
 * The readers own @tasks and @memory until ptt_tasks_end().
 * Return: for ptt_tasks_end(); NULL if there was no memory for readers, and everything is read.
 */
PTT_TASKS_API void *ptt_tasks_begin(int32_t pid, struct ptt_task *tasks, char *memory, uint64_t count,
				    int32_t is_inside);

/* ptt_tasks_end - wait until everything is read, and free @reading. */
PTT_TASKS_API void ptt_tasks_end(void *reading);

/* ptt_tasks_turns - read only the turns of threads. */
PTT_TASKS_API void ptt_tasks_turns(int32_t pid, struct ptt_task *tasks, uint64_t count);

#endif
