/* SPDX-License-Identifier: MIT */
/* thread.c - pthread_create, exit, join, detach, cancel, kill, names: threads from creation to end. */
#include "case.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void *back(void *value)
{
	return value;
}

static void *leave(void *value)
{
	pthread_exit(value);
}

static long join_result(pthread_t thread)
{
	void *value = (void *)-5;
	int result = pthread_join(thread, &value);

	return result ? result : (long)value;
}

static long create_and_join(const pthread_attr_t *attr, void *(*routine)(void *), long value)
{
	pthread_t thread;
	int result = pthread_create(&thread, attr, routine, (void *)value);

	return result ? result : join_result(thread);
}

static pthread_attr_t *attr(void)
{
	pthread_attr_t *made = memory(sizeof(*made));

	pthread_attr_init(made);
	return made;
}

static pthread_attr_t *with_stack(size_t size)
{
	pthread_attr_t *made = attr();

	pthread_attr_setstacksize(made, size);
	return made;
}

static pthread_attr_t *with_policy(int policy, int priority)
{
	struct sched_param param = {.sched_priority = priority};
	pthread_attr_t *made = attr();

	pthread_attr_setinheritsched(made, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(made, policy);
	pthread_attr_setschedparam(made, &param);
	return made;
}

static void *stack_size(void *arg)
{
	pthread_attr_t now;
	size_t size = 0;

	pthread_getattr_np(pthread_self(), &now);
	pthread_attr_getstacksize(&now, &size);
	pthread_attr_destroy(&now);
	(void)arg;
	return (void *)(size / 1024);
}

static void *signal_mask(void *arg)
{
	sigset_t now;

	(void)arg;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	return (void *)(long)(sigismember(&now, SIGUSR2) * 2 + sigismember(&now, SIGUSR1));
}

static long mask_inherited(void)
{
	sigset_t one, before;
	long result;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &one, &before);
	result = create_and_join(NULL, signal_mask, 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

static long in_child(long (*what)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit((int)what());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static long create_without_memory(void)
{
	struct rlimit limit = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};

	setrlimit(RLIMIT_AS, &limit);
	return create_and_join(NULL, back, 1);
}

/* ------------------------------------------------------------ the end of threads */

static pthread_key_t key;
static char order[16];
static int orders;

static void note(void *what)
{
	if (orders < 15)
		order[orders++] = *(char *)what;
}

static void again(void *what)
{
	char *left = what;

	note("k");
	if (--left[0] > 0)
		pthread_setspecific(key, left);
}

static void *with_everything(void *arg)
{
	pthread_cleanup_push(note, "1");
	pthread_cleanup_push(note, "2");
	pthread_setspecific(key, arg);
	pthread_exit(NULL);
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

static long destructors_run(int rounds)
{
	static char left;

	left = (char)rounds;
	orders = 0;
	memset(order, 0, sizeof(order));
	pthread_key_create(&key, again);
	create_and_join(NULL, with_everything, (long)&left);
	pthread_key_delete(key);
	printf("order: %s\n", order);
	return orders;
}

static long exit_in_main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, back, NULL);
	pthread_exit((void *)9);
}

static void *exit_later(void *arg)
{
	nap(20);
	(void)arg;
	_exit(7);
}

static long exit_in_main_goes_on(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exit_later, NULL);
	pthread_exit(NULL);
}

static void at_exit(void)
{
	pthread_mutex_lock(mutex(NORMAL));
	_exit(11);
}

static long exit_in_main_runs_atexit(void)
{
	atexit(at_exit);
	pthread_exit(NULL);
}

static void *cancelled_itself(void *arg)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return arg;
}

static void *cancelled_asynchronously(void *arg)
{
	volatile long n = 0;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_cancel(pthread_self());
	for (;;)
		n++;
	return arg;
}

static void *not_cancelable(void *arg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return arg;
}

