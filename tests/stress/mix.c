/* SPDX-License-Identifier: MIT */
/* mix.c - mix SECONDS THREADS SEED [LIBRARY]: everything at once, at random; checks its own invariants, and prints its counts.
   */
/*
 * Mutexes of all kinds, conditions, read-write locks, semaphores, barriers, spin locks, once, C11 threads, signal handlers that
 * post semaphores, cancellation, threads that come and go, children that are killed, dlopen of LIBRARY. The program counts the
 * work under each object twice, and the counts must agree. At the end it prints a line for each kind of event, with the number
 * of such events of this process. A trace must hold exactly as many.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* ThreadSanitizer does not know C11 threads and mutexes: it crashes on the threads and reports races on the mutexes. */
#ifdef __SANITIZE_THREAD__
#define WITH_C11 0
#else
#define WITH_C11 1
#endif

#define MUTEXES 8
#define CELLS 4

enum kind { MUTEX_FREE, RWLOCK_FREE, SPIN_FREE, SEM_POST, COND_SIGNAL, COND_BROADCAST, C11_FREE, KINDS };

static const char *const kind_names[KINDS] = {
	"MUTEX_FREE", "RWLOCK_FREE", "SPIN_FREE", "SEM_POST", "COND_SIGNAL", "COND_BROADCAST", "MTX_FREE",
};
static unsigned long did[KINDS];

static pthread_mutex_t mutex[MUTEXES];
static long guarded[MUTEXES], guarded_too[MUTEXES]; /* by the mutex, and atomically */
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long pair[2];
static pthread_spinlock_t spin;
static long spun;
static sem_t sem;
static mtx_t mtx;
static long c11_count;
static unsigned long c11_did;
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_cond = PTHREAD_COND_INITIALIZER;
static int queued;
static struct timespec deadline;
static const char *library;
static __thread volatile sig_atomic_t wants_signals;

static void note(enum kind kind)
{
	__atomic_fetch_add(&did[kind], 1, __ATOMIC_RELAXED);
}

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "mix: %s (errno %d)\n", what, errno);
	_exit(3);
}

static int is_over(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > deadline.tv_sec || (now.tv_sec == deadline.tv_sec && now.tv_nsec >= deadline.tv_nsec);
}

static struct timespec soon(clockid_t clock, long ns)
{
	struct timespec at;

