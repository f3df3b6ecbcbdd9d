/* killed_writers ROUNDS THREADS PAIRS: kills children in the middle of their work while its own threads work. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long pairs;

static void *work(void *count)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

	for (long i = 0; i < *(long *)count; i++) {
		pthread_mutex_lock(&own);
		pthread_mutex_unlock(&own);
	}
	return NULL;
}

static void victim(void)
{
	static long forever = 1L << 60;
	pthread_t thread;

	pthread_create(&thread, NULL, work, &forever);
	work(&forever);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 10, threads = argc > 2 ? atol(argv[2]) : 2;
	pthread_t *thread = calloc((size_t)threads, sizeof(*thread));

	pairs = argc > 3 ? atol(argv[3]) : 1000;
	for (long i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, work, &pairs);
	for (long i = 0; i < rounds; i++) {
		pid_t pid = fork();

		if (!pid)
			victim();
		usleep(500 + (unsigned int)(i * 7919 % 3000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	for (long i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	printf("%d\n", getpid());
	return 0;
}
