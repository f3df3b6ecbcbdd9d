/* SPDX-License-Identifier: MIT */
/* process.c - several processes: tracing by pid, exec, fork and spawn, privileges, and ends of every kind. */
#include "suite.h"

#include <grp.h>
#include <linux/sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../native/dead_owners.h"

#define NOBODY 65534

extern char **environ;

/* ------------------------------------------------------------ the other process */

/* Waits for a sign, records three numbers of type "one", and answers; repeats until there is no more sign. */
static int traced(struct child *parent, void *arg)
{
	trace_event_id_t one = type("one");
	uint64_t number = 0;

	(void)arg;
	notify(parent);
	while (notified(parent)) {
		emit_number(one, number++);
		emit_number(one, number++);
		emit_number(one, number++);
		notify(parent);
	}
	return 0;
}

/* The same in a program started by exec; it inherits the pipes. */
int suite_role(const char *name, char **args)
{
	struct child parent = {0, atoi(args[0]), atoi(args[1])};
	trace_event_id_t id;
	int i;

	if (strcmp(name, "late") == 0) { /* opens another name first: an exec renumbers types */
		posix_trace_eventid_open("another one", &id);
	}
	if (posix_trace_eventid_open("one", &id))
		return 3;
	notify(&parent);
	while (notified(&parent)) {
		for (i = 0; i < 3; i++)
			emit_number(id, (uint64_t)i);
		notify(&parent);
	}
	return 0;
}

static int exec_role(struct child *parent, void *name)
{
	char to[16], from[16];

	snprintf(to, sizeof(to), "%d", parent->to);
	snprintf(from, sizeof(from), "%d", parent->from);
	notify(parent);
	notified(parent);
	execl(self(), self(), "--role", (char *)name, to, from, (char *)NULL);
	return 4;
}

static void once(struct child *c)
{
	notify(c);
	NEED(notified(c));
}

static void finish(struct child *c)
{
	close(c->to);
	c->to = -1;
	EQ(status_of_child(c), 0);
}

/* ------------------------------------------------------------ another process */

CASE(a_running_process)
{
	struct child c = child(traced, NULL);
	char name[TRACE_EVENT_NAME_MAX + 1];
	trace_id_t trid;
	struct record r;
	int i;

	NEED(notified(&c)); /* the process exists and has opened its name */
	trid = stream_of(c.pid, NULL);
	once(&c);
	EQ(count_user(trid), 0); /* the stream is suspended */
	OK(posix_trace_start(trid));
	once(&c);
	for (i = 3; i < 6; i++) {
		NEED(next_user(trid, &r));
		EQ(number_of(&r), i);
		EQ(r.info.posix_pid, c.pid);
		CHECK(r.info.posix_prog_address != NULL);
	}
	CHECK(!next_user(trid, &r));
	OK(posix_trace_eventid_get_name(trid, r.info.posix_event_id, name));
	TEXT(name, "one");
	OK(posix_trace_stop(trid));
	once(&c);
	EQ(count_user(trid), 0);
	emit_number(type("one"), 1); /* this process is not traced */
	OK(posix_trace_start(trid));
	emit_number(type("one"), 1);
	EQ(count_user(trid), 0);
	OK(posix_trace_shutdown(trid));
	once(&c); /* the process goes on */
	finish(&c);
}

CASE(names_given_by_the_controller)
{
	trace_event_id_t id, one;
	struct child c = child(traced, NULL);
	trace_event_set_t set;
	trace_id_t trid;
	struct record r;

	type("only of this process"); /* has the number of the other process's first name */
	NEED(notified(&c));
	trid = stream_of(c.pid, NULL);
	OK(posix_trace_trid_eventid_open(trid, "one", &one)); /* the other process's name, not this process's */
	OK(posix_trace_trid_eventid_open(trid, "never opened there", &id));
	CHECK(!same_type(id, one));
	OK(posix_trace_eventset_empty(&set));
	OK(posix_trace_start(trid));
	once(&c);
	NEED(next_user(trid, &r));
	CHECK(same_type(r.info.posix_event_id, one));
	OK(posix_trace_eventset_add(one, &set));
	OK(posix_trace_set_filter(trid, &set, POSIX_TRACE_SET_EVENTSET));
	drain(trid);
	once(&c);
	EQ(count_user(trid), 0);
	finish(&c);
}

