/* SPDX-License-Identifier: MIT */
/* forks.c - a busy program that forks and forks: forks TIMES [daemon] */
#include "work.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static volatile int stop;

static void *busy(void *arg)
{
	pthread_mutex_t *mine = arg;

	while (!stop) {
		pthread_mutex_lock(mine);
		pthread_mutex_unlock(mine);
	}
	return NULL;
}

/* Children with and without another program. */
static int child(int i)
{
	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&own);
	pthread_mutex_unlock(&own);
	if (i % 64 == 0)
		execl("/bin/true", "true", (char *)NULL);
	if (i % 3 == 0) {
		stop = 1;
		return work_together(2, 10) == 20 ? 0 : 1;
	}
	return 0;
}

static void fork_often(int times)
{
	pthread_mutex_t mine[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
	pthread_t thread[2];
	int i, status, good = 0;

	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, busy, &mine[i]);
	for (i = 0; i < times; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(child(i));
		if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
			good++;
	}
	stop = 1;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("%d of %d\n", good, times);
}

/* What daemons do: leave the terminal, leave the parent, close all descriptors. */
static void become_daemon(const char *result)
{
	int fd, i;

	if (fork())
		_exit(0);
	setsid();
	if (fork())
		_exit(0);
	for (i = 0; i < 1024; i++)
		close(i);
	if (chdir("/"))
		_exit(1);
	umask(0);
	fd = open(result, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	dup2(fd, 1);
	dprintf(1, "descriptor %d, %ld\n", fd, work_together(3, 1000));
	close(fd);
	exit(0);
}

int main(int argc, char **argv)
{
	if (argc > 2)
		become_daemon(argv[2]);
	fork_often(argc > 1 ? atoi(argv[1]) : 100);
	return 0;
}
