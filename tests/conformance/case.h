/* SPDX-License-Identifier: MIT */
/* case.h - one line per case: a routine, the situation, and an expression whose result is printed. */
/*
 *     CASE(pthread_mutex_lock, "errorcheck, taken twice", pthread_mutex_lock(locked(mutex(ERRORCHECK))))
 *
 * The value of the expression is the routine's result; the case also checks errno. One program holds all cases and runs
 * the cases of the routine that it is given, each on its own objects. Its output is the same in every run.
 *
 *   CASE             in the first thread
 *   CASE_PENDING     in a thread that has been cancelled already: is the routine a cancellation point?
 *   CASE_CANCELLED   the same while the routine blocks; a routine that ignores the cancellation is released afterwards
 *   CASE_SIGNALLED   signals arrive while the routine blocks; if it goes on waiting, it is released afterwards
 */
#ifndef CASE_H
#define CASE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum how { IN_MAIN, PENDING, CANCELLED, SIGNALLED };

struct test_case {
	const char *routine;
	const char *text;
	long (*run)(void);
	enum how how;
	int line;
};

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

/* A pointer to each case goes into one section; the linker knows where the section begins and ends. */
#define CASE_HOW(how, routine, text, ...)                                                             \
	static long PASTE(run_, __LINE__)(void)                                                       \
	{                                                                                             \
		return (long)(__VA_ARGS__);                                                           \
	}                                                                                             \
	static const struct test_case PASTE(case_, __LINE__) = {#routine, text, PASTE(run_, __LINE__), how, \
								       __LINE__};            \
	static const struct test_case *const PASTE(entry_, __LINE__)                                  \
		__attribute__((used, section("cases"))) = &PASTE(case_, __LINE__);

#define CASE(routine, text, ...) CASE_HOW(IN_MAIN, routine, text, __VA_ARGS__)
#define CASE_PENDING(routine, text, ...) CASE_HOW(PENDING, routine, text, __VA_ARGS__)
#define CASE_CANCELLED(routine, text, ...) CASE_HOW(CANCELLED, routine, text, __VA_ARGS__)
#define CASE_SIGNALLED(routine, text, ...) CASE_HOW(SIGNALLED, routine, text, __VA_ARGS__)

/* ------------------------------------------------------------ objects */

/* Kinds of a mutex: a type, combined with any of the others. */
#define NORMAL PTHREAD_MUTEX_NORMAL
#define RECURSIVE PTHREAD_MUTEX_RECURSIVE
#define ERRORCHECK PTHREAD_MUTEX_ERRORCHECK
#define ADAPTIVE PTHREAD_MUTEX_ADAPTIVE_NP
#define ROBUST 0x10
#define SHARED 0x20
#define INHERIT 0x40
#define PROTECT 0x80

/* Every object is new, in memory that children share. */
void *memory(size_t size);
pthread_mutex_t *mutex(int kind);
pthread_cond_t *cond(clockid_t clock);
pthread_rwlock_t *rwlock(int preference);
pthread_barrier_t *barrier(unsigned int count);
pthread_spinlock_t *spin(void);
sem_t *sem(unsigned int value);

/* The mutex in a state: taken by this thread, or by another thread until the case is over or calls `let_go`. */
pthread_mutex_t *locked(pthread_mutex_t *mutex);
pthread_mutex_t *held(pthread_mutex_t *mutex);
pthread_mutex_t *orphan(pthread_mutex_t *mutex); /* its owner has ended */
pthread_mutex_t *lost(pthread_mutex_t *mutex);	 /* an orphan that no thread made consistent */
pthread_mutex_t *watch(pthread_mutex_t *mutex);	 /* the clean-up handler says whether it is held */
pthread_rwlock_t *read_locked(pthread_rwlock_t *lock);
pthread_rwlock_t *write_locked(pthread_rwlock_t *lock);
pthread_rwlock_t *read_held(pthread_rwlock_t *lock);
pthread_rwlock_t *write_held(pthread_rwlock_t *lock);
pthread_spinlock_t *spin_held(pthread_spinlock_t *lock);

/* The same for any routine: a function with one argument, called by another thread. */
typedef long function(void *object);
long elsewhere(function *what, void *object);		     /* its result */
void *meanwhile(function *what, void *object);		     /* runs beside the case; returns @object */
long result_of_meanwhile(void);				     /* waits for it */
void until_it_waits(void);				     /* returns when it waits */
void *until_let_go(function *take, function *give, void *object); /* take now, give at the end of the case */
long child(function *what, void *object);		     /* the same in a child process: its exit status */

/* A thread that ends with the case, a thread that has ended, and a thread that has been detached. */
pthread_t sleeper(void);
pthread_t ended(void *value);
pthread_t detached(void);

/* ------------------------------------------------------------ time */

const struct timespec *past(void);
const struct timespec *soon(clockid_t clock);
const struct timespec *later(clockid_t clock);
const struct timespec *no_time(void); /* not a valid time */
const struct timespec *negative(void);
const struct timespec *before_epoch(void);
void nap(int ms);

/* Two results in one number, taken one after the other. */
#define both(first, second)              \
	({                               \
		long first_ = (first);   \
		first_ * 10 + (second);  \
	})

#endif
