/* SPDX-License-Identifier: MIT */
/* futex_lock.c - a lock on a futex, like Rust's: two threads, and the second waits for 50 ms; futex_lock deadlock: for ever. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t first, second;
static int taken[2];

/* The name is the name of Rust's function: by this name the tracer recognizes a wait for a lock. */
void lock_contended(uint32_t *lock) __asm__("_ZN3std3sys4sync5mutex5futex5Mutex14lock_contended17h0123456789abcdefE");
__attribute__((noinline)) void lock_contended(uint32_t *lock)
{
	while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 2, NULL);
	__asm__ volatile("");
}

/* The program's own lock, which PTT does not know. */
__attribute__((noinline)) void own_contended(uint32_t *lock)
{
	while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 2, NULL);
	__asm__ volatile("");
}

static void (*wait_for)(uint32_t *lock) = lock_contended;

static void take(uint32_t *lock)
{
	uint32_t expected = 0;

	if (!__atomic_compare_exchange_n(lock, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		wait_for(lock);
}

static void give(uint32_t *lock)
{
	if (__atomic_exchange_n(lock, 0, __ATOMIC_RELEASE) == 2)
		syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1);
}

static void *hold(void *unused)
{
	(void)unused;
	take(&first);
	__atomic_store_n(&taken[0], 1, __ATOMIC_RELEASE);
	usleep(50000);
	give(&first);
	return NULL;
}

static void *cross(void *other_way)
{
	int own = other_way != NULL;

	take(own ? &second : &first);
	__atomic_store_n(&taken[own], 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&taken[!own], __ATOMIC_ACQUIRE))
		;
	take(own ? &first : &second);
	return NULL;
}

int main(int count, char **what)
{
	pthread_t one, two;

	if (count > 1 && strstr(what[1], "own"))
		wait_for = own_contended;
	if (count > 1 && strstr(what[1], "deadlock")) {
		pthread_create(&one, NULL, cross, NULL);
		pthread_create(&two, NULL, cross, &two);
		usleep(500000);
		_exit(0);
	}
	pthread_create(&one, NULL, hold, NULL);
	while (!__atomic_load_n(&taken[0], __ATOMIC_ACQUIRE))
		;
	take(&first);
	give(&first);
	pthread_join(one, NULL);
	return 0;
}
