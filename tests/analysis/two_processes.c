/* SPDX-License-Identifier: MIT */
/* two_processes.c - two_processes anonymous|named TIMES: two processes take turns with a mutex in shared memory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct shared {
	pthread_mutex_t mutex;
	int wants[2]; /* by process: it is about to take it */
	int over;     /* one of them never will any more */
};

static char name[64];

static struct shared *map(void *where)
{
	int fd = name[0] ? shm_open(name, O_RDWR | O_CREAT, 0600) : -1;

	if (fd >= 0 && ftruncate(fd, 8192))
		exit(2);
	return mmap(where, 8192, PROT_READ | PROT_WRITE, fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd, 0);
}

/* The holder waits until the other process wants the mutex too: each hold has a waiter. */
static void use(struct shared *s, int me, int times)
{
	struct timespec moment = {.tv_nsec = 1000000};

	for (int i = 0; i < times; i++) {
		__atomic_store_n(&s->wants[me], 1, __ATOMIC_SEQ_CST);
		pthread_mutex_lock(&s->mutex);
		__atomic_store_n(&s->wants[me], 0, __ATOMIC_SEQ_CST);
		do
			nanosleep(&moment, NULL);
		while (!__atomic_load_n(&s->wants[!me], __ATOMIC_SEQ_CST) &&
		       !__atomic_load_n(&s->over, __ATOMIC_SEQ_CST));
		pthread_mutex_unlock(&s->mutex);
	}
	__atomic_store_n(&s->over, 1, __ATOMIC_SEQ_CST);
}

int main(int argc, char **argv)
{
	int times = argc > 2 ? atoi(argv[2]) : 10, status;
	pthread_mutexattr_t attr;
	struct shared *s;

	if (argc > 1 && !strcmp(argv[1], "named"))
		snprintf(name, sizeof(name), "/two-processes-%d", getpid());
	s = map(NULL);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&s->mutex, &attr);
	if (!fork()) {
		/* at another address: only the memory itself is the same */
		if (name[0]) {
			struct shared *moved = map(NULL);

			munmap(s, 8192);
			s = moved;
		}
		use(s, 1, times);
		return 0;
	}
	use(s, 0, times);
	wait(&status);
	if (name[0])
		shm_unlink(name);
	return status != 0;
}
