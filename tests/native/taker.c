/* SPDX-License-Identifier: MIT */
/* taker.c - a time stamp needs no fence only if no other thread can have released the lock. */
#include "writer/taker.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Threads of the process, as the table knows them: at multiples of their size, as in segments. */
static _Alignas(128) struct ptt_thread thread[2];
#define A (&thread[0])
#define B (&thread[1])

static void expect(bool known, const void *lock, const struct ptt_thread *self, int line)
{
	if (ptt_taker_is_known((uintptr_t)lock, self) == known)
		return;
	printf("line %d: the lock's last taker is %s\n", line, known ? "not known" : "known");
	exit(1);
}
#define KNOWN(lock, self) expect(true, lock, self, __LINE__)
#define UNKNOWN(lock, self) expect(false, lock, self, __LINE__)

static bool mark(enum ptt_taking taking, const void *lock, const struct ptt_thread *self)
{
	return ptt_taker_mark(taking, (uintptr_t)lock, self);
}

static void test_mutex(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	UNKNOWN(&mutex, A);
	if (!mark(PTT_TAKING_MUTEX, &mutex, A) || mark(PTT_TAKING_MUTEX, &mutex, A))
		exit(1);
	KNOWN(&mutex, A);
	mark(PTT_TAKING_RELEASE, &mutex, A);
	KNOWN(&mutex, A);
	mark(PTT_TAKING_MUTEX, &mutex, B);
	UNKNOWN(&mutex, A);
	KNOWN(&mutex, B);
	/* A's acquisition was not recorded */
	mark(PTT_TAKING_RELEASE, &mutex, A);
	UNKNOWN(&mutex, B);
	mark(PTT_TAKING_MUTEX, &mutex, B);
	mark(PTT_TAKING_INIT, &mutex, B);
	UNKNOWN(&mutex, B);
}

static void test_shared_between_processes(void)
{
	static pthread_mutex_t mutex;
	static pthread_rwlock_t rwlock;
	pthread_mutexattr_t mutex_attr;
	pthread_rwlockattr_t rwlock_attr;

	pthread_mutexattr_init(&mutex_attr);
	pthread_mutexattr_setpshared(&mutex_attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_settype(&mutex_attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&mutex, &mutex_attr);
	pthread_rwlockattr_init(&rwlock_attr);
	pthread_rwlockattr_setpshared(&rwlock_attr, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(&rwlock, &rwlock_attr);
	for (int i = 0; i < 2; i++) {
		mark(PTT_TAKING_MUTEX, &mutex, A);
		UNKNOWN(&mutex, A);
		mark(PTT_TAKING_WRITE, &rwlock, A);
		UNKNOWN(&rwlock, A);
		mark(PTT_TAKING_READ, &rwlock, A);
		UNKNOWN(&rwlock, A);
	}
}

static void test_readers(void)
{
	static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

	mark(PTT_TAKING_READ, &rwlock, A);
	KNOWN(&rwlock, A);
	mark(PTT_TAKING_READ, &rwlock, B);
	mark(PTT_TAKING_RELEASE, &rwlock, A);
	/* B still holds the lock, and A writes after B has released it */
	mark(PTT_TAKING_READ, &rwlock, A);
	UNKNOWN(&rwlock, A);
	mark(PTT_TAKING_WRITE, &rwlock, A);
	KNOWN(&rwlock, A);
}

static void test_new(void)
{
	static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

	mark(PTT_TAKING_INIT, &rwlock, A);
	if (!mark(PTT_TAKING_READ, &rwlock, A) || mark(PTT_TAKING_READ, &rwlock, A))
		exit(1);
	KNOWN(&rwlock, A);
	mark(PTT_TAKING_INIT, &rwlock, A);
	mark(PTT_TAKING_READ, &rwlock, A);
	UNKNOWN(&rwlock, A);
}

int main(void)
{
	test_mutex();
	test_new();
	test_shared_between_processes();
	test_readers();
	if (!mark(PTT_TAKING_UNKNOWN, thread, A))
		return 1;
	return 0;
}