	clock_gettime(clock, &at);
	at.tv_nsec += ns;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

static void on_signal(int number)
{
	int before = errno;

	(void)number;
	if (!wants_signals)
		return;
	must(!sem_post(&sem), "sem_post in a handler");
	note(SEM_POST);
	errno = before;
}

/* ------------------------------------------------------------ one thing after another */

static void unlock(unsigned int i)
{
	must(!pthread_mutex_unlock(&mutex[i]), "unlock");
	note(MUTEX_FREE);
}

static void use_mutex(unsigned int r)
{
	unsigned int i = r % MUTEXES, deep = i == 1 && r & 8192 ? 3 : 1, n;
	struct timespec at = soon(CLOCK_REALTIME, 20000);
	int err = 0;

	for (n = 0; n < deep; n++) {
		if (n)
			err = pthread_mutex_lock(&mutex[i]); /* recursive */
		else if (r & 512)
			err = pthread_mutex_lock(&mutex[i]);
		else if (r & 1024)
			err = pthread_mutex_trylock(&mutex[i]);
		else
			err = pthread_mutex_timedlock(&mutex[i], &at);
		if (err)
			break;
	}
	if (!n) {
		must(err == EBUSY || err == ETIMEDOUT, "lock");
		return;
	}
	guarded[i]++;
	__atomic_fetch_add(&guarded_too[i], 1, __ATOMIC_RELAXED);
	if (i == 2)
		must(pthread_mutex_lock(&mutex[2]) == EDEADLK, "error checking");
	while (n--)
		unlock(i);
}

static void use_rwlock(unsigned int r)
{
	if (r & 512) {
		if (r & 1024 ? pthread_rwlock_trywrlock(&rwlock) : pthread_rwlock_wrlock(&rwlock))
			return;
		pair[0]++;
		pair[1]++;
	} else {
		if (r & 1024 ? pthread_rwlock_tryrdlock(&rwlock) : pthread_rwlock_rdlock(&rwlock))
			return;
		must(pair[0] == pair[1], "a reader beside a writer");
	}
	must(!pthread_rwlock_unlock(&rwlock), "rwlock");
	note(RWLOCK_FREE);
}

static void use_spin(void)
{
	must(!pthread_spin_lock(&spin), "spin");
	spun++;
	must(!pthread_spin_unlock(&spin), "spin");
	note(SPIN_FREE);
}

static void use_sem(unsigned int r)
{
	struct timespec at = soon(CLOCK_REALTIME, 20000);

	if (r & 512) {
		must(!sem_post(&sem), "post");
		note(SEM_POST);
	} else if (r & 1024) {
		sem_trywait(&sem);
	} else {
		sem_timedwait(&sem, &at);
	}
}

static void use_queue(unsigned int r)
{
	struct timespec at = soon(CLOCK_REALTIME, 100000);

	must(!pthread_mutex_lock(&queue_mutex), "queue");
	if (r & 512) {
		queued++;
		if (r & 1024) {
			must(!pthread_cond_broadcast(&queue_cond), "broadcast");
			note(COND_BROADCAST);
		} else {
			must(!pthread_cond_signal(&queue_cond), "signal");
			note(COND_SIGNAL);
		}
	} else {
		while (!queued && !pthread_cond_timedwait(&queue_cond, &queue_mutex, &at))
			;
		queued -= queued > 0;
	}
	must(queued >= 0 && !pthread_mutex_unlock(&queue_mutex), "queue");
	note(MUTEX_FREE);
}

static void use_c11(void)
{
	must(mtx_lock(&mtx) == thrd_success, "mtx");
	c11_count++;
	must(mtx_unlock(&mtx) == thrd_success, "mtx");
	__atomic_fetch_add(&c11_did, 1, __ATOMIC_RELAXED);
	note(C11_FREE);
}

static void use_one(unsigned int r)
{
	switch (r >> 16 & 15) {
	case 0: use_rwlock(r); break;
	case 1: use_spin(); break;
	case 2: case 3: use_sem(r); break;
	case 4: case 5: use_queue(r); break;
	case 6:
		if (WITH_C11)
			use_c11();
		break;
	case 7: pthread_kill(pthread_self(), SIGUSR1); break;
	default: use_mutex(r); break;
	}
}

/* ------------------------------------------------------------ threads, children, libraries */

static pthread_barrier_t pair_barrier;
static __thread pthread_once_t once;

static void count_once(void)
{
}

static void *brief(void *seed)
{
	unsigned int r = (unsigned int)(uintptr_t)seed;

	wants_signals = 1;
	pthread_once(&once, count_once);
	for (int i = 0; i < 20; i++)
		use_one((unsigned int)rand_r(&r) * 2654435761u);
	wants_signals = 0;
	if (r & 1)
		pthread_exit(NULL);
	return NULL;
}

static void undo(void *held)
{
	*(int *)held = 0;
	must(!pthread_mutex_unlock(&queue_mutex), "queue of a cancelled thread");
	note(MUTEX_FREE);
}

static void *cancelled(void *unused)
{
	int held = 1;

	(void)unused;
	must(!pthread_mutex_lock(&queue_mutex), "queue");
	pthread_cleanup_push(undo, &held);
	for (;;)
		pthread_cond_wait(&queue_cond, &queue_mutex);
	pthread_cleanup_pop(1);
	return NULL;
}

static int c11_thread(void *unused)
{
	(void)unused;
	use_c11();
	return 7;
}

static void *meet(void *unused)
{
	int got = pthread_barrier_wait(&pair_barrier);

	must(!got || got == PTHREAD_BARRIER_SERIAL_THREAD, "barrier");
	return unused;
}

static void make_threads(unsigned int r)
{
	pthread_t thread;
	thrd_t other;
	void *result;
	int code;

	if (r & 512) {
		must(!pthread_create(&thread, NULL, brief, (void *)(uintptr_t)r), "create");
		pthread_kill(thread, SIGUSR1);
		must(!pthread_join(thread, NULL), "join");
	} else if (r & 1024) {
		must(!pthread_create(&thread, NULL, cancelled, NULL), "create");
		must(!pthread_cancel(thread), "cancel");
		must(!pthread_join(thread, &result) && result == PTHREAD_CANCELED, "a cancelled thread");
	} else if (WITH_C11) {
		must(thrd_create(&other, c11_thread, NULL) == thrd_success, "thrd_create");
		must(thrd_join(other, &code) == thrd_success && code == 7, "thrd_join");
	}
}

/* A child uses its own objects: a thread of the parent may hold a lock, and the child lacks that thread. No barriers. */
static void make_child(unsigned int r)
{
	pthread_barrier_t own;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		pthread_barrier_init(&own, NULL, 1);
		for (unsigned int i = 0; i < 100 || r & 512; i++) {
			pthread_barrier_wait(&own);
			if (i % 1000 == 999)
				usleep(200);
		}
		_exit(11);
	}
	must(pid > 0, "fork");
	if (r & 512) {
		usleep(r >> 10 & 2047);
		kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0)
		must(errno == EINTR, "waitpid");
	must(r & 512 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 11,
	     "the end of a child");
}