static void *wait_for_user(void *arg)
{
	trace_id_t trid = *(trace_id_t *)arg;
	static struct record r;

	do
		if (posix_trace_getnext_event(trid, &r.info, r.data, sizeof(r.data), &r.length, &r.unavailable))
			return NULL;
	while (is_system(r.info.posix_event_id));
	return &r;
}

CASE(reader_is_woken_by_another_process)
{
	struct child c = child(traced, NULL);
	trace_id_t trid;
	pthread_t t;
	void *r;

	NEED(notified(&c));
	trid = stream_of(c.pid, NULL);
	OK(posix_trace_start(trid));
	t = thread(wait_for_user, &trid);
	usleep(20000);
	once(&c);
	pthread_join(t, &r);
	NEED(r != NULL);
	EQ(((struct record *)r)->info.posix_pid, c.pid);
	finish(&c);
}

CASE(two_controllers_of_one_process)
{
	struct child c = child(traced, NULL);
	trace_id_t first, second;

	NEED(notified(&c));
	first = stream_of(c.pid, NULL);
	second = stream_of(c.pid, NULL);
	OK(posix_trace_start(first));
	once(&c);
	OK(posix_trace_start(second));
	once(&c);
	EQ(count_user(first), 6);
	EQ(count_user(second), 3);
	finish(&c);
}

