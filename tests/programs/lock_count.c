/* lock_count THREADS PAIRS [SECONDS_TO_LIVE]: takes and releases one mutex PAIRS times in each thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long pairs, counter;

static void *work(void *unused)
{
	(void)unused;
	for (long i = 0; i < pairs; i++) {
		pthread_mutex_lock(&lock);
		counter++;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 1;
	pthread_t *thread = calloc((size_t)threads, sizeof(*thread));

	pairs = argc > 2 ? atol(argv[2]) : 1000;
	for (long i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, NULL))
			return 1;
	for (long i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	printf("%ld\n", counter);
	free(thread);
	return 0;
}
