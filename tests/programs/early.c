/* SPDX-License-Identifier: MIT */
/* early.c - a shared object with a constructor that calls many functions before the tracer's constructor runs. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int runs, forks;

static void run(void)
{
	runs++;
}

static void in_child(void)
{
	forks++;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void *thread(void *arg)
{
	pthread_mutex_lock(&mutex);
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	return arg;
}

static __attribute__((constructor)) void early(void)
{
	uint32_t word = 0;
	pthread_t made;
	mtx_t mtx;
	sem_t sem;
	int status;

	pthread_mutex_lock(&mutex);
	pthread_create(&made, NULL, thread, NULL);
	pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	pthread_join(made, NULL);
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	pthread_once(&once, run);
	sem_init(&sem, 0, 0);
	sem_post(&sem);
	sem_wait(&sem);
	mtx_init(&mtx, mtx_plain);
	mtx_lock(&mtx);
	mtx_unlock(&mtx);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
	pthread_atfork(NULL, NULL, in_child);
	if (fork() == 0)
		_exit(forks);
	wait(&status);
	printf("early: %d runs, child %d, pid %d\n", runs, WEXITSTATUS(status), syscall(SYS_getpid) == getpid());
}

int early_used(void);

int early_used(void)
{
	return runs;
}

/* After the tracer's destructor, in any order. */
static __attribute__((destructor)) void late(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	printf("late\n");
}
