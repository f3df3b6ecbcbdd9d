/* SPDX-License-Identifier: MIT */
/* world.c - objects in every state, other threads and processes that hold the objects, and deadlines. */
#include "case.h"
#include "world.h"

#include <sys/mman.h>
#include <sys/wait.h>

static void must(int result, const char *what)
{
	if (result) {
		printf("cannot set the stage: %s: %d\n", what, result);
		exit(3);
	}
}

#define MUST(call) must(call, #call)

/* ------------------------------------------------------------ objects */

void *memory(size_t size)
{
	static char *next, *end;
	char *given;

	size = (size + 63) & ~(size_t)63;
	if (!next || next + size > end) {
		next = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		MUST(next == MAP_FAILED);
		end = next + (1 << 20);
	}
	given = next;
	next += size;
	return given;
}

pthread_mutex_t *mutex(int kind)
{
	pthread_mutex_t *made = memory(sizeof(*made));
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	MUST(pthread_mutexattr_settype(&attr, kind & 3));
	if (kind & ROBUST)
		MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	if (kind & SHARED)
		MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	if (kind & (INHERIT | PROTECT))
		MUST(pthread_mutexattr_setprotocol(&attr, kind & INHERIT ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_PROTECT));
	MUST(pthread_mutex_init(made, &attr));
	pthread_mutexattr_destroy(&attr);
	return made;
}

pthread_cond_t *cond(clockid_t clock)
{
	pthread_cond_t *made = memory(sizeof(*made));
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	MUST(pthread_condattr_setclock(&attr, clock));
	MUST(pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	MUST(pthread_cond_init(made, &attr));
	return made;
}

pthread_rwlock_t *rwlock(int preference)
{
	pthread_rwlock_t *made = memory(sizeof(*made));
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	MUST(pthread_rwlockattr_setkind_np(&attr, preference));
	MUST(pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	MUST(pthread_rwlock_init(made, &attr));
	return made;
}

pthread_barrier_t *barrier(unsigned int count)
{
	pthread_barrier_t *made = memory(sizeof(*made));
	pthread_barrierattr_t attr;

	pthread_barrierattr_init(&attr);
	MUST(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	MUST(pthread_barrier_init(made, &attr, count));
	return made;
}

pthread_spinlock_t *spin(void)
{
	pthread_spinlock_t *made = memory(sizeof(*made));

	MUST(pthread_spin_init(made, PTHREAD_PROCESS_SHARED));
	return made;
}

sem_t *sem(unsigned int value)
{
	sem_t *made = memory(sizeof(*made));

	MUST(sem_init(made, 1, value));
	return made;
}

/* ------------------------------------------------------------ other threads and processes */

#define HELPERS 8

struct helper {
	function *take, *give;
	void *object;
	long result;
	pthread_t thread;
	volatile pid_t tid;
	bool live;
	sem_t taken, go;
};

static struct helper helpers[HELPERS];
static struct helper *last;
static volatile int preparing; /* the case waits for a helper, and not yet for the tested routine */

static struct helper *new_helper(function *take, function *give, void *object)
{
	int i;

	for (i = 0; i < HELPERS && helpers[i].live; i++)
		;
	must(i == HELPERS, "helpers");
	helpers[i] = (struct helper){.take = take, .give = give, .object = object, .live = true};
	sem_init(&helpers[i].taken, 0, 0);
	sem_init(&helpers[i].go, 0, 0);
	return last = &helpers[i];
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) < 0)
		;
}

static void *help(void *arg)
{
	struct helper *helper = arg;

	helper->tid = gettid();
	if (!helper->give)
		sem_post(&helper->taken);
	helper->result = helper->take(helper->object);
	if (helper->give) {
		sem_post(&helper->taken);
		wait_for(&helper->go);
		helper->give(helper->object);
	}
	return NULL;
}

static void start_helper(function *take, function *give, void *object)
{
	struct helper *helper = new_helper(take, give, object);
	int before = errno, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	MUST(pthread_create(&helper->thread, NULL, help, helper));
	preparing = 1;
	wait_for(&helper->taken);
	preparing = 0;
	pthread_setcancelstate(state, NULL);
	errno = before;
}

/* Return whether the kernel says that a thread sleeps, or no longer exists. */
static bool sleeps(pid_t tid)
{
	char path[64], text[256];
	const char *state;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	state = strrchr(text, ')');
	return state && state[1] && state[2] == 'S';
}

bool blocks(pthread_t thread, pid_t tid)
{
	struct timespec used = {0, 0};
	clockid_t clock;

	if (preparing)
		return false;
	/* checked again, because the case may have waited for a helper until just now */
	if (sleeps(tid))
		return !preparing && sleeps(tid) && !preparing;
	/* a spinning thread has used more processor time than all else takes */
	return !pthread_getcpuclockid(thread, &clock) && !clock_gettime(clock, &used) &&
	       (used.tv_sec > 0 || used.tv_nsec > 20000000);
}

void until_it_waits(void)
{
	int before = errno;

	while (!last->tid || !sleeps(last->tid))
		nap(1);
	errno = before;
}

long elsewhere(function *what, void *object)
{
	meanwhile(what, object);
	return result_of_meanwhile();
}

void *meanwhile(function *what, void *object)
{
	start_helper(what, NULL, object);
	return object;
}

long result_of_meanwhile(void)
{
	struct helper *helper = last;
	int before = errno;

	pthread_join(helper->thread, NULL);
	helper->live = false;
	errno = before;
	return helper->result;
}

void *until_let_go(function *take, function *give, void *object)
{
	start_helper(take, give, object);
	return object;
}

void forget(void)
{
	int i;

	for (i = 0; i < HELPERS; i++)
		if (helpers[i].live) {
			pthread_join(helpers[i].thread, NULL);
			helpers[i].live = false;
		}
}

long child(function *what, void *object)
{
	int before = errno, status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit((int)what(object));
	while (waitpid(pid, &status, 0) < 0)
		;
	errno = before;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* ------------------------------------------------------------ states */

static long lock(void *object)
{
	return pthread_mutex_lock(object);
}

static long unlock(void *object)
{
	return pthread_mutex_unlock(object);
}

pthread_mutex_t *locked(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

pthread_mutex_t *held(pthread_mutex_t *mutex)
{
	return until_let_go(lock, unlock, mutex);
}

pthread_mutex_t *orphan(pthread_mutex_t *mutex)
{
	elsewhere(lock, mutex);
	return mutex;
}

pthread_mutex_t *lost(pthread_mutex_t *mutex)
{
	elsewhere(lock, mutex);
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return mutex;
}

static long read_lock(void *object)
{
	return pthread_rwlock_rdlock(object);
}

static long write_lock(void *object)
{
	return pthread_rwlock_wrlock(object);
}

static long rw_unlock(void *object)
{
	return pthread_rwlock_unlock(object);
}

pthread_rwlock_t *read_locked(pthread_rwlock_t *lock)
{
	MUST(pthread_rwlock_rdlock(lock));
	return lock;
}

pthread_rwlock_t *write_locked(pthread_rwlock_t *lock)
{
	MUST(pthread_rwlock_wrlock(lock));
	return lock;
}

pthread_rwlock_t *read_held(pthread_rwlock_t *lock)
{
	return until_let_go(read_lock, rw_unlock, lock);
}

pthread_rwlock_t *write_held(pthread_rwlock_t *lock)
{
	return until_let_go(write_lock, rw_unlock, lock);
}

static long spin_lock(void *object)
{
	return pthread_spin_lock(object);
}

static long spin_unlock(void *object)
{
	return pthread_spin_unlock(object);
}

pthread_spinlock_t *spin_held(pthread_spinlock_t *lock)
{
	return (pthread_spinlock_t *)until_let_go(spin_lock, spin_unlock, (void *)lock);
}

/* ------------------------------------------------------------ threads as objects */

#define SLEEPERS 64
static sem_t wake[SLEEPERS];
static int asleep;

static void *sleep_on(void *sem)
{
	while (sem_wait(sem) < 0)
		;
	pthread_testcancel(); /* cancelled before its wake-up, the thread may have its post all the same */
	return NULL;
}

static void *give_back(void *value)
{
	return value;
}

pthread_t sleeper(void)
{
	pthread_t thread;

	must(asleep == SLEEPERS, "sleepers");
	MUST(sem_init(&wake[asleep], 0, 0));
	MUST(pthread_create(&thread, NULL, sleep_on, &wake[asleep]));
	asleep++;
	return thread;
}

pthread_t ended(void *value)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, give_back, value));
	nap(3);
	return thread;
}

