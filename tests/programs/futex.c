/* SPDX-License-Identifier: MIT */
/* futex.c - syscall(): a lock on a futex like Rust's lock, errors, and calls other than futex(). */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "show.h"

static uint32_t word, lock;

static void take(void)
{
	uint32_t expected = 0;

	if (__atomic_compare_exchange_n(&lock, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&lock, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, 2, NULL);
}

static void give(void)
{
	if (__atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE) == 2)
		syscall(SYS_futex, &lock, FUTEX_WAKE_PRIVATE, 1);
}

static void *contend(void *arg)
{
	(void)arg;
	arrive();
	take();
	give();
	return NULL;
}

int main(void)
{
	struct timespec soon = {.tv_nsec = 1000000};
	pthread_t thread;
	char *page;

	SHOW(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL));
	SHOW(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &soon));
	SHOW(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, (void *)1));
	SHOW(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &long_ago, NULL, FUTEX_BITSET_MATCH_ANY));
	SHOW(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &long_ago, NULL, 0));
	SHOW(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX));
	SHOW(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL));
	SHOW(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL));
	SHOW(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE));
	SHOW(syscall(SYS_futex, &word, 99));
	take();
	pthread_create(&thread, NULL, contend, NULL);
	let_block();
	give();
	pthread_join(thread, NULL);
	SHOW(lock);

	/* all six arguments */
	page = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	page[0] = 1;
	SHOW(syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 4096));
	SHOW(syscall(SYS_munmap, page, 4096));
	SHOW(syscall(SYS_getpid) == getpid());
	SHOW(syscall(-1));
	SHOW(syscall(SYS_close, -1));
	return 0;
}
