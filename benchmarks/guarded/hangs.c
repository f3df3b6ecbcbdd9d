// SPDX-License-Identifier: MIT
/*
 * Programs that hang, one for each argument.
 *
 * `case NAME: KIND|KIND` below lists the findings that are right. `hangs: NAME [OBJECT]` ends each
 * line where a thread of that program hangs, with the name of the object that the thread waits for.
 * The kind `after` means that the program only waits for work, as far as PTT knows: the report comes
 * at the end of a time, without a finding.
 *
 * case mutexes: deadlock
 * case three: deadlock
 * case four: deadlock
 * case self: self-deadlock
 * case upgrade: stuck|self-deadlock
 * case table: deadlock
 * case missed: stuck
 * case nobody: stuck
 * case semaphores: stuck
 * case barrier: stuck
 * case joins: deadlock
 * case pipes: deadlock|stuck
 * case fork: deadlock
 * case ended: exit-holding-lock
 * case pool: stuck
 * case held: stuck
 * case once: deadlock
 * case shared: deadlock
 * case eof: stuck
 * case talk: deadlock|stuck
 * case files: deadlock
 * case handler: self-deadlock|deadlock
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER,
		       upper = PTHREAD_MUTEX_INITIALIZER, lower = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t meeting, all;
static sem_t ping, pong;
static pthread_once_t fonts = PTHREAD_ONCE_INIT, colours = PTHREAD_ONCE_INIT;
static pthread_t threads[8];
static int is_ready, jobs, results;

static void *left_right(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&left);
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(&right); // hangs: mutexes right; hangs: three right; hangs: four right
	return NULL;
}

static void *right_left(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&right);
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(&left); // hangs: mutexes left
	return NULL;
}

static void *right_upper(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&right);
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(&upper); // hangs: three upper; hangs: four upper
	return NULL;
}

static void *upper_left(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&upper);
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(&left); // hangs: three left
	return NULL;
}

static void *upper_lower(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&upper);
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(&lower); // hangs: four lower
	return NULL;
}

static void *lower_left(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lower);
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(&left); // hangs: four left
	return NULL;
}

static void begin(int number, void *(*run)(void *))
{
	pthread_create(&threads[number], NULL, run, NULL);
}

static void join(int count)
{
	for (int n = 0; n < count; n++)
		pthread_join(threads[n], NULL);
}

static void mutexes(void)
{
	pthread_barrier_init(&meeting, NULL, 2);
	begin(0, left_right);
	begin(1, right_left);
	join(2);
}

static void three(void)
{
	pthread_barrier_init(&meeting, NULL, 3);
	begin(0, left_right);
	begin(1, right_upper);
	begin(2, upper_left);
	join(3);
}

static void four(void)
{
	pthread_barrier_init(&meeting, NULL, 4);
	begin(0, left_right);
	begin(1, right_upper);
	begin(2, upper_lower);
	begin(3, lower_left);
	join(4);
}

static void self(void)
{
	pthread_mutex_lock(&left);
	pthread_mutex_lock(&left); // hangs: self left
}

static void upgrade(void)
{
	pthread_rwlock_rdlock(&table);
	pthread_rwlock_wrlock(&table); // hangs: upgrade table
}

static void *writes_then_locks(void *unused)
{
	(void)unused;
	pthread_rwlock_wrlock(&table);
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(&left); // hangs: table left
	return NULL;
}

static void *locks_then_reads(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&left);
	pthread_barrier_wait(&meeting);
	pthread_rwlock_rdlock(&table); // hangs: table table
	return NULL;
}

static void table_and_mutex(void)
{
	pthread_barrier_init(&meeting, NULL, 2);
	begin(0, writes_then_locks);
	begin(1, locks_then_reads);
	join(2);
}

/* The flag is read without the mutex, and the signal comes before the wait. */
static void *signals_early(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&meeting);
	is_ready = 1;
	pthread_cond_signal(&ready);
	pthread_barrier_wait(&meeting);
	return NULL;
}

static void missed(void)
{
	pthread_barrier_init(&meeting, NULL, 2);
	begin(0, signals_early);
	int seen = is_ready;
	pthread_barrier_wait(&meeting);
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(&left);
	if (!seen)
		pthread_cond_wait(&ready, &left); // hangs: missed ready
	pthread_mutex_unlock(&left);
}

