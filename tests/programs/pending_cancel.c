/* SPDX-License-Identifier: MIT */
/* pending_cancel.c - a thread with a pending cancellation calls functions that are no cancellation points: pending_cancel HOW. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *how;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Without a cancellation point. */
static void say(const char *text)
{
	if (syscall(SYS_write, 1, text, strlen(text)) < 0)
		abort();
}

static void cancelled(void *unused)
{
	(void)unused;
	say("cancelled inside\n");
}

static int child_of_clone(void *unused)
{
	(void)unused;
	say("child\n");
	_exit(7);
}

static void child_came(pid_t child)
{
	int status = 0;

	if (child == 0)
		child_of_clone(NULL);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	waitpid(child, &status, 0);
	say(WIFEXITED(status) && WEXITSTATUS(status) == 7 ? "child ended\n" : "child ended otherwise\n");
	_exit(0);
}

static void call(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	char *words[] = {"sh", "-c", "echo executed; exit 7", NULL};
	pid_t child;

	if (!strcmp(how, "fork")) {
		child_came(fork());
	} else if (!strcmp(how, "_Fork")) {
		child_came(_Fork());
	} else if (!strcmp(how, "clone")) {
		child_came(clone(child_of_clone, stack + sizeof(stack), SIGCHLD, NULL));
	} else if (!strcmp(how, "syscall")) {
		child_came((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	} else if (!strcmp(how, "exec")) {
		execv("/bin/sh", words);
	} else if (!strcmp(how, "spawn")) {
		posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ);
		child_came(child);
	} else if (!strcmp(how, "exit")) {
		exit(3);
	} else if (!strcmp(how, "dlclose")) {
		dlclose(dlopen("libm.so.6", RTLD_NOW));
	}
}

static void *run(void *unused)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	pthread_cleanup_push(cancelled, NULL);
	pthread_cancel(pthread_self());
	call();
	pthread_cleanup_pop(0);
	say("not cancelled\n");
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	how = argc > 1 ? argv[1] : "";
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	return 9;
}
