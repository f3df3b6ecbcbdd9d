/* SPDX-License-Identifier: MIT */
/* tasks.c - reads the files and the memory of threads, in several helper threads. */
#include "tasks.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Threads to read for each helper, and the largest number of helpers. */
#define WORTH 64
#define HELPERS 7
/* Threads that a helper takes at a time. */
#define TAKEN 16
/* The longest file, `status`. */
#define TEXT 8192

struct work {
	int directory;
	bool is_inside, is_short;
	struct ptt_task *tasks;
	char *memory;
	uint64_t count, helpers;
	_Atomic uint64_t next;
	pthread_t helping[HELPERS];
};

uint32_t ptt_tasks_abi(void)
{
	return PTT_TASKS_ABI;
}

/* The text of a file of a thread; empty without such a file. */
static const char *text_of(const struct work *work, int32_t tid, const char *file, char *text)
{
	char name[48];
	ssize_t size = 0;
	int fd;

	snprintf(name, sizeof(name), "%d/%s", tid, file);
	fd = openat(work->directory, name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		size = read(fd, text, TEXT - 1);
		close(fd);
	}
	text[size > 0 ? size : 0] = '\0';
	return text;
}

/* The text behind a name in `status`; NULL without such a name. */
static const char *value_of(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? at + strlen(name) + strspn(at + strlen(name), "\t ") : NULL;
}

static int64_t number_of(const char *status, const char *name)
{
	const char *value = value_of(status, name);

	return value ? strtoll(value, NULL, 10) : 0;
}

static int64_t turns_of(const struct work *work, int32_t tid, char *text)
{
	long long turns = 0;
	const char *state;

	if (sscanf(text_of(work, tid, "schedstat", text), "%*u %*u %lld", &turns) == 1 && turns)
		return turns;
	/* Some kernels do not count turns, and say 0 for all threads. But every kernel counts context switches. */
	state = value_of(text_of(work, tid, "status", text), "\nState:");
	if (!state)
		return -1;
	return number_of(text, "\nvoluntary_ctxt_switches:") + number_of(text, "\nnonvoluntary_ctxt_switches:") +
	       (*state == 'R');
}

/* Reads the line that names the system call of a thread. */
static void read_call(struct ptt_task *task, const char *line)
{
	char *end;

	task->call = PTT_TASK_RUNS;
	if (!strncmp(line, "running", 7))
		return;
	task->call = strtoll(line, &end, 10);
	for (int i = 0; task->call >= 0 && i < 6; i++)
		task->arguments[i] = strtoull(end, &end, 16);
	task->sp = strtoull(end, &end, 16);
	task->pc = strtoull(end, &end, 16);
}

/* Whether a thread in a call may be asleep there; a thread in exit() ends at once. */
static bool is_lasting(int64_t call)
{
	return call >= 0 && call != SYS_exit && call != SYS_exit_group;
}

static void read_status(const struct work *work, struct ptt_task *task, char *text)
{
	const char *inside, *state = value_of(text_of(work, task->tid, "status", text), "\nState:");

	if (!state) {
		task->call = PTT_TASK_GONE;
		return;
	}
	task->state = *state;
	task->inner_tid = 0;
	inside = value_of(text, "\nNSpid:");
	for (char *end; inside && *inside && *inside != '\n'; inside = end) {
		task->inner_tid = (int32_t)strtol(inside, &end, 10);
		if (end == inside)
			break;
		end += strspn(end, "\t ");
	}
}

static void read_task(const struct work *work, uint64_t number)
{
	struct ptt_task *task = &work->tasks[number];
	char text[TEXT];
	const char *name;
	size_t size;

	/* Read the turns first: a later read of them shows whether the thread ran during the other reads. */
	task->turns = turns_of(work, task->tid, text);
	if (work->is_short)
		return;
	task->call = PTT_TASK_GONE;
	/* Only root may read this file of an ended thread. Such a thread is in no call, and its state shows its end. */
	read_call(task, *text_of(work, task->tid, "syscall", text) ? text : "running");
	name = text_of(work, task->tid, "comm", text);
	size = strlen(name);
	if (!size) {
		task->call = PTT_TASK_GONE;
		return;
	}
	size -= name[size - 1] == '\n';
	memcpy(task->name, name, size < sizeof(task->name) ? size : sizeof(task->name) - 1);
	task->state = 'S';
	task->inner_tid = task->tid;
	/* The read of `status` takes as long as the other reads together. */
	if (work->is_inside || !is_lasting(task->call))
		read_status(work, task, text);
}

