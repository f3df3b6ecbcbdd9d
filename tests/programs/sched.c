/* SPDX-License-Identifier: MIT */
/* sched.c - holds and waits with known processor time: sched WHAT, on one processor beside a competitor. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L
#if defined(__aarch64__)
#define SIGNATURE 0xd428bc00
#else
#define SIGNATURE 0x53053053
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop, held;

static int64_t clock_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000 * MS + t.tv_nsec;
}

static int64_t ran(void)
{
	return clock_of(CLOCK_THREAD_CPUTIME_ID);
}

/* Until the thread has had a processor for that time. */
static void compute(long ns)
{
	int64_t until = ran() + ns;

	while (ran() < until)
		;
}

static void pause_for(long ns)
{
	struct timespec t = {.tv_nsec = ns};

	while (nanosleep(&t, &t))
		;
}

/* The time for which the calling thread was runnable without a processor, from the kernel. */
static long long ready(void)
{
	long long on = 0, off = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f || fscanf(f, "%lld %lld", &on, &off) != 2)
		exit(77);
	fclose(f);
	return off;
}

static void *compete(void *unused)
{
	while (!stop)
		;
	return unused;
}

static void pin(void)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			break;
		}
	sched_setaffinity(0, sizeof(one), &one);
}

/* Prints how long the thread of a hold ran, as the program sees it. */
static void hold(const char *name, long compute_ns, long sleep_ns)
{
	int64_t before;

	pthread_mutex_lock(&lock);
	before = ran();
	held = 1;
	if (compute_ns)
		compute(compute_ns);
	if (sleep_ns)
		pause_for(sleep_ns);
	printf("%s %ld\n", name, (long)(ran() - before));
	pthread_mutex_unlock(&lock);
	held = 0;
}

static void *waiter(void *unused)
{
	long long before;

	while (!held)
		pause_for(MS / 10);
	before = ready();
	pthread_mutex_lock(&lock);
	printf("waiter %lld\n", ready() - before);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void with_competitor(void)
{
	pthread_t competitor, waits;

	pin();
	pthread_create(&competitor, NULL, compete, NULL);
	hold("computes", 30 * MS, 0);
	hold("sleeps", 0, 30 * MS);
	pthread_create(&waits, NULL, waiter, NULL);
	hold("both", 20 * MS, 20 * MS);
	pthread_join(waits, NULL);
	stop = 1;
	pthread_join(competitor, NULL);
}

/* Newer C libraries register an area for each thread. */
static const ptrdiff_t *rseq_offset(void)
{
	const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");

	if (!offset)
		exit(77);
	return offset;
}

/* The program's own words in the rseq area. */
static void uses_rseq(void)
{
	/* a section without length; the kernel looks for the signature in front of where it would go on */
	static const uint32_t code[2] = {SIGNATURE, 0};
	static struct {
		uint32_t version, flags;
		const uint32_t *start;
		uint64_t length;
		const uint32_t *abort;
	} __attribute__((aligned(32))) own = {.start = code, .abort = &code[1]};
	volatile uint64_t *word = (volatile uint64_t *)((char *)__builtin_thread_pointer() + *rseq_offset() + 8);

	hold("before", MS, 0);
	*word = (uint64_t)(uintptr_t)&own;
	hold("with", 0, 0);
	*word = 0;
	hold("after", MS, 0);
}

/* The program opens files at all numbers, also at numbers of the tracer: its files stay, also in a child. */
static void takes_numbers(void)
{
	int mine = open("/dev/null", O_RDONLY), lost = 0, status;
	long last = sysconf(_SC_OPEN_MAX) < 1024 ? sysconf(_SC_OPEN_MAX) : 1024;
	pid_t child;

	hold("first", MS, 2 * MS);
	for (int i = mine + 1; i < last; i++)
		close(i);
	for (int i = mine + 1; i < last; i++)
		dup2(mine, i);
	hold("second", MS, 2 * MS);
	child = fork();
	hold("third", MS, 2 * MS);
	for (int i = mine; i < last; i++)
		lost += fcntl(i, F_GETFD) < 0;
	if (child == 0)
		_exit(lost != 0);
	waitpid(child, &status, 0);
	printf("lost %d, in the child %d\n", lost, WEXITSTATUS(status));
}

static void handle(int unused)
{
	(void)unused;
}

#define INTERRUPTIONS 5000

/* Several signals in turn, and a lock behind each signal. Return: the number of signals. */
static int take_signals(void)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

	for (int i = 0; i < INTERRUPTIONS; i++) {
		raise(SIGUSR1);
		pthread_mutex_lock(&own);
		pthread_mutex_unlock(&own);
	}
	return INTERRUPTIONS;
}

