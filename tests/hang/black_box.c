/* Programs for the black box: threads that wait for each other for ever, and threads that never stop. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t busy[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
				  PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both;
static sem_t never;

static void *take_left(void *unused)
{
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(&busy[0]);
		pthread_mutex_unlock(&busy[0]);
	}
	pthread_rwlock_rdlock(&table);
	pthread_mutex_lock(&left); /* LEFT */
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&right);
	return unused;
}

static void *take_right(void *unused)
{
	pthread_mutex_lock(&right); /* RIGHT */
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&left);
	return unused;
}

static void *read_and_write(void *unused)
{
	pthread_mutex_lock(&busy[1]);
	pthread_barrier_wait(&both);
	pthread_rwlock_wrlock(&table);
	return unused;
}

/* The lock that this thread waits for is held by a reader, who waits for this thread's lock. */
static void *read_table(void *unused)
{
	pthread_rwlock_rdlock(&table); /* READ */
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&busy[1]);
	return unused;
}

static void *take_twice(void *unused)
{
	pthread_mutex_lock(&right);
	pthread_mutex_lock(&right);
	return unused;
}

static void *never_stop(void *number)
{
	unsigned int seed = (unsigned int)(size_t)number;

	for (;;) {
		pthread_mutex_t *lock = &busy[rand_r(&seed) & 3];

		pthread_mutex_lock(lock);
		pthread_mutex_unlock(lock);
		if (!(seed & 15)) {
			pthread_rwlock_rdlock(&table);
			pthread_rwlock_unlock(&table);
		}
	}
	return NULL;
}

static void *brief(void *unused)
{
	pthread_mutex_lock(&busy[3]);
	pthread_mutex_unlock(&busy[3]);
	return unused;
}

static void start(void *(*begin)(void *), long count)
{
	for (long i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, begin, (void *)i))
			abort();
	}
}

/* Until both threads are about to sleep. In glibc, 2 is a mutex with waiters. */
static void await_deadlock(void)
{
	volatile int *one = &left.__data.__lock, *other = &right.__data.__lock;

	while (*one != 2 || *other != 2)
		usleep(1000);
}

static void end_badly(int number)
{
	(void)number;
	abort();
}

static int overflow(volatile char *above)
{
	volatile char here[4096];

	here[0] = *above;
	return overflow(here) + here[0];
}

int main(int argc, char **argv)
{
	const char *how = argv[1];

	sem_init(&never, 0, 0);
	pthread_barrier_init(&both, NULL, 2);
	if (strcmp(how, "reader") == 0) {
		start(read_and_write, 1);
		start(read_table, 1);
		if (argc > 2)
			start(take_twice, 1);
	} else if (strcmp(how, "hot") == 0) {
		start(never_stop, 6);
	} else if (strcmp(how, "brief") == 0) {
		for (int i = 0; i < 2000; i++) {
			pthread_t thread;

			pthread_create(&thread, NULL, brief, NULL);
			pthread_join(thread, NULL);
		}
	} else if (strcmp(how, "fork") == 0) {
		pthread_mutex_lock(&busy[2]);
		if (fork() == 0) {
			pthread_mutex_lock(&busy[1]); /* CHILD */
			puts("ready");
			fflush(stdout);
		} else {
			wait(NULL);
		}
	} else {
		start(take_left, 1);
		start(take_right, 1);
	}
	if (strcmp(how, "handler") == 0) {
		signal(SIGALRM, end_badly);
		await_deadlock();
		raise(SIGALRM);
	} else if (strcmp(how, "overflow") == 0) {
		volatile char top = 1;

		await_deadlock();
		return overflow(&top);
	} else if (strcmp(how, "segv") == 0) {
		await_deadlock();
		*(volatile int *)1 = 0;
	}
	sem_wait(&never);
	return 0;
}