CASE(pthread_create, "returns", create_and_join(NULL, back, 42))
CASE(pthread_create, "exits", create_and_join(NULL, leave, 43))
CASE(pthread_create, "small stack", create_and_join(with_stack(PTHREAD_STACK_MIN), back, 44))
CASE(pthread_create, "size of its stack", create_and_join(with_stack(1 << 20), stack_size, 0))
CASE(pthread_create, "stack too large", create_and_join(with_stack(SIZE_MAX / 4), back, 1))
CASE(pthread_create, "no memory", in_child(create_without_memory))
CASE(pthread_create, "round robin with priority 99", create_and_join(with_policy(SCHED_RR, 99), back, 45))
CASE(pthread_create, "batch", create_and_join(with_policy(SCHED_OTHER, 0), back, 46))
CASE(pthread_create, "signal mask", mask_inherited())
CASE_PENDING(pthread_create, "cancelled before", pthread_create(memory(sizeof(pthread_t)), NULL, back, NULL))

CASE(pthread_exit, "value", create_and_join(NULL, leave, 7))
CASE(pthread_exit, "clean-up handlers and a destructor", destructors_run(1))
CASE(pthread_exit, "a destructor that comes back twice", destructors_run(3))
CASE(pthread_exit, "a destructor that never stops", destructors_run(100))
CASE(pthread_exit, "in main", in_child(exit_in_main))
CASE(pthread_exit, "in main, another thread goes on", in_child(exit_in_main_goes_on))
CASE(pthread_exit, "in main, last thread", in_child(exit_in_main_runs_atexit))

CASE(pthread_join, "ended", join_result(ended((void *)8)))
CASE(pthread_join, "itself", pthread_join(pthread_self(), NULL))
CASE(pthread_join, "detached", pthread_join(detached(), NULL))
CASE_PENDING(pthread_join, "cancelled before", pthread_join(sleeper(), NULL))
CASE_CANCELLED(pthread_join, "cancelled while it waits", pthread_join(sleeper(), NULL))
CASE_SIGNALLED(pthread_join, "signalled while it waits", pthread_join(sleeper(), NULL))

CASE(pthread_tryjoin_np, "runs", pthread_tryjoin_np(sleeper(), NULL))
CASE(pthread_tryjoin_np, "detached", pthread_tryjoin_np(detached(), NULL))
CASE(pthread_tryjoin_np, "itself", pthread_tryjoin_np(pthread_self(), NULL))

CASE(pthread_timedjoin_np, "in vain", pthread_timedjoin_np(sleeper(), NULL, soon(CLOCK_REALTIME)))
CASE(pthread_timedjoin_np, "too late", pthread_timedjoin_np(sleeper(), NULL, past()))
CASE(pthread_timedjoin_np, "itself", pthread_timedjoin_np(pthread_self(), NULL, past()))
CASE(pthread_timedjoin_np, "ended", pthread_timedjoin_np(ended(NULL), NULL, later(CLOCK_REALTIME)))
CASE_CANCELLED(pthread_timedjoin_np, "cancelled while it waits", pthread_timedjoin_np(sleeper(), NULL, later(CLOCK_REALTIME)))

