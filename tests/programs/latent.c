/* SPDX-License-Identifier: MIT */
/*
 * latent.c - lock orders that can deadlock, and do not in an ordinary run; and lock orders that cannot.
 *
 * The arguments are the mode and a time in us, 30000 if missing. Thread n begins n times this time after the start, and needs much
 * less for its work. So in ordinary runs, no two threads meet.
 *
 *   two three four   so many threads and locks in a cycle
 *   rwlocks          a cycle of read-write locks that are taken for writing
 *   mixed            a mutex, and a read-write lock that one thread takes for reading
 *   c11              mutexes of <threads.h>
 *   shared           two processes with two mutexes in shared memory
 *   many             three pairs of locks; the threads of each pair use the same call sites
 *   retaken          a recursive mutex
 *   handler          a signal handler takes the locks of one thread
 *   early            a wait for a signal without a look at a condition: a signal that comes first is lost
 *   careful          the same, with a look at a condition
 *   resting          as careful, and then the program sleeps
 *   one              one thread only
 *   outer            a thread waits for a semaphore with a lock that the poster takes first, after many short holds inside
 *   gated            a third lock keeps the threads apart
 *   sem-gated        the same, with semaphores as locks, and many short holds between the third lock and the others
 *   joined           the second thread begins when the first is joined
 *   flagged          the second thread waits for a condition until the first has finished
 *   counted          the same, with a semaphore
 *   else             the second thread takes its locks in the order of the first
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#define THREADS_MAX 6

static pthread_mutex_t mutexes[THREADS_MAX] = {
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
};
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, recursive;
static pthread_rwlock_t rwlocks[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static mtx_t c11_mutexes[2];
static pthread_cond_t finished_cond = PTHREAD_COND_INITIALIZER;
static sem_t finished_sem, semaphores[2];
static int finished;
static const char *mode;
static int cycle = 2;
static useconds_t step_us = 30000;

static int is(const char *name)
{
	return strcmp(mode, name) == 0;
}

/* One function for each thread, so that their call sites differ. */
#define PAIR(name, first, second)          \
	static void name(void)             \
	{                                  \
		pthread_mutex_lock(first); \
		pthread_mutex_lock(second); \
		pthread_mutex_unlock(second); \
		pthread_mutex_unlock(first); \
	}

PAIR(zero_first, &mutexes[0], &mutexes[1])
PAIR(one_first, &mutexes[1], &mutexes[2 % cycle])
PAIR(two_first, &mutexes[2], &mutexes[3 % cycle])
PAIR(three_first, &mutexes[3], &mutexes[0])

static void (*const pairs[])(void) = {zero_first, one_first, two_first, three_first};

static void both_rwlocks(int from, int shared)
{
	pthread_rwlock_wrlock(&rwlocks[from]);
	if (shared)
		pthread_rwlock_rdlock(&rwlocks[!from]);
	else
		pthread_rwlock_wrlock(&rwlocks[!from]);
	pthread_rwlock_unlock(&rwlocks[!from]);
	pthread_rwlock_unlock(&rwlocks[from]);
}

static void mixed(int number)
{
	if (number == 0) {
		pthread_mutex_lock(&mutexes[0]);
		pthread_rwlock_rdlock(&rwlocks[0]);
		pthread_rwlock_unlock(&rwlocks[0]);
		pthread_mutex_unlock(&mutexes[0]);
	} else {
		pthread_rwlock_wrlock(&rwlocks[0]);
		pthread_mutex_lock(&mutexes[0]);
		pthread_mutex_unlock(&mutexes[0]);
		pthread_rwlock_unlock(&rwlocks[0]);
	}
}

static void both_c11(int from)
{
	mtx_lock(&c11_mutexes[from]);
	mtx_lock(&c11_mutexes[!from]);
	mtx_unlock(&c11_mutexes[!from]);
	mtx_unlock(&c11_mutexes[from]);
}

static void one_of_many(int number)
{
	pthread_mutex_t *pair = &mutexes[number / 2 * 2];

	pthread_mutex_lock(&pair[number % 2]);
	pthread_mutex_lock(&pair[!(number % 2)]);
	pthread_mutex_unlock(&pair[!(number % 2)]);
	pthread_mutex_unlock(&pair[number % 2]);
}

static void retaken(int number)
{
	pthread_mutex_t *first = number ? &mutexes[0] : &recursive, *second = number ? &recursive : &mutexes[0];

	pthread_mutex_lock(first);
	if (first == &recursive)
		pthread_mutex_lock(first);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	if (first == &recursive)
		pthread_mutex_unlock(first);
	pthread_mutex_unlock(first);
}

