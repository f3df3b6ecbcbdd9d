/* SPDX-License-Identifier: MIT */
/* deep_stacks.c - takes locks below all kinds of frames; before each it writes the tid and the compiler's unwound frames */
/*
 * Threads go down random ways of calls: small and large frames, frames of variable size, calls through pointers, aligned
 * frames, signal handlers on a stack of their own. At the bottom of each way they take the same lock.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FRAMES 64
#define EACH __attribute__((noinline))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t base;
static char *lines;

struct way {
	unsigned int random;
	int tid;
	FILE *out;
};

static __thread struct way *of_thread;

static unsigned int next(struct way *w)
{
	w->random = w->random * 1103515245u + 12345u;
	return w->random >> 16;
}

/* Without this frame, which is at another place at the time of the lock. */
static void print_callers(struct way *w)
{
	void *frame[FRAMES];
	int i, n = backtrace(frame, FRAMES);

	fprintf(w->out, "%d", w->tid);
	for (i = 2; i < n; i++)
		if ((uintptr_t)frame[i] - base < 0x100000)
			fprintf(w->out, " %lx", (unsigned long)((uintptr_t)frame[i] - base));
	fprintf(w->out, "\n");
}

static EACH void bottom(struct way *w)
{
	print_callers(w);
	pthread_mutex_lock(&lock);
	if (w->random & 0x100000)
		usleep(20);
	pthread_mutex_unlock(&lock);
	__asm__ volatile("");
}

static void down(struct way *w, int depth);
typedef void step_fn(struct way *w, int depth);

static EACH void small(struct way *w, int depth)
{
	down(w, depth);
	__asm__ volatile("");
}

static EACH void large(struct way *w, int depth)
{
	char room[9000];

	memset(room, depth, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	down(w, depth);
	__asm__ volatile("" : : "r"(room) : "memory");
}

static EACH void variable(struct way *w, int depth)
{
	char *room = alloca(next(w) % 700 + 1);

	room[0] = (char)depth;
	__asm__ volatile("" : : "r"(room) : "memory");
	down(w, depth);
	__asm__ volatile("" : : "r"(room) : "memory");
}

static EACH void aligned(struct way *w, int depth)
{
	char room[128] __attribute__((aligned(64)));

	memset(room, depth, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	down(w, depth);
	__asm__ volatile("" : : "r"(room) : "memory");
}

static EACH void both(struct way *w, int depth)
{
	char room[64] __attribute__((aligned(64))), *more = alloca(next(w) % 300 + 1);

	__asm__ volatile("" : : "r"(room), "r"(more) : "memory");
	down(w, depth);
	__asm__ volatile("" : : "r"(room), "r"(more) : "memory");
}

/* All the registers that a function has to save. */
static EACH void busy(struct way *w, int depth)
{
	__asm__ volatile("" : : : "rbx", "r12", "r13", "r14", "r15");
	down(w, depth);
	__asm__ volatile("" : : : "rbx", "r12", "r13", "r14", "r15");
}

static EACH void down(struct way *w, int depth)
{
	static step_fn *const steps[] = {small, large, variable, aligned, both, busy};

	if (depth)
		steps[next(w) % 6](w, depth - 1);
	else
		bottom(w);
	__asm__ volatile("");
}

static void on_signal(int signal)
{
	(void)signal;
	down(of_thread, (int)(next(of_thread) % 4));
}

static void *run(void *arg)
{
	stack_t stack = {.ss_sp = malloc(1 << 17), .ss_size = 1 << 17};
	struct way *w = arg;
	int i;

	w->tid = (int)syscall(SYS_gettid);
	of_thread = w;
	sigaltstack(&stack, NULL);
	for (i = 0; i < atoi(lines); i++) {
		down(w, (int)(next(w) % 9));
		if (i % 16 == 0)
			pthread_kill(pthread_self(), SIGUSR1);
	}
	return NULL;
}

static int first_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	base = info->dlpi_addr;
	return 1;
}

int main(int count, char **arg)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	struct way way[3] = {{.random = 1}, {.random = 2}, {.random = 3}};
	char *text[3];
	size_t size[3];
	pthread_t thread[3];
	int i;

	FILE *out = count > 2 ? fopen(arg[2], "w") : stdout;

	if (!out)
		return 2;
	lines = count > 1 ? arg[1] : "50";
	dl_iterate_phdr(first_module, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (i = 0; i < 3; i++) {
		way[i].out = open_memstream(&text[i], &size[i]);
		pthread_create(&thread[i], NULL, run, &way[i]);
	}
	for (i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		fclose(way[i].out);
		fputs(text[i], out);
	}
	return fclose(out) != 0;
}
