/* SPDX-License-Identifier: MIT */
/* file_lock.c - a process holds the lock of a file until its child waits for the lock; with a third argument the process itself waits. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include "show.h"

static const char *how;

static int request(int fd, int command, short type)
{
	struct flock part = {.l_type = type, .l_whence = SEEK_SET};
	return fcntl(fd, command, &part);
}

static void take(int fd)
{
	int done = strcmp(how, "flock") == 0 ? flock(fd, LOCK_EX) :
		   strcmp(how, "lockf") == 0 ? lockf(fd, F_LOCK, 0) :
		   request(fd, strcmp(how, "fcntl") == 0 ? F_SETLKW : F_OFD_SETLKW, F_WRLCK);

	if (done || (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		_exit(1);
}

static void give_back(int fd)
{
	int done = strcmp(how, "flock") == 0 ? flock(fd, LOCK_UN) :
		   strcmp(how, "lockf") == 0 ? lockf(fd, F_ULOCK, 0) :
		   request(fd, strcmp(how, "fcntl") == 0 ? F_SETLK : F_OFD_SETLK, F_UNLCK);

	if (done)
		_exit(1);
}

static long long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int wait_for_it(const char *path)
{
	int fd = open(path, O_RDWR);
	long long began = now();
	take(fd);
	printf("%lld\n", now() - began);
	fflush(stdout);
	return 0;
}

int main(int count, char **args)
{
	int fd = open(args[2], O_RDWR | O_CREAT, 0600), status;
	pid_t child;
	how = args[1];
	if (count > 3)
		return wait_for_it(args[2]);
	take(fd);
	child = fork();
	if (child == 0)
		_exit(wait_for_it(args[2]));
	await_asleep(child);
	usleep(200000);
	give_back(fd);
	waitpid(child, &status, 0);
	return status != 0;
}
