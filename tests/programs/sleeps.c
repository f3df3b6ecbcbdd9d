/* SPDX-License-Identifier: MIT */
/* sleeps.c - calls in which threads sleep: cancelled, interrupted and refused; `held`: with a mutex in hand. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static int in, pair, listener, events, locked;
static mqd_t queue, full;
static pid_t child;
static const struct timespec hour = { .tv_sec = 3600 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool held, done;
static char data[64];

static struct timespec in_an_hour(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += 3600;
	return now;
}

static sigset_t usr2(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return set;
}

static fd_set input(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(in, &set);
	return set;
}

#define CALL(name, ...) static long do_##name(void) { __VA_ARGS__ }
CALL(poll, struct pollfd p = { in, POLLIN, 0 }; return poll(&p, 1, -1);)
CALL(ppoll, struct pollfd p = { in, POLLIN, 0 }; return ppoll(&p, 1, NULL, NULL);)
CALL(select, fd_set set = input(); return select(in + 1, &set, NULL, NULL, NULL);)
CALL(pselect, fd_set set = input(); return pselect(in + 1, &set, NULL, NULL, NULL, NULL);)
CALL(epoll_wait, struct epoll_event e; return epoll_wait(events, &e, 1, -1);)
CALL(epoll_pwait, struct epoll_event e; return epoll_pwait(events, &e, 1, -1, NULL);)
CALL(read, return read(in, data, sizeof(data));)
CALL(readv, struct iovec part = { data, sizeof(data) }; return readv(in, &part, 1);)
CALL(recv, return recv(pair, data, sizeof(data), 0);)
CALL(recvfrom, return recvfrom(pair, data, sizeof(data), 0, NULL, NULL);)
CALL(recvmsg, struct msghdr m = { 0 }; return recvmsg(pair, &m, 0);)
CALL(accept, return accept(listener, NULL, NULL);)
CALL(accept4, return accept4(listener, NULL, NULL, SOCK_CLOEXEC);)
CALL(nanosleep, return nanosleep(&hour, NULL);)
CALL(clock_nanosleep, return clock_nanosleep(CLOCK_MONOTONIC, 0, &hour, NULL);)
CALL(usleep, return usleep(999999999);)
CALL(sleep, return sleep(3600) > 3000;)
CALL(thrd_sleep, return thrd_sleep(&hour, NULL);)
CALL(sigwait, sigset_t set = usr2(); int n = 0; int err = sigwait(&set, &n); return err ? err : n;)
CALL(sigwaitinfo, sigset_t set = usr2(); return sigwaitinfo(&set, NULL);)
CALL(sigtimedwait, sigset_t set = usr2(); return sigtimedwait(&set, NULL, &hour);)
CALL(mq_receive, return mq_receive(queue, data, sizeof(data), NULL);)
CALL(mq_timedreceive, struct timespec t = in_an_hour(); return mq_timedreceive(queue, data, sizeof(data), NULL, &t);)
CALL(mq_send, return mq_send(full, data, 1, 0);)
CALL(mq_timedsend, struct timespec t = in_an_hour(); return mq_timedsend(full, data, 1, 0, &t);)
CALL(wait, return wait(NULL);)
CALL(waitpid, return waitpid(child, NULL, 0);)
CALL(waitid, siginfo_t info; return waitid(P_PID, (id_t)child, &info, WEXITED);)
CALL(wait3, return wait3(NULL, 0, NULL);)
CALL(wait4, return wait4(child, NULL, 0, NULL);)
CALL(flock, return flock(locked, LOCK_EX);)

static const struct sleeper {
	const char *name;
	long (*call)(void);
	int interrupts;
	bool no_cancellation_point;
} sleepers[] = {
#define S(name, ...) { #name, do_##name, __VA_ARGS__ }
	S(poll, SIGUSR1), S(ppoll, SIGUSR1), S(select, SIGUSR1), S(pselect, SIGUSR1), S(epoll_wait, SIGUSR1),
	S(epoll_pwait, SIGUSR1), S(read, SIGUSR1), S(readv, SIGUSR1), S(recv, SIGUSR1), S(recvfrom, SIGUSR1),
	S(recvmsg, SIGUSR1), S(accept, SIGUSR1), S(accept4, SIGUSR1), S(nanosleep, SIGUSR1),
	S(clock_nanosleep, SIGUSR1), S(usleep, SIGUSR1), S(sleep, SIGUSR1), S(thrd_sleep, SIGUSR1),
	S(sigwait, SIGUSR2), S(sigwaitinfo, SIGUSR1), S(sigtimedwait, SIGUSR1), S(mq_receive, SIGUSR1),
	S(mq_timedreceive, SIGUSR1), S(mq_send, SIGUSR1), S(mq_timedsend, SIGUSR1), S(wait, SIGUSR1),
	S(waitpid, SIGUSR1), S(waitid, SIGUSR1), S(wait3, SIGUSR1), S(wait4, SIGUSR1), S(flock, SIGUSR1, true),
};

static void release(void *unused)
{
	(void)unused;
	if (held)
		pthread_mutex_unlock(&mutex);
}

static void *sleeps(void *what)
{
	const struct sleeper *s = what;
	long result;

	if (held)
		pthread_mutex_lock(&mutex);
	pthread_cleanup_push(release, NULL);
	errno = 0;
	result = s->call();
	printf("%s: %ld %s\n", s->name, result, strerror(errno));
	__atomic_store_n(&done, true, __ATOMIC_SEQ_CST);
	pthread_cleanup_pop(1);
	return NULL;
}

static void handler(int signal)
{
	(void)signal;
}

static bool missing(const struct sleeper *s)
{
	return strncmp(s->name, "mq_", 3) == 0 && queue == (mqd_t)-1;
}

static void each(const struct sleeper *s)
{
	pthread_t thread;
	void *value;

	if (missing(s))
		return;
	done = false;
	pthread_create(&thread, NULL, sleeps, (void *)s);
	while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) {
		pthread_kill(thread, s->interrupts);
		usleep(2000);
	}
	pthread_join(thread, NULL);
	if (s->no_cancellation_point)
		return;
	for (int round = 0; round < 3; round++) {
		pthread_create(&thread, NULL, sleeps, (void *)s);
		/* before it sleeps, or when it does */
		usleep((useconds_t)round * 3000);
		pthread_cancel(thread);
		pthread_join(thread, &value);
		printf("%s: cancelled %d\n", s->name, value == PTHREAD_CANCELED);
	}
}

