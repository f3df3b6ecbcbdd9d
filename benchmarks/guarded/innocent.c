// SPDX-License-Identifier: MIT
/* Programs that are idle or slow, and do not hang. The argument chooses one; none ends by itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONG = 1000000, WORKERS = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t meeting;
static sem_t items;
static volatile double sum;

static void begin(int count, void *(*run)(void *))
{
	pthread_t thread;

	while (count--)
		pthread_create(&thread, NULL, run, NULL);
}

static struct timespec in_seconds(int seconds)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_sec += seconds;
	return time;
}

static void sleeps(void)
{
	sleep(LONG);
}

static void selects(void)
{
	for (;;) {
		struct timeval second = { .tv_sec = 1 };

		select(0, NULL, NULL, NULL, &second);
	}
}

static void polls_timer(void)
{
	struct itimerspec often = { { 0, 200000000 }, { 0, 200000000 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), set = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	unsigned long count;

	timerfd_settime(timer, 0, &often, NULL);
	epoll_ctl(set, EPOLL_CTL_ADD, timer, &event);
	while (epoll_wait(set, &event, 1, -1) >= 0 && read(timer, &count, sizeof(count)) > 0)
		;
}

static void *takes_work(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&some, &lock);
	return unused;
}

static void *takes_items(void *unused)
{
	for (;;)
		sem_wait(&items);
	return unused;
}

/* The first thread waits for a signal to end, as servers do. */
static void pool(void)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	begin(WORKERS, takes_work);
	sigwait(&set, &signal);
}

static void pool_of_semaphore(void)
{
	begin(WORKERS, takes_items);
	for (char byte; read(0, &byte, 1) > 0;)
		sem_post(&items);
}

static void computes(void)
{
	for (unsigned long n = 1;; n++)
		sum += 1.0 / n;
}

static void *computes_with_lock(void *unused)
{
	pthread_mutex_lock(&lock);
	computes();
	return unused;
}

static void *takes_lock(void *unused)
{
	sleep(1);
	pthread_mutex_lock(&lock);
	return unused;
}

/* All others wait for a lock whose holder is at work. */
static void held_at_work(void)
{
	begin(1, computes_with_lock);
	begin(WORKERS, takes_lock);
	takes_lock(NULL);
}

static void held_asleep(void)
{
	pthread_mutex_lock(&lock);
	begin(WORKERS, takes_lock);
	sleep(LONG);
}

static void *reads_table(void *unused)
{
	pthread_rwlock_rdlock(&table);
	sleep(LONG);
	return unused;
}

static void readers(void)
{
	begin(WORKERS, reads_table);
	sleep(1);
	pthread_rwlock_wrlock(&table);
}

static void *comes_late(void *unused)
{
	sleep(LONG);
	pthread_barrier_wait(&meeting);
	return unused;
}

static void barrier(void)
{
	pthread_barrier_init(&meeting, NULL, 2);
	begin(1, comes_late);
	pthread_barrier_wait(&meeting);
}

static void joins_worker(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, computes_with_lock, NULL);
	pthread_join(thread, NULL);
}

static void disk(void)
{
	char name[] = "guarded-disk-XXXXXX", data[1 << 16] = "";
	int fd = mkstemp(name);

	unlink(name);
	while (pwrite(fd, data, sizeof(data), 0) > 0 && !fdatasync(fd))
		usleep(1000);
}

static void child(void)
{
	if (fork() == 0)
		sleeps();
	wait(NULL);
}

static void timed_wait(void)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct timespec limit = in_seconds(3);

		pthread_cond_timedwait(&some, &lock, &limit);
	}
}

static void timed_semaphore(void)
{
	for (;;) {
		struct timespec limit = in_seconds(3);

		sem_timedwait(&items, &limit);
	}
}

static void on_signal(int signal)
{
	(void)signal;
}

static void pauses(void)
{
	signal(SIGUSR1, on_signal);
	for (;;)
		pause();
}

static void post(int signal)
{
	(void)signal;
	sem_post(&items);
}

/* A timer's handler posts the semaphore. */
static void posted_by_timer(void)
{
	timer_t timer;
	struct itimerspec often = { { 2, 0 }, { 2, 0 } };

	signal(SIGALRM, post);
	timer_create(CLOCK_MONOTONIC, NULL, &timer);
	timer_settime(timer, 0, &often, NULL);
	for (;;)
		sem_wait(&items);
}