CASE(pthread_clockjoin_np, "in vain", pthread_clockjoin_np(sleeper(), NULL, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
CASE(pthread_clockjoin_np, "strange clock", pthread_clockjoin_np(sleeper(), NULL, CLOCK_THREAD_CPUTIME_ID, past()))
CASE(pthread_clockjoin_np, "detached", pthread_clockjoin_np(detached(), NULL, CLOCK_MONOTONIC, past()))
CASE_CANCELLED(pthread_clockjoin_np, "cancelled while it waits", pthread_clockjoin_np(sleeper(), NULL, CLOCK_MONOTONIC, later(CLOCK_MONOTONIC)))

CASE(pthread_detach, "runs", pthread_detach(sleeper()))
CASE(pthread_detach, "ended", pthread_detach(ended(NULL)))
CASE(pthread_detach, "detached", pthread_detach(detached()))
CASE_PENDING(pthread_detach, "cancelled before", pthread_detach(sleeper()))

static pthread_t victim;
CASE(pthread_cancel, "blocks", pthread_cancel(victim = sleeper()))
CASE(pthread_cancel, "its value", join_result(victim) == (long)PTHREAD_CANCELED)
CASE(pthread_cancel, "ended", pthread_cancel(ended(NULL)))
CASE(pthread_cancel, "itself, deferred", create_and_join(NULL, cancelled_itself, 1))
CASE(pthread_cancel, "itself, asynchronous", create_and_join(NULL, cancelled_asynchronously, 1))
CASE(pthread_cancel, "itself, disabled", create_and_join(NULL, not_cancelable, 5))

CASE(pthread_kill, "signal 0", pthread_kill(sleeper(), 0))
CASE(pthread_kill, "no signal", pthread_kill(pthread_self(), 1000))
CASE(pthread_kill, "the library's own", pthread_kill(pthread_self(), 33))
CASE(pthread_kill, "itself", pthread_kill(pthread_self(), SIGUSR1))
CASE(pthread_kill, "ended", pthread_kill(ended(NULL), SIGUSR1))
CASE_PENDING(pthread_kill, "cancelled before", pthread_kill(pthread_self(), 0))

static long queued(pthread_t thread, int signal)
{
	return pthread_sigqueue(thread, signal, (union sigval){.sival_int = 7});
}

CASE(pthread_sigqueue, "signal 0", queued(sleeper(), 0))
CASE(pthread_sigqueue, "no signal", queued(pthread_self(), 1000))
CASE(pthread_sigqueue, "the library's own", queued(pthread_self(), 33))
CASE(pthread_sigqueue, "itself", queued(pthread_self(), SIGUSR1))

static long name_of(pthread_t thread, const char *name)
{
	char now[32] = "";
	int result = pthread_setname_np(thread, name);

	return result ? result : both(pthread_getname_np(thread, now, sizeof(now)), strcmp(now, name) != 0);
}

CASE(pthread_setname_np, "itself", name_of(pthread_self(), "a name"))
CASE(pthread_setname_np, "another", name_of(sleeper(), "another"))
CASE(pthread_setname_np, "longest", name_of(pthread_self(), "fifteen letters"))
CASE(pthread_setname_np, "too long", name_of(pthread_self(), "sixteen letters!"))
CASE(pthread_setname_np, "empty", name_of(pthread_self(), ""))

/* ------------------------------------------------------------ priorities */

static long scheduled(pthread_t thread, int policy, int priority)
{
	struct sched_param param = {.sched_priority = priority};

	return pthread_setschedparam(thread, policy, &param);
}

static long scheduled_process(pid_t pid, int policy, int priority)
{
	struct sched_param param = {.sched_priority = priority};

	return sched_setscheduler(pid, policy, &param);
}

static long given_priority(pid_t pid, int priority)
{
	struct sched_param param = {.sched_priority = priority};

	return sched_setparam(pid, &param);
}

CASE(sched_setparam, "itself", given_priority(0, 0))
CASE(sched_setparam, "no priority of it", given_priority(0, 1))
CASE(sched_setparam, "no process", given_priority(-1, 0))
CASE(pthread_setschedparam, "ordinary", scheduled(pthread_self(), SCHED_OTHER, 0))
CASE(pthread_setschedparam, "another", scheduled(sleeper(), SCHED_OTHER, 0))
CASE(pthread_setschedparam, "no priority of it", scheduled(pthread_self(), SCHED_OTHER, 1))
CASE(pthread_setschedparam, "no policy", scheduled(pthread_self(), 1000, 0))
CASE(pthread_setschedprio, "ordinary", pthread_setschedprio(pthread_self(), 0))
CASE(pthread_setschedprio, "no priority of it", pthread_setschedprio(pthread_self(), 1))
CASE(sched_setscheduler, "itself", scheduled_process(0, SCHED_OTHER, 0))
CASE(sched_setscheduler, "no priority of it", scheduled_process(0, SCHED_OTHER, 1))
CASE(sched_setscheduler, "no process", scheduled_process(-1, SCHED_OTHER, 0))