#define REFUSED(...)                                                  \
	do {                                                          \
		long result_;                                         \
									\
		errno = 4242;                                         \
		result_ = (long)(__VA_ARGS__);                        \
		printf("%s: %ld errno %d\n", #__VA_ARGS__, result_, errno); \
	} while (0)

static void refused(void)
{
	static const struct timespec bad = { .tv_nsec = -1 };
	static const struct timespec now;
	const struct timespec *nowhere = NULL;
	struct timeval moment = { 0 };
	sigset_t set = usr2();
	siginfo_t info;

	__asm__("" : "+r"(nowhere));
	REFUSED(read(-1, data, 1));
	REFUSED(poll(NULL, 0, 1));
	REFUSED(poll((void *)8, 1, 10));
	REFUSED(ppoll(NULL, 0, &bad, NULL));
	REFUSED(select(-1, NULL, NULL, NULL, NULL));
	REFUSED(select(0, NULL, NULL, NULL, &moment));
	REFUSED(pselect(0, NULL, NULL, NULL, &bad, NULL));
	REFUSED(epoll_wait(-1, NULL, 1, 5));
	REFUSED(recv(in, data, 1, 0));
	REFUSED(recv(pair, data, 1, MSG_DONTWAIT));
	REFUSED(recvmsg(-1, NULL, 0));
	REFUSED(accept(in, NULL, NULL));
	REFUSED(nanosleep(&bad, NULL));
	REFUSED(nanosleep(nowhere, NULL));
	REFUSED(nanosleep(&now, NULL));
	REFUSED(clock_nanosleep(-77, 0, &now, NULL));
	REFUSED(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &now, NULL));
	REFUSED(usleep(1));
	REFUSED(sleep(0));
	REFUSED(thrd_sleep(&bad, NULL));
	REFUSED(sigtimedwait(&set, &info, &now));
	REFUSED(sigtimedwait(&set, &info, &bad));
	REFUSED(mq_receive(-1, data, 1, NULL));
	REFUSED(mq_send(-1, data, 1, 0));
	REFUSED(waitpid(1, NULL, 0));
	REFUSED(waitpid(child, NULL, WNOHANG));
	REFUSED(waitid(P_PID, 1, &info, WEXITED));
	REFUSED(flock(-1, LOCK_EX));
	REFUSED(flock(locked, LOCK_EX | LOCK_NB));
	REFUSED(fsync(in));
	REFUSED(fdatasync(-1));
}

static void prepare(const char *directory)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = sizeof(data) };
	struct sigaction action = { .sa_handler = handler };
	struct epoll_event event = { .events = EPOLLIN };
	int ends[2];
	sigset_t set = usr2();
	char name[64];

	if (chdir(directory) < 0)
		exit(2);
	sigaction(SIGUSR1, &action, NULL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pipe(ends) < 0)
		exit(2);
	in = ends[0];
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	pair = ends[0];
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(address.sun_path, "listener");
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 1) < 0)
		exit(2);
	events = epoll_create1(0);
	epoll_ctl(events, EPOLL_CTL_ADD, in, &event);
	if (flock(open("lock", O_RDWR | O_CREAT, 0600), LOCK_EX) < 0)
		exit(2);
	locked = open("lock", O_RDWR);
	snprintf(name, sizeof(name), "/sleeps-%d", getpid());
	queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
	mq_unlink(name);
	full = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
	mq_unlink(name);
	if (full != (mqd_t)-1 && mq_send(full, data, 1, 0) < 0)
		exit(2);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	held = strcmp(argv[1], "held") == 0;
	prepare(argv[2]);
	for (size_t i = 0; i < sizeof(sleepers) / sizeof(*sleepers); i++)
		each(&sleepers[i]);
	if (held)
		pthread_mutex_lock(&mutex);
	refused();
	if (held)
		pthread_mutex_unlock(&mutex);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