static void reads_signals(void)
{
	struct signalfd_siginfo info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (read(signalfd(-1, &set, 0), &info, sizeof(info)) > 0)
		;
}

static void watches_files(void)
{
	char events[4096];
	int watch = inotify_init();

	inotify_add_watch(watch, ".", IN_CREATE);
	while (read(watch, events, sizeof(events)) > 0)
		;
}

static void slow_reader(void)
{
	static char data[1 << 20];
	int fds[2];

	if (pipe(fds))
		exit(1);
	if (fork() == 0) {
		for (; read(fds[0], data, 4096) > 0; sleep(2))
			;
		_exit(0);
	}
	while (write(fds[1], data, sizeof(data)) > 0)
		;
}

static void slow_writer(void)
{
	char byte = 0;
	int fds[2];

	if (pipe(fds))
		exit(1);
	if (fork() == 0) {
		for (; write(fds[1], &byte, 1) > 0; sleep(2))
			;
		_exit(0);
	}
	while (read(fds[0], &byte, 1) > 0)
		;
}

static void file_lock(void)
{
	char name[] = "guarded-lock-XXXXXX";
	int fd = mkstemp(name);

	flock(fd, LOCK_EX);
	if (fork() == 0) {
		close(fd);
		flock(open(name, O_RDWR), LOCK_EX);
	}
	sleeps();
}

static void shared_memory(void)
{
	struct {
		pthread_mutex_t lock;
		pthread_cond_t some;
	} *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t for_all;
	pthread_condattr_t cond_for_all;

	pthread_mutexattr_init(&for_all);
	pthread_mutexattr_setpshared(&for_all, PTHREAD_PROCESS_SHARED);
	pthread_condattr_init(&cond_for_all);
	pthread_condattr_setpshared(&cond_for_all, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&memory->lock, &for_all);
	pthread_cond_init(&memory->some, &cond_for_all);
	for (int n = 0; n < 3; n++)
		if (fork() == 0) {
			pthread_mutex_lock(&memory->lock);
			for (;;)
				pthread_cond_wait(&memory->some, &memory->lock);
		}
	for (;; sleep(5))
		pthread_cond_signal(&memory->some);
}

/* Two locks in both orders, but with tries: the threads go on. */
static void *tries(void *unused)
{
	pthread_mutex_t *first = unused ? &lock : &other, *second = unused ? &other : &lock;

	for (;;) {
		pthread_mutex_lock(first);
		usleep(20000);
		if (!pthread_mutex_trylock(second))
			pthread_mutex_unlock(second);
		pthread_mutex_unlock(first);
		usleep(20000);
	}
	return NULL;
}

static void backs_off(void)
{
	begin(1, tries);
	tries(&lock);
}

static void terminal(void)
{
	begin(WORKERS, takes_work);
	for (char byte; read(0, &byte, 1) > 0;)
		;
}

static const struct {
	const char *name;
	void (*run)(void);
} CASES[] = {
	{ "sleeps", sleeps },		{ "selects", selects },
	{ "polls-timer", polls_timer }, { "pool", pool },
	{ "pool-of-semaphore", pool_of_semaphore },
	{ "computes", computes },	{ "held-at-work", held_at_work },
	{ "held-asleep", held_asleep }, { "readers", readers },
	{ "barrier", barrier },		{ "joins-worker", joins_worker },
	{ "disk", disk },		{ "child", child },
	{ "timed-wait", timed_wait },	{ "timed-semaphore", timed_semaphore },
	{ "pauses", pauses },		{ "posted-by-timer", posted_by_timer },
	{ "reads-signals", reads_signals },
	{ "watches-files", watches_files },
	{ "slow-reader", slow_reader }, { "slow-writer", slow_writer },
	{ "file-lock", file_lock },	{ "shared-memory", shared_memory },
	{ "backs-off", backs_off },	{ "terminal", terminal },
};

int main(int count, char **arguments)
{
	sem_init(&items, 0, 0);
	for (unsigned n = 0; count > 1 && n < sizeof(CASES) / sizeof(CASES[0]); n++)
		if (!strcmp(arguments[1], CASES[n].name)) {
			CASES[n].run();
			return 0;
		}
	return 2;
}
