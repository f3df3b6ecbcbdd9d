/* SPDX-License-Identifier: MIT */
/* own_lock.c - a library's own lock and condition (-DLIBRARY), and programs that use them: linked, or opened (-DOPENED). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct gate {
	int word; /* 0 free, 1 taken, 2 taken and waited for */
};
struct bell {
	int rings;
};

#ifdef LIBRARY
static void sleep_while(int *word, int value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

int gate_try(struct gate *gate)
{
	int freed = 0;

	return __atomic_compare_exchange_n(&gate->word, &freed, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) ? 0 : EBUSY;
}

int gate_enter(struct gate *gate)
{
	if (gate_try(gate) == 0)
		return 0;
	while (__atomic_exchange_n(&gate->word, 2, __ATOMIC_ACQUIRE))
		sleep_while(&gate->word, 2);
	return 0;
}

void gate_leave(struct gate *gate)
{
	if (__atomic_exchange_n(&gate->word, 0, __ATOMIC_RELEASE) == 2)
		syscall(SYS_futex, &gate->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void bell_wait(struct gate *gate, struct bell *bell)
{
	int seen = __atomic_load_n(&bell->rings, __ATOMIC_ACQUIRE);

	gate_leave(gate);
	sleep_while(&bell->rings, seen);
	gate_enter(gate);
}

void bell_ring(struct bell *bell)
{
	__atomic_add_fetch(&bell->rings, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &bell->rings, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

const char *gate_maker(void)
{
	return MAKER;
}
#else

#ifdef OPENED
static int (*gate_enter)(struct gate *);
static void (*gate_leave)(struct gate *);
static const char *(*gate_maker)(void);

static void *open_gates(const char *library)
{
	void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!opened)
		exit(3);
	gate_enter = (int (*)(struct gate *))dlsym(opened, "gate_enter");
	gate_leave = (void (*)(struct gate *))dlsym(opened, "gate_leave");
	gate_maker = (const char *(*)(void))dlsym(opened, "gate_maker");
	if (dlsym(opened, "gate_none") || !dlerror())
		exit(4);
	return opened;
}
#else
int gate_enter(struct gate *gate);
void gate_leave(struct gate *gate);
void bell_wait(struct gate *gate, struct bell *bell);
void bell_ring(struct bell *bell);
#endif

static struct gate first, second;
static int taken[2];

static void set(int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static void await(const int *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		usleep(100);
}

static void *hold(void *unused)
{
	(void)unused;
	gate_enter(&first);
	set(&taken[0]);
	usleep(200000);
	gate_leave(&first);
	return NULL;
}

static void contend(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, hold, NULL);
	await(&taken[0]);
	gate_enter(&first);
	gate_leave(&first);
	pthread_join(thread, NULL);
}

#ifdef OPENED
/* One library after the other, and two at once: each library has its own functions. */
int main(int count, char **library)
{
	void *opened, *other;

	if (count < 3)
		return 2;
	opened = open_gates(library[1]);
	contend();
	puts(gate_maker());
	other = open_gates(library[2]);
	puts(gate_maker());
	gate_enter(&second);
	gate_leave(&second);
	dlclose(other);
	dlclose(opened);
	opened = open_gates(library[2]);
	gate_enter(&second);
	gate_leave(&second);
	puts(gate_maker());
	return 0;
}
#else
static void *cross(void *other_way)
{
	int own = other_way != NULL;

	gate_enter(own ? &second : &first);
	set(&taken[own]);
	await(&taken[!own]);
	gate_enter(own ? &first : &second);
	return NULL;
}

static struct bell bell;
static int jobs;

static void *serve(void *unused)
{
	(void)unused;
	gate_enter(&first);
	while (!jobs)
		bell_wait(&first, &bell);
	gate_leave(&first);
	return NULL;
}

int main(int count, char **what)
{
	char *const no_environment[] = {NULL};
	pthread_t thread;

	if (count < 2)
		return 2;
	if (strcmp(what[1], "contend") == 0) {
		contend();
	} else if (strcmp(what[1], "deadlock") == 0) {
		pthread_create(&thread, NULL, cross, NULL);
		pthread_create(&thread, NULL, cross, &first);
		await(&taken[0]);
		await(&taken[1]);
		usleep(300000);
		_exit(0);
	} else if (strcmp(what[1], "bell") == 0) {
		pthread_create(&thread, NULL, serve, NULL);
		usleep(60000);
		gate_enter(&first);
		jobs = 1;
		bell_ring(&bell);
		gate_leave(&first);
		pthread_join(thread, NULL);
	} else if (strcmp(what[1], "clean") == 0) {
		/* a fork, and an executed program without the variables of the environment */
		pid_t child = fork();
		int status = 1;

		gate_enter(&second);
		gate_leave(&second);
		if (child == 0) {
			execle("/proc/self/exe", what[0], "contend", NULL, no_environment);
			_exit(1);
		}
		waitpid(child, &status, 0);
		return status != 0;
	}
	return 0;
}
#endif
#endif
