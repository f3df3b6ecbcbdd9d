/* SPDX-License-Identifier: MIT */
/* suite.c - runs the cases, one after the other, each in its own process; and helpers that the cases share. */
#include "suite.h"

#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>

/* Shared by the processes of a case. */
struct tally {
	unsigned int checks, failed;
	bool skipped;
};

static struct suite_case *cases;
static struct tally *tally;
static char scratch[64];
static int scratch_number;

void suite_add(struct suite_case *c)
{
	struct suite_case **at = &cases;

	while (*at && (*at)->line < c->line)
		at = &(*at)->next;
	c->next = *at;
	*at = c;
}

const char *error_name(int error)
{
	return error ? strerror(error) : "success";
}

bool suite_check(bool good, const char *file, int line, const char *format, ...)
{
	const char *base = strrchr(file, '/');
	char text[512];
	va_list args;

	__atomic_add_fetch(&tally->checks, 1, __ATOMIC_RELAXED);
	if (good)
		return true;
	__atomic_add_fetch(&tally->failed, 1, __ATOMIC_RELAXED);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	dprintf(STDOUT_FILENO, "    %s:%d: %s\n", base ? base + 1 : file, line, text);
	return false;
}

void suite_stop(void)
{
	_exit(1);
}

void suite_skip(const char *why)
{
	dprintf(STDOUT_FILENO, "    skipped: %s\n", why);
	tally->skipped = true;
	_exit(0);
}

/* ------------------------------------------------------------ running */

static void run_here(const struct suite_case *c)
{
	const char *limit = getenv("SUITE_SECONDS");

	setpgid(0, 0);
	alarm(limit ? (unsigned int)atoi(limit) : 240);
	c->run();
	exit(0);
}

static bool run_case(const struct suite_case *c)
{
	unsigned int checks = tally->checks, failed = tally->failed;
	const char *how = "ok";
	int status;
	pid_t pid;

	tally->skipped = false;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_here(c);
	waitpid(pid, &status, 0);
	kill(-pid, SIGKILL); /* all processes that the case left behind */
	if (WIFSIGNALED(status))
		printf("    ended by signal %d%s\n", WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ": it hung" : "");
	else if (WEXITSTATUS(status))
		printf("    exit status %d\n", WEXITSTATUS(status));
	if (status && tally->failed == failed)
		tally->failed++;
	if (tally->failed != failed)
		how = "FAILED";
	else if (tally->skipped)
		how = "skipped";
	printf("%s %s (%u checks)\n", how, c->name, tally->checks - checks);
	return tally->failed == failed;
}

static bool wanted(const struct suite_case *c, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (strcmp(*names, c->name) == 0)
			return true;
	return false;
}

/*
 * Streams are counted for all processes of a user. If permitted, the suite mounts its own directory for their meeting, so
 * that other suites at the same time do not disturb it. Then the suite starts again, as the library is already loaded.
 */
static void keep_apart(char **argv)
{
	if (getenv("SUITE_APART") || geteuid() || unshare(CLONE_NEWNS) ||
	    mount("none", "/", "none", MS_REC | MS_PRIVATE, "") || mount("none", "/dev/shm", "tmpfs", 0, "mode=1777"))
		return;
	setenv("SUITE_APART", "1", 1);
	execv(self(), argv);
	execv("/proc/self/exe", argv); /* after a change of root its path is another */
	umount2("/dev/shm", MNT_DETACH); /* under an emulator: the library has already used the directory below */
}

__attribute__((weak)) int suite_role(const char *name, char **args)
{
	(void)name;
	(void)args;
	return 2;
}