/* Reads the memory of most threads in one call. If a read fails, the caller reads this memory itself. */
static void read_memory(const struct work *work, uint64_t from, uint64_t to)
{
	struct iovec here[2 * TAKEN], there[2 * TAKEN];
	uint8_t *has[2 * TAKEN];
	unsigned count = 0, at = 0;
	int32_t tid = 0;

	for (uint64_t i = from; i < to; i++) {
		struct ptt_task *task = &work->tasks[i];
		char *memory = work->memory + i * PTT_TASK_MEMORY;

		if (task->call == PTT_TASK_GONE || !task->sp)
			continue;
		tid = task->tid;
		here[count] = (struct iovec){memory, PTT_TASK_STACK};
		there[count] = (struct iovec){(void *)(uintptr_t)(task->sp & ~UINT64_C(7)), PTT_TASK_STACK};
		has[count++] = &task->has_stack;
		if (task->call != SYS_futex)
			continue;
		here[count] = (struct iovec){memory + PTT_TASK_STACK, PTT_TASK_MEMORY - PTT_TASK_STACK};
		there[count] = (struct iovec){(void *)(uintptr_t)(task->arguments[0] - PTT_TASK_BEFORE),
					      PTT_TASK_MEMORY - PTT_TASK_STACK};
		has[count++] = &task->has_futex;
	}
	/* An unreadable piece ends the call; the next call reads the pieces behind it. */
	for (; at < count; at++) {
		ssize_t size = process_vm_readv(tid, here + at, count - at, there + at, count - at, 0);

		for (; at < count && size >= (ssize_t)here[at].iov_len; at++) {
			size -= (ssize_t)here[at].iov_len;
			*has[at] = 1;
		}
	}
}

static void *help(void *argument)
{
	struct work *work = argument;
	uint64_t at;

	/* relaxed: the join of a helper orders its results; the counter only divides the threads. */
	while ((at = atomic_fetch_add_explicit(&work->next, TAKEN, memory_order_relaxed)) < work->count) {
		uint64_t end = at + TAKEN < work->count ? at + TAKEN : work->count;

		for (uint64_t i = at; i < end; i++)
			read_task(work, i);
		if (!work->is_short)
			read_memory(work, at, end);
	}
	return NULL;
}

static uint64_t helpers_for(uint64_t count)
{
	uint64_t wanted = count / WORTH, processors = 1;
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof(set), &set))
		processors = (uint64_t)CPU_COUNT(&set);
	wanted = wanted < processors - 1 ? wanted : processors - 1;
	return wanted < HELPERS ? wanted : HELPERS;
}

static void begin(struct work *work, int32_t pid)
{
	uint64_t wanted = helpers_for(work->count);
	char place[32];

	snprintf(place, sizeof(place), "/proc/%d/task", pid);
	work->directory = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (work->helpers < wanted && !pthread_create(&work->helping[work->helpers], NULL, help, work))
		work->helpers++;
}

static void end(struct work *work)
{
	help(work);
	while (work->helpers)
		pthread_join(work->helping[--work->helpers], NULL);
	if (work->directory >= 0)
		close(work->directory);
}

void *ptt_tasks_begin(int32_t pid, struct ptt_task *tasks, char *memory, uint64_t count, int32_t is_inside)
{
	struct work here = {.is_inside = is_inside, .tasks = tasks, .memory = memory, .count = count};
	struct work *work = malloc(sizeof(*work));

	if (!work) {
		begin(&here, pid);
		end(&here);
		return NULL;
	}
	*work = here;
	begin(work, pid);
	return work;
}

void ptt_tasks_end(void *reading)
{
	if (reading)
		end(reading);
	free(reading);
}

void ptt_tasks_turns(int32_t pid, struct ptt_task *tasks, uint64_t count)
{
	struct work work = {.is_short = true, .tasks = tasks, .count = count};

	begin(&work, pid);
	end(&work);
}
