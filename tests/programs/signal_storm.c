/* signal_storm THREADS PAIRS: SIGPROF interrupts threads that lock, and its handler posts a semaphore. Prints the posts. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static long pairs, posts;

static void on_signal(int number)
{
	(void)number;
	if (sem_post(&semaphore) == 0)
		__atomic_fetch_add(&posts, 1, __ATOMIC_RELAXED);
}

static void *work(void *unused)
{
	(void)unused;
	for (long i = 0; i < pairs; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		if (i % 16 == 0) /* more signals than any timer sends, and always in the thread itself */
			pthread_kill(pthread_self(), SIGPROF);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	long threads = argc > 1 ? atol(argv[1]) : 1;
	pthread_t *thread = calloc((size_t)threads, sizeof(*thread));

	pairs = argc > 2 ? atol(argv[2]) : 1000;
	sem_init(&semaphore, 0, 0);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	for (long i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (long i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	setitimer(ITIMER_PROF, &never, NULL);
	printf("%ld\n", posts);
	free(thread);
	return 0;
}