CASE(a_program_without_the_library_can_be_traced)
{
	char *argv[] = {"sleep", "50", NULL};
	trace_id_t trid;
	pid_t pid;

	NEED(posix_spawnp(&pid, "sleep", NULL, NULL, argv, environ) == 0);
	OK(posix_trace_create(pid, NULL, &trid));
	OK(posix_trace_start(trid));
	EQ(count_user(trid), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EQ(count_user(trid), 0);
	OK(posix_trace_shutdown(trid));
}

/* ------------------------------------------------------------ who may trace whom */

static int trace_others(struct child *parent, void *arg)
{
	pid_t *pids = arg; /* a process of root, an ended process; and a descriptor of a file */
	struct child own;
	trace_id_t trid;

	(void)parent;
	NEED(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	FAILS(EPERM, posix_trace_create(pids[0], NULL, &trid));
	FAILS(EPERM, posix_trace_create(1, NULL, &trid));
	FAILS(EPERM, posix_trace_create_withlog(pids[0], NULL, pids[2], &trid));
	FAILS(ESRCH, posix_trace_create(pids[1], NULL, &trid));
	/* itself, and a process of the same user */
	trid = started(NULL);
	emit_number(type("one"), 1);
	EQ(count_user(trid), 1);
	OK(posix_trace_shutdown(trid));
	own = child(traced, NULL);
	NEED(notified(&own));
	trid = stream_of(own.pid, NULL);
	OK(posix_trace_start(trid));
	once(&own);
	EQ(count_user(trid), 3);
	finish(&own);
	return 0;
}

CASE(processes_of_others)
{
	struct child c = child(traced, NULL), other;
	pid_t pids[3];

	if (geteuid())
		suite_skip("only root has processes of others");
	NEED(notified(&c));
	pids[0] = c.pid;
	pids[1] = dead_pid();
	pids[2] = scratch_file(O_RDWR);
	other = child(trace_others, pids);
	EQ(status_of_child(&other), 0);
	once(&c);
	finish(&c);
}

static int traced_as_nobody(struct child *parent, void *arg)
{
	NEED(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	return traced(parent, arg);
}

CASE(root_traces_anybody)
{
	struct child c;
	trace_id_t trid;

	if (geteuid())
		suite_skip("not root");
	c = child(traced_as_nobody, NULL);
	NEED(notified(&c));
	trid = stream_of(c.pid, NULL);
	OK(posix_trace_start(trid));
	once(&c);
	EQ(count_user(trid), 3);
	OK(posix_trace_shutdown(trid));
	once(&c);
	finish(&c);
}

/* ------------------------------------------------------------ exec */

CASE(tracing_goes_on_after_exec)
{
	struct child c = child(exec_role, "traced");
	char name[TRACE_EVENT_NAME_MAX + 1];
	trace_id_t trid;
	struct record r;
	int i;

	NEED(notified(&c));
	trid = stream_of(c.pid, NULL); /* before the exec, as a debugger does */
	OK(posix_trace_start(trid));
	once(&c); /* the process has gone through exec */
	EQ(status_of(trid).posix_stream_status, POSIX_TRACE_RUNNING);
	once(&c);
	for (i = 0; i < 3; i++) {
		NEED(next_user(trid, &r));
		EQ(number_of(&r), i);
		EQ(r.info.posix_pid, c.pid);
	}
	OK(posix_trace_eventid_get_name(trid, r.info.posix_event_id, name));
	TEXT(name, "one");
	finish(&c);
}

static int exec_traced(struct child *parent, void *name)
{
	type("one"); /* the first name of all */
	type("not opened again");
	return exec_role(parent, name);
}

CASE(names_outlive_the_process)
{
	struct child c = child(exec_role, "traced");
	char name[TRACE_EVENT_NAME_MAX + 1];
	trace_id_t trid;
	struct record r;

	NEED(notified(&c));
	trid = stream_of(c.pid, NULL);
	OK(posix_trace_start(trid));
	once(&c);
	once(&c);
	finish(&c);
	NEED(next_user(trid, &r));
	OK(posix_trace_eventid_get_name(trid, r.info.posix_event_id, name));
	TEXT(name, "one");
}

CASE(names_are_forgotten_by_exec)
{
	struct child c = child(exec_traced, "late");
	char name[TRACE_EVENT_NAME_MAX + 1];
	trace_id_t trid;
	struct record r;

	NEED(notified(&c));
	trid = stream_of(c.pid, NULL);
	OK(posix_trace_start(trid));
	once(&c);
	once(&c);
	NEED(next_user(trid, &r));
	OK(posix_trace_eventid_get_name(trid, r.info.posix_event_id, name));
	TEXT(name, "one"); /* whatever number the name has now */
	finish(&c);
}

/* ------------------------------------------------------------ fork and spawn */

static int emit_own(struct child *parent, void *number)
{
	trace_event_id_t id = type("one");

	(void)parent;
	emit_number(id, (uint64_t)(uintptr_t)number);
	emit_number(type("opened by the child"), (uint64_t)(uintptr_t)number);
	return 0;
}

static trace_id_t inheriting(int policy)
{
	trace_attr_t attr;
	trace_id_t trid;

	NEED(posix_trace_attr_init(&attr) == 0);
	OK(posix_trace_attr_setinherited(&attr, policy));
	trid = started(&attr);
	posix_trace_attr_destroy(&attr);
	return trid;
}

CASE(children_are_traced_if_the_stream_is_inherited)
{
	trace_id_t yes = inheriting(POSIX_TRACE_INHERITED), no = inheriting(POSIX_TRACE_CLOSE_FOR_CHILD);
	char name[TRACE_EVENT_NAME_MAX + 1];
	struct record r;
	struct child c;

	emit_number(type("one"), 1);
	c = child(emit_own, (void *)2);
	EQ(status_of_child(&c), 0);
	emit_number(type("one"), 3);
	NEED(next_user(yes, &r));
	EQ(number_of(&r), 1);
	EQ(r.info.posix_pid, getpid());
	NEED(next_user(yes, &r));
	EQ(number_of(&r), 2);
	EQ(r.info.posix_pid, c.pid);
	OK(posix_trace_eventid_get_name(yes, r.info.posix_event_id, name));
	TEXT(name, "one"); /* the child has inherited the names */
	NEED(next_user(yes, &r));
	OK(posix_trace_eventid_get_name(yes, r.info.posix_event_id, name));
	TEXT(name, "opened by the child");
	NEED(next_user(yes, &r));
	EQ(number_of(&r), 3);
	EQ(r.info.posix_pid, getpid());
	CHECK(!next_user(yes, &r));
	EQ(count_user(no), 2); /* of the parent only, which goes on */
	OK(posix_trace_shutdown(yes));
	OK(posix_trace_shutdown(no));
}

static int has_child(struct child *parent, void *number)
{
	struct child c = child(emit_own, number);

	(void)parent;
	return status_of_child(&c);
}

CASE(grandchildren_are_traced_too)
{
	trace_id_t trid = inheriting(POSIX_TRACE_INHERITED);
	struct child c = child(has_child, (void *)1);

	EQ(status_of_child(&c), 0);
	EQ(count_user(trid), 2);
}

CASE(children_of_another_process)
{
	struct child c = child(exec_role, "traced");
	trace_attr_t attr;
	trace_id_t trid;

	NEED(posix_trace_attr_init(&attr) == 0);
	OK(posix_trace_attr_setinherited(&attr, POSIX_TRACE_INHERITED));
	NEED(notified(&c));
	trid = stream_of(c.pid, &attr);
	OK(posix_trace_start(trid));
	once(&c);
	once(&c);
	EQ(count_user(trid), 3);
	finish(&c);
}

static void spawned(int policy, int expected)
{
	int down[2], up[2];
	char to[16], from[16];
	char *argv[] = {(char *)self(), "--role", "traced", to, from, NULL};
	trace_id_t trid = inheriting(policy);
	struct child c;

	NEED(pipe(down) == 0 && pipe(up) == 0);
	snprintf(to, sizeof(to), "%d", up[1]);
	snprintf(from, sizeof(from), "%d", down[0]);
	fcntl(down[1], F_SETFD, FD_CLOEXEC);
	NEED(posix_spawn(&c.pid, self(), NULL, NULL, argv, environ) == 0);
	close(up[1]);
	close(down[0]);
	c.to = down[1];
	c.from = up[0];
	NEED(notified(&c));
	once(&c);
	EQ(count_user(trid), expected);
	finish(&c);
	OK(posix_trace_shutdown(trid));
}

CASE(spawned_processes)
{
	spawned(POSIX_TRACE_INHERITED, 3);
	spawned(POSIX_TRACE_CLOSE_FOR_CHILD, 0);
}

CASE(vfork_and_exec)
{
	trace_id_t trid = inheriting(POSIX_TRACE_INHERITED);
	trace_event_id_t one = type("one");
	int status;
	pid_t pid;

	emit_number(one, 1);
	pid = vfork();
	if (pid == 0) {
		execlp("true", "true", (char *)NULL);
		_exit(1);
	}
	NEED(pid > 0);
	waitpid(pid, &status, 0);
	EQ(status, 0);
	emit_number(one, 2);
	EQ(count_user(trid), 2);
}

static void *emit_for_long(void *stop)
{
	trace_event_id_t one = type("one");

	while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE))
		emit_number(one, 1);
	return NULL;
}

CASE(fork_while_other_threads_write)
{
	trace_id_t trid = inheriting(POSIX_TRACE_INHERITED);
	int i, stop = 0, good = 0, rounds = thorough() ? 30 : 5;
	pthread_t threads[2];

	for (i = 0; i < 2; i++)
		threads[i] = thread(emit_for_long, &stop);
	for (i = 0; i < rounds; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			trace_event_id_t id;

			alarm(120);
			posix_trace_eventid_open("one", &id);
			emit_number(id, 1);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		good += status == 0;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < 2; i++)
		join(threads[i]);
	EQ(good, rounds);
	OK(posix_trace_shutdown(trid));
}

/* ------------------------------------------------------------ ends of controllers */

enum end { BY_EXIT, BY__EXIT, BY_ABORT, BY_KILL };

#ifdef __SANITIZE_THREAD__
#define HEIR false /* the process that would write the rest does not work with ThreadSanitizer */
#else
#define HEIR dead_owners_are_marked()
#endif

struct control {
	pid_t pid;
	int fd;
	enum end end;
};

static int controls(struct child *parent, void *arg)
{
	struct control *control = arg;
	struct posix_trace_status_info is;
	trace_id_t trid;

	NEED(posix_trace_create_withlog(control->pid, NULL, control->fd, &trid) == 0);
	OK(posix_trace_start(trid));
	notify(parent);
	notified(parent); /* some event has been recorded */
	OK(posix_trace_flush(trid));
	do
		is = status_of(trid);
	while (is.posix_stream_flush_status == POSIX_TRACE_FLUSHING && usleep(1000) == 0);
	notify(parent);
	notified(parent);
	switch (control->end) {
	case BY_EXIT:
		exit(0);
	case BY__EXIT:
		_exit(0);
	case BY_ABORT:
		signal(SIGABRT, SIG_DFL);
		prctl(PR_SET_DUMPABLE, 0);
		abort();
	case BY_KILL:
		raise(SIGKILL);
	}
	return 1;
}

static uint64_t logged_events(void)
{
	int fd = open(scratch_path(), O_RDONLY);
	uint64_t n = 0;
	trace_id_t log;
	struct record r;

	if (!OK(posix_trace_open(fd, &log)))
		return 0;
	while (next_logged(log, &r)) {
		if (is_system(r.info.posix_event_id))
			continue;
		EQ(number_of(&r), n);
		n++;
	}
	OK(posix_trace_close(log));
	close(fd);
	return n;
}

static void controller_ends(enum end end)
{
	struct child c = child(traced, NULL), controller;
	struct control control = {.pid = c.pid, .end = end};
	trace_id_t trid;
	uint64_t n;

	NEED(notified(&c));
	control.fd = scratch_file(O_RDWR);
	controller = child(controls, &control);
	NEED(notified(&controller));
	once(&c);
	once(&controller);
	once(&c); /* after the flush */
	notify(&controller);
	status_of_child(&controller);
	once(&c); /* the traced process goes on */
	n = logged_events();
	EQ(n, HEIR || end == BY_EXIT ? 6 : 3); /* as after a shutdown: also events that were not flushed */
	/* and another process may trace the process */
	trid = stream_of(c.pid, NULL);
	OK(posix_trace_start(trid));
	once(&c);
	EQ(count_user(trid), 3);
	finish(&c);
}

CASE(controller_exits)
{
	controller_ends(BY_EXIT);
}

CASE(controller_exits_at_once)
{
	controller_ends(BY__EXIT);
}

CASE(controller_aborts)
{
	controller_ends(BY_ABORT);
}

CASE(controller_is_killed)
{
	controller_ends(BY_KILL);
}

static int logs_itself(struct child *parent, void *fd)
{
	trace_event_id_t one = type("one");
	trace_id_t trid;

	NEED(posix_trace_create_withlog(0, NULL, *(int *)fd, &trid) == 0);
	OK(posix_trace_start(trid));
	emit_number(one, 0);
	OK(posix_trace_flush(trid));
	emit_number(one, 1);
	notify(parent);
	raise(SIGKILL);
	return 1;
}

/* However soon the test looks. */
CASE(logs_of_killed_controllers_are_whole)
{
	int round, rounds = thorough() ? 40 : 3;

	for (round = 0; round < rounds; round++) {
		int fd = scratch_file(O_RDWR);
		struct child c = child(logs_itself, &fd);

		NEED(notified(&c));
		EQ(status_of_child(&c), -SIGKILL);
		if (HEIR)
			EQ(logged_events(), 2);
		close(fd);
	}
}

static int controller_execs(struct child *parent, void *arg)
{
	struct control *control = arg;
	trace_id_t trid;

	NEED(posix_trace_create_withlog(control->pid, NULL, control->fd, &trid) == 0);
	OK(posix_trace_start(trid));
	notify(parent);
	notified(parent);
	execlp("true", "true", (char *)NULL);
	return 4;
}

CASE(controller_execs_something_else)
{
	struct child c = child(traced, NULL), controller;
	struct control control = {.pid = c.pid, .fd = scratch_file(O_RDWR)};
	uint64_t n;

	NEED(notified(&c));
	controller = child(controller_execs, &control);
	NEED(notified(&controller));
	once(&c);
	notify(&controller);
	EQ(status_of_child(&controller), 0);
	once(&c);
	n = logged_events();
	EQ(n, HEIR ? 3 : 0); /* as after a shutdown, and no later event */
	finish(&c);
}

static int has_stream(struct child *parent, void *how)
{
	trace_id_t trid;

	(void)parent;
	if (posix_trace_create(0, NULL, &trid))
		return 1;
	posix_trace_start(trid);
	emit_number(type("one"), 1);
	if (how)
		raise(SIGKILL);
	_exit(0);
}

CASE(places_of_dead_processes_are_reused)
{
	int i, failed = 0;

	for (i = 0; i < TRACE_SYS_MAX + 8; i++) {
		struct child c = child(has_stream, (void *)(intptr_t)(i % 2));

		failed += status_of_child(&c) == 1;
	}
	EQ(failed, 0);
}

/* ------------------------------------------------------------ ends of traced processes */

CASE(traced_process_is_killed)
{
	trace_id_t trid;
	struct child c;
	struct record r;
	int n = 0;

	c = child(traced, NULL);
	NEED(notified(&c));
	trid = stream_of(c.pid, NULL);
	OK(posix_trace_start(trid));
	once(&c);
	forget_child(&c);
	while (next_user(trid, &r))
		n++;
	EQ(n, 3);
	CHECK(status_of(trid).posix_stream_status == POSIX_TRACE_RUNNING ||
	      status_of(trid).posix_stream_status == POSIX_TRACE_SUSPENDED);
	OK(posix_trace_stop(trid));
	OK(posix_trace_shutdown(trid));
	FAILS(ESRCH, posix_trace_create(c.pid, NULL, &trid));
}

static int write_until_killed(struct child *parent, void *arg)
{
	static char data[100];
	trace_event_id_t one = type("one");

	(void)arg;
	notify(parent);
	notified(parent);
	notify(parent);
	while (data[0] == 0)
		posix_trace_event(one, data, sizeof(data));
	return 0;
}

/* Killed at any moment, also in the middle of a record: no other process has to wait. */
CASE(killed_while_it_writes)
{
	int round, rounds = thorough() ? 20 : 3;
	trace_event_id_t mine = type("mine");

	for (round = 0; round < rounds; round++) {
		struct child c = child(write_until_killed, NULL);
		trace_id_t trid;
		struct record r;
		int i, n = 0;

		NEED(notified(&c));
		trid = stream_of(c.pid, attributes(POSIX_TRACE_LOOP, 200, 100));
		OK(posix_trace_start(trid));
		once(&c);
		while (!next_user(trid, &r))
			;
		for (i = 0; i < round * 10; i++)
			next_of(trid, &r);
		forget_child(&c);
		while (next_of(trid, &r) && n < 100000)
			n++;
		CHECK(n < 100000);
		OK(posix_trace_stop(trid));
		OK(posix_trace_shutdown(trid));
	}
	emit_number(mine, 1);
}

/* ------------------------------------------------------------ a process that reuses another process's number */

static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

CASE(a_process_number_is_reused)
{
	struct child c = child(traced, NULL);
	trace_id_t trid, later;
	int status;
	pid_t pid;

	NEED(notified(&c));
	trid = stream_of(c.pid, NULL);
	OK(posix_trace_start(trid));
	once(&c);
	finish(&c);
	usleep(20000); /* the kernel tells processes apart by their start, in hundredths of a second */
	pid = fork_as(c.pid);
	if (pid == 0) {
		int in[2], out[2];
		char a[16], b[16];

		if (pipe(in) || pipe(out))
			_exit(1);
		snprintf(a, sizeof(a), "%d", out[1]);
		snprintf(b, sizeof(b), "%d", in[0]);
		if (write(in[1], "x", 1) != 1)
			_exit(1);
		close(in[1]);
		execl(self(), self(), "--role", "traced", a, b, (char *)NULL);
		_exit(1);
	}
	if (pid < 0)
		suite_skip("no process can be given a number here");
	EQ(pid, c.pid);
	waitpid(pid, &status, 0);
	EQ(status, 0);
	EQ(count_user(trid), 3); /* of the first process only */
	OK(posix_trace_shutdown(trid));
	FAILS(ESRCH, posix_trace_create(pid, NULL, &later));
}
