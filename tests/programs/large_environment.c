/* SPDX-License-Identifier: MIT */
/* large_environment.c - a thread with a small stack starts programs: large_environment HOW ENTRIES STACK ROUNDS. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char **environment;
static int how, rounds, maps_before;

/* The mappings of this process. */
static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int c, lines = 0;

	while ((c = getc(maps)) != EOF)
		lines += c == '\n';
	fclose(maps);
	return lines;
}

static pid_t start(char **words)
{
	pid_t child;

	if (how == 's')
		return posix_spawn(&child, words[0], NULL, NULL, words, environment) ? -1 : child;
	child = how == 'v' ? vfork() : fork();
	if (child == 0) {
		/* the first one fails */
		execve("/nowhere/true", words, environment);
		execve(words[0], words, environment);
		_exit(126);
	}
	return child;
}

static void *run(void *failed)
{
	char *words[] = {"/bin/true", NULL};
	int i, status = -1;

	for (i = 0; i < rounds; i++) {
		pid_t child = start(words);

		if (child < 0 || waitpid(child, &status, 0) != child || status)
			*(int *)failed = 1;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int entries, i, failed = 0;
	pthread_attr_t attr;
	pthread_t thread;

	if (argc != 5)
		return 2;
	how = argv[1][0];
	entries = atoi(argv[2]);
	rounds = atoi(argv[4]);
	environment = calloc((size_t)entries + 1, sizeof(*environment));
	for (i = 0; i < entries; i++)
		if (asprintf(&environment[i], "V%d=x", i) < 0)
			return 2;
	maps_before = mappings();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)atol(argv[3]));
	if (pthread_create(&thread, &attr, run, &failed))
		return 2;
	pthread_join(thread, NULL);
	/* some mappings stay after all rounds together, but not some after each round */
	return failed || mappings() > maps_before + 20;
}
