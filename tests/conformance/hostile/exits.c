/* SPDX-License-Identifier: MIT */
/* exits.c - every way to end a process, with locks taken on the way: exits HOW */
#include "work.h"

static void *busy(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&work_mutex);
		work_done++;
		pthread_mutex_unlock(&work_mutex);
	}
	return arg;
}

static void at_exit(void)
{
	printf("at exit: %ld\n", work_together(2, 100));
	fflush(stdout);
}

static void at_quick_exit_too(void)
{
	static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;

	printf("%d", pthread_mutex_lock(&mine));
	printf("%d\n", pthread_mutex_unlock(&mine));
	fflush(stdout);
}

static __attribute__((destructor)) void last(void)
{
	static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&mine);
	pthread_mutex_unlock(&mine);
}

static void *leave(void *arg)
{
	exit((int)(long)arg);
}

static void *end_later(void *arg)
{
	usleep(20000);
	printf("last: %ld\n", (long)arg);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";
	pthread_t thread;

	printf("%s: %ld\n", how, work_together(2, 100));
	fflush(stdout);
	if (strcmp(how, "atexit") == 0)
		atexit(at_exit);
	at_quick_exit(at_quick_exit_too);
	if (strcmp(how, "pthread_exit") == 0) {
		pthread_create(&thread, NULL, end_later, (void *)5);
		pthread_exit(NULL);
	}
	if (strcmp(how, "_exit") == 0)
		_exit(3);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(4);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(how, "crash") == 0)
		*(volatile int *)8 = 1;
	if (strcmp(how, "exit in thread") == 0) {
		pthread_create(&thread, NULL, leave, (void *)6);
		pthread_join(thread, NULL);
	}
	if (strcmp(how, "busy threads") == 0) {
		pthread_create(&thread, NULL, busy, NULL);
		pthread_create(&thread, NULL, busy, NULL);
		usleep(10000);
	}
	return 7;
}