static void use_library(void)
{
	void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	must(opened != NULL, "dlopen");
	dlclose(opened);
}

static void *work(void *number)
{
	unsigned int r = (unsigned int)(uintptr_t)number;

	wants_signals = 1;
	for (unsigned int i = 0; i % 64 || !is_over(); i++) {
		unsigned int random = (unsigned int)rand_r(&r) * 2654435761u;

		use_one(random);
		if (i % 256 == 17)
			make_threads(random);
		if (i % 2048 == 99)
			make_child(random);
		if (library && i % 512 == 33)
			use_library();
	}
	wants_signals = 0;
	return NULL;
}

static void make_objects(void)
{
	static const int types[MUTEXES] = {
		PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP,
	};
	pthread_mutexattr_t attr;

	for (int i = 0; i < MUTEXES; i++) {
		pthread_mutexattr_init(&attr);
		pthread_mutexattr_settype(&attr, types[i]);
		if (i == 4)
			pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
		if (i == 5)
			pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
		if (i == 6)
			pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
		must(!pthread_mutex_init(&mutex[i], &attr), "mutex");
		pthread_mutexattr_destroy(&attr);
	}
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	sem_init(&sem, 0, 0);
	mtx_init(&mtx, mtx_plain);
	pthread_barrier_init(&pair_barrier, NULL, 2);
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 64;
	unsigned int seed = argc > 3 ? (unsigned int)atoi(argv[3]) : 1;
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t *thread = calloc((size_t)threads, sizeof(*thread));

	library = argc > 4 ? argv[4] : NULL;
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += argc > 1 ? atoi(argv[1]) : 10;
	sigaction(SIGUSR1, &action, NULL);
	make_objects();
	for (int i = 0; i < threads; i++)
		must(!pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)(seed * 1000u + (unsigned int)i)), "create");
	for (int i = 0; i < threads; i++)
		must(!pthread_join(thread[i], NULL), "join");
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, meet, NULL);
	for (int i = 0; i < 2 && i < threads; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < MUTEXES; i++)
		must(guarded[i] == guarded_too[i], "a mutex that excludes nobody");
	must(pair[0] == pair[1] && (unsigned long)c11_count == c11_did, "a lock that excludes nobody");
	must((unsigned long)spun == did[SPIN_FREE], "a spin lock that excludes nobody");
	printf("pid %d\n", getpid());
	for (int i = 0; i < KINDS; i++)
		printf("%s %lu\n", kind_names[i], did[i]);
	free(thread);
	return 0;
}
