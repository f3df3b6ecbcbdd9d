/* SPDX-License-Identifier: MIT */
/* children.c - makes a child in the way its first argument names, in a process with several threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

extern char **environ;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static volatile int stop;
static char *self;
static char *nothing[] = {NULL};
static char *other_preload[] = {"LD_PRELOAD=libm.so.6", "A=1", NULL};

#define BUSY_FOR 2000 /* times: a limit, so that a handler that counts has room for all events */

static void *keep_busy(void *arg)
{
	for (int i = 0; !i || !stop; i++) { /* it may not run before the end of the program */
		if (i < BUSY_FOR) {
			pthread_mutex_lock(&busy);
			pthread_mutex_unlock(&busy);
		}
		usleep(100);
	}
	return arg;
}

/* Locks in a function of pthread_atfork() are traced as the child's. */
static void use_rwlock(void)
{
	pthread_rwlock_wrlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
}

static __attribute__((constructor)) void early(void)
{
	pthread_atfork(NULL, NULL, use_rwlock);
}

static int work(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return 3;
}

/* The work of an executed program: one lock, and a line about its environment. */
static int program(void)
{
	char **entry;
	int others = 0;

	work(NULL);
	for (entry = environ; *entry; entry++)
		others += strncmp(*entry, "LD_PRELOAD=", 11) && strncmp(*entry, "PTHREAD_NPTL_TRACE=", 19);
	printf("program: %d other variables, A=%s, arguments end\n", others, getenv("A") ? getenv("A") : "");
	return 3;
}

static void execute(const char *how)
{
	char *argv[] = {self, "program", NULL};
	int fd;

	if (!strcmp(how, "execve"))
		execve(self, argv, nothing);
	else if (!strcmp(how, "execv"))
		execv(self, argv);
	else if (!strcmp(how, "execvp"))
		execvp(self, argv);
	else if (!strcmp(how, "execvpe"))
		execvpe(self, argv, other_preload);
	else if (!strcmp(how, "execl"))
		execl(self, self, "program", (char *)NULL);
	else if (!strcmp(how, "execlp"))
		execlp(self, self, "program", (char *)NULL);
	else if (!strcmp(how, "execle"))
		execle(self, self, "program", (char *)NULL, other_preload);
	else if (!strcmp(how, "execveat"))
		execveat(AT_FDCWD, self, argv, nothing, 0);
	else if (!strcmp(how, "syscall_execve"))
		syscall(SYS_execve, self, argv, nothing);
	else if (!strcmp(how, "fexecve") && (fd = open(self, O_RDONLY | O_CLOEXEC)) >= 0)
		fexecve(fd, argv, nothing);
	_exit(9);
}

/* Behind the tracer's back: an instruction, without a function of the C library. */
static pid_t bare_clone(void)
{
#if defined(__x86_64__)
	register long child_tid __asm__("r10") = 0;
	register long tls __asm__("r8") = 0;
	long child;

	__asm__ volatile("syscall"
			 : "=a"(child)
			 : "a"(SYS_clone), "D"(SIGCHLD), "S"(0), "d"(0), "r"(child_tid), "r"(tls)
			 : "rcx", "r11", "memory");
	return (pid_t)child;
#else
	return fork();
#endif
}

static pid_t make(const char *how)
{
	static char stack[65536] __attribute__((aligned(16)));
	char *argv[] = {self, "program", NULL};
	pid_t child = -1;

	if (!strcmp(how, "fork")) {
		child = fork();
	} else if (!strcmp(how, "_Fork")) {
		child = _Fork();
	} else if (!strcmp(how, "clone")) {
		return clone(work, stack + sizeof(stack), SIGCHLD, NULL);
	} else if (!strcmp(how, "syscall_clone")) {
		child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	} else if (!strcmp(how, "bare_clone")) {
		child = bare_clone();
	} else if (!strcmp(how, "vfork")) {
		child = vfork();
		if (child == 0) {
			execve("/nonexistent", argv, nothing);
			execve(self, argv, nothing);
			_exit(9);
		}
	} else if (!strcmp(how, "posix_spawn")) {
		posix_spawn(&child, self, NULL, NULL, argv, nothing);
	} else if (!strcmp(how, "posix_spawnp")) {
		posix_spawnp(&child, self, NULL, NULL, argv, environ);
	} else {
		child = fork();
		if (child == 0)
			execute(how);
	}
	if (child == 0) {
		work(NULL);
		if (!strcmp(how, "fork"))
			exit(3);
		_exit(3);
	}
	return child;
}

int main(int argc, char **argv)
{
	pthread_t thread[2];
	int i, status = -1, times;
	pid_t child;

	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], "program"))
		return program();
	if (argc > 1 && !strcmp(argv[1], "failed")) {
		printf("%d\n", execve("/nonexistent", argv, environ));
		return work(NULL);
	}
	times = argc > 2 ? atoi(argv[2]) : 1;
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, keep_busy, NULL);
	while (times-- > 0) {
		child = make(argv[1]);
		if (child < 0 || waitpid(child, &status, 0) != child)
			perror("waitpid");
		if (status != 3 << 8)
			printf("status %x\n", (unsigned int)status);
	}
	stop = 1;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("done\n");
	return 0;
}
