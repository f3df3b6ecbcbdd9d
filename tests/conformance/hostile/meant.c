/* SPDX-License-Identifier: MIT */
/* meant.c - a thread sends the process a signal and ends: the handler runs in the first thread and interrupts its call. */
#include "work.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/futex.h>
#include <threads.h>
#include <time.h>

static sem_t empty;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static int word, pipe_ends[2];
static volatile pid_t taker;
static const struct timespec minute = {.tv_sec = 60};

static void on_signal(int number)
{
	(void)number;
	taker = gettid();
}

static struct timespec in_a_minute(clockid_t clock)
{
	struct timespec until;

	clock_gettime(clock, &until);
	until.tv_sec += 60;
	return until;
}

/* ------------------------------------------------------------ calls that end */

static int in_sem_wait(void) { return sem_wait(&empty); }
static int in_sem_timedwait(void) { struct timespec t = in_a_minute(CLOCK_REALTIME); return sem_timedwait(&empty, &t); }
static int in_sem_clockwait(void) { struct timespec t = in_a_minute(CLOCK_MONOTONIC); return sem_clockwait(&empty, CLOCK_MONOTONIC, &t); }
static int in_nanosleep(void) { struct timespec left; int r = nanosleep(&minute, &left); return r < 0 && left.tv_sec >= 50 ? r : 99; }
static int in_clock_nanosleep(void) { return clock_nanosleep(CLOCK_MONOTONIC, 0, &minute, NULL); }
static int in_sleep(void) { return sleep(60) >= 50; }
static int in_usleep(void) { return usleep(60000000); }
static int in_thrd_sleep(void) { return thrd_sleep(&minute, NULL); }
static int in_pause(void) { return pause(); }
static int in_sigsuspend(void) { sigset_t none; sigemptyset(&none); return sigsuspend(&none); }
static int in_sigwaitinfo(void) { sigset_t other; sigemptyset(&other); sigaddset(&other, SIGUSR2); return sigwaitinfo(&other, NULL); }
static int in_sigtimedwait(void) { sigset_t other; sigemptyset(&other); sigaddset(&other, SIGUSR2); return sigtimedwait(&other, NULL, &minute); }
static int in_poll(void) { return poll(NULL, 0, 60000); }
static int in_ppoll(void) { return ppoll(NULL, 0, &minute, NULL); }
static int in_select(void) { struct timeval t = {.tv_sec = 60}; return select(0, NULL, NULL, NULL, &t); }
static int in_pselect(void) { return pselect(0, NULL, NULL, NULL, &minute, NULL); }
static int in_epoll_wait(void) { struct epoll_event e; return epoll_wait(epoll_create1(EPOLL_CLOEXEC), &e, 1, 60000); }
static int in_read(void) { char c; return (int)read(pipe_ends[0], &c, 1); }
static int in_futex(void) { return (int)syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0); }
static int in_waitpid(void)
{
	pid_t child = fork();
	int result, error;

	if (child == 0) {
		pause();
		_exit(0);
	}
	result = waitpid(child, NULL, 0);
	error = errno;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	errno = error;
	return result;
}
static int in_flock(void)
{
	char path[] = "/tmp/meantXXXXXX";
	int mine = mkostemp(path, O_CLOEXEC), other = open(path, O_RDWR | O_CLOEXEC), result;

	unlink(path);
	flock(other, LOCK_EX);
	result = flock(mine, LOCK_EX);
	return result;
}

/* ------------------------------------------------------------ calls that go on */

static int in_mutex_lock(void) { int r = pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); return r; }
static int in_rwlock(void) { int r = pthread_rwlock_wrlock(&rwlock); pthread_rwlock_unlock(&rwlock); return r; }
static int in_barrier(void) { return pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD; }
static int in_cond_wait(void)
{
	int r = 0;

	pthread_mutex_lock(&mutex);
	while (word == 0 && r == 0)
		r = pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	return r;
}
static void *nothing(void *arg) { while (!taker) usleep(100); return arg; }
static int in_join(void) { pthread_t t; void *value; pthread_create(&t, NULL, nothing, &word); return pthread_join(t, &value) == 0 && value == &word; }