/* Call sites of their own. */
static void wait_for_signal(void)
{
	pthread_mutex_lock(&gate);
	while (is("early") || !finished) {
		pthread_cond_wait(&finished_cond, &gate);
		if (is("early"))
			break;
	}
	pthread_mutex_unlock(&gate);
}

static void send_signal(void)
{
	pthread_mutex_lock(&gate);
	finished = 1;
	pthread_cond_signal(&finished_cond);
	pthread_mutex_unlock(&gate);
}

static void on_signal(int number)
{
	(void)number;
	zero_first();
}

static void short_holds(void)
{
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&mutexes[2]);
		pthread_mutex_unlock(&mutexes[2]);
	}
}

static void wait_with_outer(int number)
{
	pthread_mutex_lock(&gate);
	if (number) {
		short_holds();
		sem_wait(&finished_sem);
	}
	pthread_mutex_unlock(&gate);
	if (!number)
		sem_post(&finished_sem);
}

static void both_semaphores(int from)
{
	short_holds();
	sem_wait(&semaphores[from]);
	sem_wait(&semaphores[!from]);
	sem_post(&semaphores[!from]);
	sem_post(&semaphores[from]);
}

static void finish(int number)
{
	if (is("flagged") && number == 0)
		send_signal();
	if (is("counted") && number == 0)
		sem_post(&finished_sem);
}

static void prepare(int number)
{
	if (is("flagged") && number == 1)
		wait_for_signal();
	if (is("counted") && number == 1)
		sem_wait(&finished_sem);
}

static void work(int number)
{
	usleep((useconds_t)number * step_us);
	prepare(number);
	if (is("gated") || is("sem-gated"))
		pthread_mutex_lock(&gate);
	if (is("rwlocks"))
		both_rwlocks(number, 0);
	else if (is("mixed"))
		mixed(number);
	else if (is("c11"))
		both_c11(number);
	else if (is("many"))
		one_of_many(number);
	else if (is("retaken"))
		retaken(number);
	else if (is("outer"))
		wait_with_outer(number);
	else if (is("sem-gated"))
		both_semaphores(number);
	else if (is("early") || is("careful") || is("resting"))
		number ? send_signal() : wait_for_signal();
	else if (is("handler") && number == 0)
		raise(SIGUSR1);
	else
		pairs[is("else") ? 0 : number]();
	if (is("gated") || is("sem-gated"))
		pthread_mutex_unlock(&gate);
	finish(number);
}

static void *thread(void *number)
{
	work((int)(long)number);
	return NULL;
}

/* Two processes with two mutexes. */
static int share(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t *pair = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&pair[0], &attr);
	pthread_mutex_init(&pair[1], &attr);
	child = fork();
	if (child == 0) {
		usleep(step_us);
		pthread_mutex_lock(&pair[1]);
		pthread_mutex_lock(&pair[0]);
		pthread_mutex_unlock(&pair[0]);
		pthread_mutex_unlock(&pair[1]);
		_exit(0);
	}
	pthread_mutex_lock(&pair[0]);
	pthread_mutex_lock(&pair[1]);
	pthread_mutex_unlock(&pair[1]);
	pthread_mutex_unlock(&pair[0]);
	return waitpid(child, NULL, 0) == child ? 0 : 1;
}

int main(int count, char **words)
{
	pthread_t threads[THREADS_MAX];
	pthread_mutexattr_t attr;
	int number;

	mode = count > 1 ? words[1] : "two";
	if (count > 2)
		step_us = (useconds_t)atoi(words[2]);
	if (is("shared"))
		return share();
	cycle = is("three") ? 3 : is("four") ? 4 : 2;
	sem_init(&finished_sem, 0, 0);
	sem_init(&semaphores[0], 0, 1);
	sem_init(&semaphores[1], 0, 1);
	mtx_init(&c11_mutexes[0], mtx_plain);
	mtx_init(&c11_mutexes[1], mtx_plain);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&recursive, &attr);
	signal(SIGUSR1, on_signal);
	if (is("many"))
		cycle = 6;
	for (number = 0; number < cycle; number++) {
		if (is("one")) {
			work(number);
			continue;
		}
		pthread_create(&threads[number], NULL, thread, (void *)(long)number);
		if (is("joined"))
			pthread_join(threads[number], NULL);
	}
	for (number = 0; number < cycle && !is("one") && !is("joined"); number++)
		pthread_join(threads[number], NULL);
	if (is("resting"))
		sleep(30);
	puts("done");
	return 0;
}
