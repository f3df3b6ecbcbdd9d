/* SPDX-License-Identifier: MIT */
/* lwlock.c - locks like PostgreSQL's: a process waits for its own semaphore, which another process posts at the release. */
#define _GNU_SOURCE
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "show.h"

static sem_t *own;

/* The compiler must not turn calls into jumps, nor inline functions. */
#define FUNCTION __attribute__((noinline, noclone))
#define KEPT __asm__ volatile("")

FUNCTION void PGSemaphoreLock(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

FUNCTION void PGSemaphoreUnlock(sem_t *sem)
{
	sem_post(sem);
	KEPT;
}

/* It has no name in a program without a symbol table. */
static FUNCTION void LWLockWakeup(sem_t *sem)
{
	PGSemaphoreUnlock(sem);
	KEPT;
}

FUNCTION void LWLockAcquire(void)
{
	PGSemaphoreLock(own);
	KEPT;
}

FUNCTION void LWLockRelease(void)
{
	LWLockWakeup(own);
	KEPT;
}

FUNCTION void insert_record(void)
{
	LWLockAcquire();
	KEPT;
}

FUNCTION void write_log(void)
{
	/* glibc counts waiters in the upper half of the first word */
	while (!(__atomic_load_n((uint64_t *)own, __ATOMIC_RELAXED) >> 32))
		nap();
	LWLockRelease();
	KEPT;
}

int main(void)
{
	own = mmap(NULL, sizeof(*own), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (own == MAP_FAILED || sem_init(own, 1, 0))
		return 1;
	if (!fork()) {
		write_log();
		exit(0);
	}
	insert_record();
	return wait(NULL) < 0;
}