/* ------------------------------------------------------------ the sender */

/* The sender holds the mutex and the like until the signal has been taken. */
struct one {
	const char *name;
	int (*call)(void);
	int flags;
	volatile int ready;
	volatile int asleep;
};

/* The kernel's letter for the state of the first thread. */
static char state_of_first(void)
{
	char path[64], text[512], *end;
	int fd, size;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = (int)read(fd, text, sizeof(text) - 1);
	close(fd);
	text[size > 0 ? size : 0] = '\0';
	end = strrchr(text, ')');
	return end ? end[2] : '?';
}

static void await_sleep(void)
{
	for (int seen = 0; seen < 3;) {
		struct timespec moment = {.tv_nsec = 300000};

		seen = state_of_first() == 'S' ? seen + 1 : 0;
		syscall(SYS_nanosleep, &moment, NULL);
	}
}

static void *sender(void *given)
{
	struct one *one = given;
	struct timespec moment = {.tv_nsec = 100000};

	pthread_mutex_lock(&mutex);
	pthread_rwlock_wrlock(&rwlock);
	one->ready = 1;
	if (one->call == in_cond_wait)
		pthread_mutex_unlock(&mutex);
	await_sleep();
	kill(getpid(), SIGUSR1);
	if (one->call == in_cond_wait)
		pthread_mutex_lock(&mutex);
	if (one->call == in_cond_wait || one->call == in_barrier)
		while (!taker)
			syscall(SYS_nanosleep, &moment, NULL);
	word = 1;
	pthread_cond_signal(&cond);
	pthread_rwlock_unlock(&rwlock);
	pthread_mutex_unlock(&mutex);
	if (one->call == in_barrier)
		pthread_barrier_wait(&barrier);
	return NULL;
}

/* The same, but after the signal the sender only ends, with or without events. */
static void *short_sender(void *given)
{
	(void)given;
	await_sleep();
	kill(getpid(), SIGUSR1);
	return NULL;
}

static void try(struct one *one, void *(*routine)(void *), const char *how)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = one->flags};
	pthread_t thread;
	int result, error;

	sigaction(SIGUSR1, &action, NULL);
	taker = 0;
	word = 0;
	one->ready = 0;
	pthread_create(&thread, NULL, routine, one);
	while (routine == sender && !one->ready)
		sched_yield();
	errno = 77;
	result = one->call();
	error = errno;
	pthread_join(thread, NULL);
	printf("%s, %s: %d, errno %d, handler in %s\n", one->name, how, result, error,
	       taker == getpid() ? "the first thread" : "another thread");
	fflush(stdout);
}

#define ENDS(name) {#name, in_##name, 0}
#define GOES_ON(name) {#name, in_##name, SA_RESTART}

int main(void)
{
	static struct one ends[] = {
		ENDS(sem_wait), ENDS(sem_timedwait), ENDS(sem_clockwait), ENDS(nanosleep), ENDS(clock_nanosleep), ENDS(sleep),
		ENDS(usleep), ENDS(thrd_sleep), ENDS(pause), ENDS(sigsuspend), ENDS(sigwaitinfo), ENDS(sigtimedwait),
		ENDS(poll), ENDS(ppoll), ENDS(select), ENDS(pselect), ENDS(epoll_wait), ENDS(read), ENDS(futex), ENDS(waitpid),
		ENDS(flock),
	};
	static struct one goes_on[] = {
		GOES_ON(mutex_lock), GOES_ON(rwlock), GOES_ON(barrier), GOES_ON(cond_wait), GOES_ON(join),
	};

	sem_init(&empty, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	if (pipe2(pipe_ends, O_CLOEXEC) < 0)
		return 1;
	alarm(60);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		try(&ends[i], sender, "then events");
		try(&ends[i], short_sender, "then the end");
	}
	for (size_t i = 0; i < sizeof(goes_on) / sizeof(*goes_on); i++)
		try(&goes_on[i], sender, "then events");
	return 0;
}