static void *take_signals_and_wait(void *unused)
{
	take_signals();
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

/* Until a thread that waits for the mutex sleeps: the library's word of the mutex is 2 then. */
static void pause_until_awaited(const pthread_mutex_t *mutex)
{
	while (*(const volatile int *)mutex != 2)
		pause_for(MS / 10);
}

static void is_interrupted(void)
{
	static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
	pthread_t waits;
	int64_t before;
	int holding;

	signal(SIGUSR1, handle);
	take_signals();
	pause_for(5 * MS);
	pthread_mutex_lock(&outer);
	before = ran();
	holding = take_signals();
	hold("slept", 0, 30 * MS);
	printf("outer %ld\n", (long)(ran() - before));
	pthread_mutex_unlock(&outer);
	pthread_mutex_lock(&lock);
	pthread_create(&waits, NULL, take_signals_and_wait, NULL);
	pause_until_awaited(&lock);
	pthread_mutex_unlock(&lock);
	pthread_join(waits, NULL);
	printf("interrupted %d\nholding %d\n", 3 * INTERRUPTIONS, holding);
}

#define TURNS 3000

static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static int turn;

/* Two threads pass something to each other, and the mutex with it. */
static void *take_turns(void *own)
{
	int mine = own != NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < TURNS; i++) {
		while (turn != mine)
			pthread_cond_wait(&passed, &lock);
		turn = !mine;
		pthread_cond_signal(&passed);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void pass_on(void)
{
	pthread_t other;

	pthread_create(&other, NULL, take_turns, &other);
	take_turns(NULL);
	pthread_join(other, NULL);
}

#define SECTIONS 4000

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

/* Waits for the first mutex, and then at once for the second. */
static void *want(void *own)
{
	for (int i = 0; i < SECTIONS; i++) {
		pthread_mutex_lock(&locks[i % 2]);
		pthread_mutex_unlock(&locks[i % 2]);
	}
	*(long long *)own = ready();
	return NULL;
}

/* Until a thread waits for the mutex, as in pause_until_awaited(), but without a delay. */
static void yield_until_awaited(const pthread_mutex_t *mutex)
{
	while (*(const volatile int *)mutex != 2)
		sched_yield();
}

static void contend(void)
{
	long long of_other;
	pthread_t other;

	pthread_mutex_lock(&locks[0]);
	pthread_mutex_lock(&locks[1]);
	pthread_create(&other, NULL, want, &of_other);
	for (int i = 0; i < SECTIONS; i++) {
		yield_until_awaited(&locks[i % 2]);
		pthread_mutex_unlock(&locks[i % 2]);
		if (i == SECTIONS - 1)
			break;
		yield_until_awaited(&locks[(i + 1) % 2]);
		pthread_mutex_lock(&locks[i % 2]);
	}
	pthread_mutex_unlock(&locks[SECTIONS % 2]);
	pthread_join(other, NULL);
	printf("ready %lld\n", of_other);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(what, "competitor") == 0)
		with_competitor();
	else if (strcmp(what, "rseq") == 0)
		uses_rseq();
	else if (strcmp(what, "numbers") == 0)
		takes_numbers();
	else if (strcmp(what, "interrupted") == 0)
		is_interrupted();
	else if (strcmp(what, "turns") == 0)
		pass_on();
	else if (strcmp(what, "contended") == 0)
		contend();
	return 0;
}