int main(int argc, char **argv)
{
	const char *place = getenv("TMPDIR");
	unsigned int ran = 0, bad = 0;
	struct suite_case *c;

	if (argc > 2 && strcmp(argv[1], "--role") == 0)
		return suite_role(argv[2], argv + 3);
	keep_apart(argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	snprintf(scratch, sizeof(scratch), "%s/suite-XXXXXX", place && strlen(place) < 40 ? place : "/tmp");
	if (tally == MAP_FAILED || !mkdtemp(scratch)) {
		perror("suite");
		return 2;
	}
	for (c = cases; c; c = c->next) {
		if (!wanted(c, argv + 1))
			continue;
		ran++;
		bad += !run_case(c);
	}
	for (scratch_number = 64; scratch_number >= 0; scratch_number--)
		remove(scratch_path());
	rmdir(scratch);
	printf("%u cases, %u checks, %u cases failed\n", ran, tally->checks, bad);
	return bad || !ran;
}

bool thorough(void)
{
	const char *quick = getenv("SUITE_QUICK");

	return !quick || !*quick;
}

/* ------------------------------------------------------------ streams */

trace_id_t stream_of(pid_t pid, const trace_attr_t *attr)
{
	trace_id_t trid;

	NEED(posix_trace_create(pid, attr, &trid) == 0);
	return trid;
}

trace_id_t started(const trace_attr_t *attr)
{
	trace_id_t trid = stream_of(0, attr);

	NEED(posix_trace_start(trid) == 0);
	return trid;
}

trace_event_id_t type(const char *name)
{
	trace_event_id_t id;

	NEED(posix_trace_eventid_open(name, &id) == 0);
	return id;
}

bool same_type(trace_event_id_t one, trace_event_id_t other)
{
	return memcmp(&one, &other, sizeof(one)) == 0;
}

struct posix_trace_status_info status_of(trace_id_t trid)
{
	struct posix_trace_status_info info;

	memset(&info, 0x55, sizeof(info));
	OK(posix_trace_get_status(trid, &info));
	return info;
}

trace_attr_t *attributes(int policy, size_t events, size_t data_len)
{
	static trace_attr_t attr;
	size_t one, system_one;

	NEED(posix_trace_attr_init(&attr) == 0);
	OK(posix_trace_attr_setstreamfullpolicy(&attr, policy));
	OK(posix_trace_attr_setmaxdatasize(&attr, data_len));
	OK(posix_trace_attr_getmaxusereventsize(&attr, data_len, &one));
	OK(posix_trace_attr_getmaxsystemeventsize(&attr, &system_one));
	/* and a start and a stop */
	OK(posix_trace_attr_setstreamsize(&attr, events * one + 2 * system_one));
	return &attr;
}

bool next_of(trace_id_t trid, struct record *r)
{
	r->unavailable = -1;
	r->length = SIZE_MAX;
	if (!OK(posix_trace_trygetnext_event(trid, &r->info, r->data, sizeof(r->data), &r->length, &r->unavailable)))
		return false;
	return !r->unavailable;
}

bool next_logged(trace_id_t log, struct record *r)
{
	r->unavailable = -1;
	r->length = SIZE_MAX;
	if (!OK(posix_trace_getnext_event(log, &r->info, r->data, sizeof(r->data), &r->length, &r->unavailable)))
		return false;
	return !r->unavailable;
}

bool is_system(trace_event_id_t id)
{
	const trace_event_id_t system_types[] = {
		POSIX_TRACE_ERROR,    POSIX_TRACE_START,  POSIX_TRACE_STOP,	   POSIX_TRACE_FILTER,
		POSIX_TRACE_OVERFLOW, POSIX_TRACE_RESUME, POSIX_TRACE_FLUSH_START, POSIX_TRACE_FLUSH_STOP,
	};
	size_t i;

	for (i = 0; i < sizeof(system_types) / sizeof(*system_types); i++)
		if (same_type(id, system_types[i]))
			return true;
	return false;
}

bool next_user(trace_id_t trid, struct record *r)
{
	while (next_of(trid, r))
		if (!is_system(r->info.posix_event_id))
			return true;
	return false;
}

int drain(trace_id_t trid)
{
	struct record r;
	int n = 0;

	while (next_of(trid, &r))
		n++;
	return n;
}

int count_user(trace_id_t trid)
{
	struct record r;
	int n = 0;

	while (next_user(trid, &r))
		n++;
	return n;
}

int count_type(trace_id_t trid, trace_event_id_t id)
{
	struct record r;
	int n = 0;

	while (next_of(trid, &r))
		n += same_type(r.info.posix_event_id, id);
	return n;
}

uint64_t number_of(const struct record *r)
{
	uint64_t number;

	memcpy(&number, r->data, sizeof(number));
	return number;
}

/* ------------------------------------------------------------ time, threads, processes, files */

long long ns_of(struct timespec t)
{
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

struct timespec after_ms(int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000L;
	if (t.tv_nsec >= 1000000000L) {
		t.tv_nsec -= 1000000000L;
		t.tv_sec++;
	}
	return t;
}

pthread_t thread(void *(*run)(void *), void *arg)
{
	pthread_t made;

	NEED(pthread_create(&made, NULL, run, arg) == 0);
	return made;
}

void join(pthread_t thread)
{
	pthread_join(thread, NULL);
}

struct child child(int (*run)(struct child *parent, void *arg), void *arg)
{
	int down[2], up[2];
	struct child c;
	pid_t pid;

	NEED(pipe(down) == 0 && pipe(up) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		struct child parent = {getppid(), up[1], down[0]};

		close(down[1]);
		close(up[0]);
		exit(run(&parent, arg));
	}
	close(down[0]);
	close(up[1]);
	c = (struct child){pid, down[1], up[0]};
	return c;
}

void notify(const struct child *other)
{
	while (write(other->to, "", 1) < 0 && errno == EINTR)
		;
}

bool notified(const struct child *other)
{
	ssize_t got;
	char c;

	do
		got = read(other->from, &c, 1);
	while (got < 0 && errno == EINTR);
	return got == 1;
}

int status_of_child(struct child *c)
{
	int status;

	while (waitpid(c->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	close(c->to);
	close(c->from);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void forget_child(struct child *c)
{
	kill(c->pid, SIGKILL);
	status_of_child(c);
}

pid_t dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

const char *self(void)
{
	static char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[length < 0 ? 0 : length] = '\0';
	return path;
}

const char *scratch_path(void)
{
	static char path[96];

	snprintf(path, sizeof(path), "%s/%d", scratch, scratch_number);
	return path;
}

int scratch_file(int flags)
{
	int fd;

	scratch_number++;
	unlink(scratch_path());
	fd = open(scratch_path(), flags | O_CREAT, 0600);
	NEED(fd >= 0);
	return fd;
}
