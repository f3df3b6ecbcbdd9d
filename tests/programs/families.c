/* SPDX-License-Identifier: MIT */
/* families.c - a process that waits for a child: `families HOW CHILD [PROGRAM…]`. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t never;

static void live(char **how)
{
	if (strcmp(*how, "killed") == 0) {
		alarm(1);
		sem_wait(&never);
	}
	if (strcmp(*how, "program") == 0)
		execv(how[1], how + 1);
	usleep(100000);
	if (strcmp(*how, "at-once") == 0)
		_exit(3);
	exit(3);
}

static int await(const char *how, pid_t child)
{
	siginfo_t info = {0};
	int status = 0;

	if (strcmp(how, "wait") == 0)
		return wait(NULL) == child;
	if (strcmp(how, "waitpid") == 0)
		return waitpid(child, NULL, WUNTRACED) == child;
	if (strcmp(how, "waitid") == 0)
		return waitid(P_PID, (id_t)child, NULL, WEXITED) == 0;
	if (strcmp(how, "wait3") == 0)
		return wait3(NULL, 0, NULL) == child;
	if (strcmp(how, "wait4") == 0)
		return wait4(child, &status, 0, NULL) == child;
	if (strcmp(how, "stopped") == 0) {
		kill(child, SIGSTOP);
		if (waitpid(child, NULL, WUNTRACED) != child)
			return 0;
		kill(child, SIGCONT);
		return waitid(P_PID, (id_t)child, &info, WEXITED) == 0 && info.si_pid == child;
	}
	while (waitpid(child, &status, WNOHANG) == 0) /* polled */
		usleep(10000);
	return 1;
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc < 3)
		return 2;
	sem_init(&never, 0, 0);
	child = fork();
	if (child == 0)
		live(argv + 2);
	return !await(argv[1], child);
}