void let_go(void)
{
	int i;

	for (i = 0; i < HELPERS; i++)
		if (helpers[i].live && helpers[i].give)
			sem_post(&helpers[i].go);
	for (i = 0; i < asleep; i++)
		sem_post(&wake[i]);
}

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

pthread_t detached(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	MUST(pthread_create(&thread, &attr, wait_for_ever, NULL));
	return thread;
}

/* ------------------------------------------------------------ time */

static struct timespec *in_ms(clockid_t clock, long ms)
{
	struct timespec *t = memory(sizeof(*t));

	clock_gettime(clock, t);
	t->tv_nsec += ms % 1000 * 1000000;
	t->tv_sec += ms / 1000 + t->tv_nsec / 1000000000;
	t->tv_nsec %= 1000000000;
	return t;
}

const struct timespec *past(void)
{
	static const struct timespec t = {.tv_sec = 1};

	return &t;
}

const struct timespec *soon(clockid_t clock)
{
	return in_ms(clock, 20);
}

const struct timespec *later(clockid_t clock)
{
	return in_ms(clock, 30000);
}

const struct timespec *no_time(void)
{
	static const struct timespec t = {.tv_sec = 1, .tv_nsec = 1000000000};

	return &t;
}

const struct timespec *negative(void)
{
	static const struct timespec t = {.tv_sec = 1, .tv_nsec = -1};

	return &t;
}

const struct timespec *before_epoch(void)
{
	static const struct timespec t = {.tv_sec = -1};

	return &t;
}

void nap(int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	int before = errno;

	while (nanosleep(&t, &t) < 0)
		;
	errno = before;
}