static void *waits_for_ready(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&left);
	while (!is_ready)
		pthread_cond_wait(&ready, &left); // hangs: nobody ready; hangs: held ready
	pthread_mutex_unlock(&left);
	return NULL;
}

static void nobody(void)
{
	begin(0, waits_for_ready);
	begin(1, waits_for_ready);
	join(2);
}

static void *ping_then_pong(void *unused)
{
	(void)unused;
	sem_wait(&ping); // hangs: semaphores ping
	sem_post(&pong);
	return NULL;
}

static void *pong_then_ping(void *unused)
{
	(void)unused;
	sem_wait(&pong); // hangs: semaphores pong
	sem_post(&ping);
	return NULL;
}

static void semaphores(void)
{
	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	begin(0, ping_then_pong);
	begin(1, pong_then_ping);
	join(2);
}

static void *meets(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&all); // hangs: barrier all
	return NULL;
}

static void barrier(void)
{
	pthread_barrier_init(&all, NULL, 4);
	for (int n = 0; n < 3; n++)
		begin(n, meets);
	join(3);
}

static void *joins_next(void *unused)
{
	long own = (long)unused;
	pthread_barrier_wait(&meeting);
	pthread_join(threads[(own + 1) % 3], NULL); // hangs: joins
	return NULL;
}

static void joins(void)
{
	pthread_barrier_init(&meeting, NULL, 4);
	for (long n = 0; n < 3; n++)
		pthread_create(&threads[n], NULL, joins_next, (void *)n);
	pthread_barrier_wait(&meeting);
	pthread_exit(NULL);
}

static void fill(int fd)
{
	static char data[1 << 20];

	if (write(fd, data, sizeof(data)) < 0) // hangs: pipes
		exit(1);
}

static void pipes(void)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		exit(1);
	if (fork()) {
		close(to[0]);
		close(from[1]);
		fill(to[1]);
	} else {
		close(to[1]);
		close(from[0]);
		fill(from[1]);
	}
}

static void *holds_left(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&left);
	pthread_barrier_wait(&meeting);
	for (;;)
		pause();
	return NULL;
}

static void forked(void)
{
	pthread_barrier_init(&meeting, NULL, 2);
	begin(0, holds_left);
	pthread_barrier_wait(&meeting);
	if (fork() == 0) {
		pthread_mutex_lock(&left); // hangs: fork left
		_exit(0);
	}
	wait(NULL);
}

static void *ends_with_left(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&left);
	return NULL;
}

static void ended(void)
{
	begin(0, ends_with_left);
	join(1);
	pthread_mutex_lock(&left); // hangs: ended left
}

/* Each job of the pool waits for the result of a job that no thread of the pool can begin. */
static void *works(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&left);
	while (!jobs)
		pthread_cond_wait(&ready, &left);
	jobs--;
	jobs++;
	pthread_cond_signal(&ready);
	while (!results)
		pthread_cond_wait(&done, &left); // hangs: pool done
	pthread_mutex_unlock(&left);
	return NULL;
}

static void pool(void)
{
	for (int n = 0; n < 4; n++)
		begin(n, works);
	pthread_mutex_lock(&left);
	jobs = 4;
	pthread_cond_broadcast(&ready);
	pthread_mutex_unlock(&left);
	join(4);
}

/* The thread that must signal needs a mutex of the thread that waits. */
static void *waits_with_right(void *unused)
{
	pthread_mutex_lock(&right);
	pthread_barrier_wait(&meeting);
	return waits_for_ready(unused);
}

static void *signals_with_right(void *unused)
{
	pthread_barrier_wait(&meeting);
	pthread_mutex_lock(&right); // hangs: held right
	is_ready = 1;
	pthread_cond_signal(&ready);
	return unused;
}

static void held(void)
{
	pthread_barrier_init(&meeting, NULL, 2);
	begin(0, waits_with_right);
	begin(1, signals_with_right);
	join(2);
}

static void nothing(void)
{
}

static void load_fonts(void)
{
	pthread_barrier_wait(&meeting);
	pthread_once(&colours, nothing); // hangs: once colours
}

static void load_colours(void)
{
	pthread_barrier_wait(&meeting);
	pthread_once(&fonts, nothing); // hangs: once fonts
}

