/* pairs.c - ns of processor time of an uncontended lock and unlock: pairs COUNT [single] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *nothing(void *arg)
{
	return arg;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void pairs(long count)
{
	for (long i = 0; i < count; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000000;
	pthread_t thread;
	double began;

	/* glibc leaves the atomic operations out until the process creates a second thread */
	if (argc < 3 || strcmp(argv[2], "single") != 0) {
		pthread_create(&thread, NULL, nothing, NULL);
		pthread_join(thread, NULL);
	}
	pairs(1000);
	began = now();
	pairs(count);
	printf("%.4f\n", (now() - began) / count);
	return 0;
}