static void *needs_fonts(void *unused)
{
	pthread_once(&fonts, load_fonts);
	return unused;
}

static void *needs_colours(void *unused)
{
	pthread_once(&colours, load_colours);
	return unused;
}

static void once(void)
{
	pthread_barrier_init(&meeting, NULL, 2);
	begin(0, needs_fonts);
	begin(1, needs_colours);
	join(2);
}

static void shared(void)
{
	pthread_mutexattr_t for_all;
	pthread_barrierattr_t barrier_for_all;
	struct {
		pthread_mutex_t first, second;
		pthread_barrier_t meeting;
	} *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	pthread_mutexattr_init(&for_all);
	pthread_mutexattr_setpshared(&for_all, PTHREAD_PROCESS_SHARED);
	pthread_barrierattr_init(&barrier_for_all);
	pthread_barrierattr_setpshared(&barrier_for_all, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&memory->first, &for_all);
	pthread_mutex_init(&memory->second, &for_all);
	pthread_barrier_init(&memory->meeting, &barrier_for_all, 2);
	if (fork()) {
		pthread_mutex_lock(&memory->first);
		pthread_barrier_wait(&memory->meeting);
		pthread_mutex_lock(&memory->second); // hangs: shared
	} else {
		pthread_mutex_lock(&memory->second);
		pthread_barrier_wait(&memory->meeting);
		pthread_mutex_lock(&memory->first); // hangs: shared
	}
}

/* The reader has kept the end to write, so the pipe never ends. */
static void eof(void)
{
	char byte;
	int fds[2];

	if (pipe(fds))
		exit(1);
	if (fork() == 0)
		_exit(write(fds[1], "x", 1) != 1);
	wait(NULL);
	while (read(fds[0], &byte, 1) > 0) // hangs: eof
		;
}

static void listen_to(int fd)
{
	char byte;

	if (read(fd, &byte, 1) < 0) // hangs: talk
		exit(1);
}

static void talk(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		exit(1);
	int child = fork() == 0;
	close(fds[!child]);
	listen_to(fds[child]);
}

static void files(void)
{
	char name[] = "/tmp/guardedXXXXXX", other[] = "/tmp/guardedXXXXXX";
	int fds[2];

	if (pipe(fds) || mkstemp(name) < 0 || mkstemp(other) < 0)
		exit(1);
	/* the parent has its lock before the child asks for it */
	int parents = open(other, O_RDWR);
	flock(parents, LOCK_EX);
	int child = fork() == 0;
	int second = open(child ? other : name, O_RDWR);
	if (child) {
		close(parents); /* the lock stays with the parent */
		flock(open(name, O_RDWR), LOCK_EX);
		close(fds[0]);
		close(fds[1]);
	} else {
		char byte;

		close(fds[1]);
		if (read(fds[0], &byte, 1) < 0)
			exit(1);
		close(fds[0]);
		unlink(name);
		unlink(other);
	}
	flock(second, LOCK_EX); // hangs: files
}

static void take_left(int signal)
{
	(void)signal;
	pthread_mutex_lock(&left); // hangs: handler left
}

static void handler(void)
{
	signal(SIGUSR1, take_left);
	pthread_mutex_lock(&left);
	raise(SIGUSR1);
}

static const struct {
	const char *name;
	void (*run)(void);
} CASES[] = {
	{ "mutexes", mutexes }, { "three", three },	  { "four", four },
	{ "self", self },	{ "upgrade", upgrade },	  { "table", table_and_mutex },
	{ "missed", missed },	{ "nobody", nobody },	  { "semaphores", semaphores },
	{ "barrier", barrier }, { "joins", joins },	  { "pipes", pipes },
	{ "fork", forked },	{ "ended", ended },	  { "pool", pool },
	{ "held", held },	{ "once", once },	  { "shared", shared },
	{ "eof", eof },		{ "talk", talk },	  { "files", files },
	{ "handler", handler },
};

int main(int count, char **arguments)
{
	for (unsigned n = 0; count > 1 && n < sizeof(CASES) / sizeof(CASES[0]); n++)
		if (!strcmp(arguments[1], CASES[n].name)) {
			CASES[n].run();
			return 0;
		}
	return 2;
}
