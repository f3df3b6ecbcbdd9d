/* SPDX-License-Identifier: MIT */
/* library_locks.c - two locks of a library (-DGLIB, -DQT, -DQT_RW, -DLIBCXX, -DOMP, -DCRITICAL, -DSTDIO; else of threads), used as the argument says. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Declared here, so that no headers of the libraries are needed. */
#if defined(GLIB)
union lock {
	void *pointer;
	unsigned int words[2];
};
struct cond {
	void *pointer;
	unsigned int words[2];
};
void g_mutex_lock(union lock *lock);
void g_mutex_unlock(union lock *lock);
void g_cond_wait(struct cond *cond, union lock *lock);
void g_cond_signal(struct cond *cond);
#define TAKE g_mutex_lock
#define GIVE g_mutex_unlock
#define CONDITION
static struct cond cond;
#elif defined(QT)
union lock {
	void *pointer;
};
void take_lock(union lock *lock) __asm__("_ZN6QMutex4lockEv");
void give_lock(union lock *lock) __asm__("_ZN6QMutex6unlockEv");
#define TAKE take_lock
#define GIVE give_lock
struct cond {
	void *pointer;
};
void make_cond(struct cond *cond) __asm__("_ZN14QWaitConditionC1Ev");
int wait_for(struct cond *cond, union lock *lock, unsigned long limit) __asm__("_ZN14QWaitCondition4waitEP6QMutexm");
void g_cond_signal(struct cond *cond) __asm__("_ZN14QWaitCondition7wakeOneEv");
#define g_cond_wait(cond, lock) wait_for(cond, lock, -1UL)
#define CONDITION
static struct cond cond;
static __attribute__((constructor)) void init_cond(void)
{
	make_cond(&cond);
}
#elif defined(QT_RW)
union lock {
	void *pointer;
};
void make_lock(union lock *lock, int recursive) __asm__("_ZN14QReadWriteLockC1ENS_13RecursionModeE");
void take_lock(union lock *lock) __asm__("_ZN14QReadWriteLock12lockForWriteEv");
void give_lock(union lock *lock) __asm__("_ZN14QReadWriteLock6unlockEv");
#define INIT(lock) make_lock(lock, 0)
#define TAKE take_lock
#define GIVE give_lock
#elif defined(LIBCXX)
union lock {
	uint64_t words[18]; /* a mutex, two conditions and a word */
};
void make_lock(union lock *lock) __asm__("_ZNSt3__119__shared_mutex_baseC1Ev");
void take_lock(union lock *lock) __asm__("_ZNSt3__119__shared_mutex_base4lockEv");
void give_lock(union lock *lock) __asm__("_ZNSt3__119__shared_mutex_base6unlockEv");
#define INIT make_lock
#define TAKE take_lock
#define GIVE give_lock
#elif defined(OMP)
union lock {
	int word;      /* of libgomp */
	void *pointer; /* of libomp */
};
void omp_init_lock(union lock *lock);
void omp_set_lock(union lock *lock);
void omp_unset_lock(union lock *lock);
#define INIT omp_init_lock
#define TAKE omp_set_lock
#define GIVE omp_unset_lock
#elif defined(CRITICAL)
union lock {
	void *pointer;
};
void GOMP_critical_name_start(void **lock);
void GOMP_critical_name_end(void **lock);
#define TAKE(lock) GOMP_critical_name_start(&(lock)->pointer)
#define GIVE(lock) GOMP_critical_name_end(&(lock)->pointer)
#elif defined(STDIO)
union lock {
	FILE *file;
};
#define INIT(lock) ((lock)->file = fopen("/dev/null", "w"))
#define TAKE(lock) flockfile((lock)->file)
#define GIVE(lock) funlockfile((lock)->file)
#else
union lock {
	pthread_mutex_t mutex;
};
#define TAKE(lock) pthread_mutex_lock(&(lock)->mutex)
#define GIVE(lock) pthread_mutex_unlock(&(lock)->mutex)
#define g_cond_wait(cond, lock) pthread_cond_wait(cond, &(lock)->mutex)
#define g_cond_signal pthread_cond_signal
#define CONDITION
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
#endif

static union lock first, second;
static int taken[2], jobs;

static void set(int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static void await(const int *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		usleep(100);
}

#if defined(INIT)
static __attribute__((constructor)) void init(void)
{
	INIT(&first);
	INIT(&second);
}
#endif

static void *hold(void *unused)
{
	(void)unused;
	TAKE(&first);
	set(&taken[0]);
	await(&taken[1]);
	usleep(300000);
	GIVE(&first);
	return NULL;
}

static void *cross(void *other_way)
{
	int own = other_way != NULL;

	TAKE(own ? &second : &first);
	set(&taken[own]);
	await(&taken[!own]);
	TAKE(own ? &first : &second);
	return NULL;
}

static void *nest(void *other_way)
{
	union lock *outer = other_way ? &second : &first, *inner = other_way ? &first : &second;

	/* in turn: there is no deadlock in this run */
	if (other_way)
		await(&taken[0]);
	TAKE(outer);
	TAKE(inner);
	GIVE(inner);
	GIVE(outer);
	set(&taken[0]);
	return NULL;
}

static void *work(void *unused)
{
	(void)unused;
	for (int i = 0; i < 100; i++) {
		TAKE(&first);
		TAKE(&second);
		GIVE(&second);
		GIVE(&first);
	}
	return NULL;
}

static void *serve(void *unused)
{
	(void)unused;
#if defined(CONDITION)
	TAKE(&first);
	while (!jobs)
		g_cond_wait(&cond, &first);
	GIVE(&first);
#endif
	return NULL;
}

static void two(void *(*routine)(void *))
{
	pthread_t one, other;

	pthread_create(&one, NULL, routine, NULL);
	pthread_create(&other, NULL, routine, &first);
	pthread_join(one, NULL);
	pthread_join(other, NULL);
}

int main(int count, char **what)
{
	struct timespec began, ended;
	pthread_t thread;

	if (count < 2)
		return 2;
	if (strcmp(what[1], "contend") == 0) {
		pthread_create(&thread, NULL, hold, NULL);
		await(&taken[0]);
		set(&taken[1]);
		clock_gettime(CLOCK_MONOTONIC, &began);
		TAKE(&first);
		clock_gettime(CLOCK_MONOTONIC, &ended);
		GIVE(&first);
		pthread_join(thread, NULL);
		printf("%lld\n", (ended.tv_sec - began.tv_sec) * 1000000000LL + ended.tv_nsec - began.tv_nsec);
	} else if (strcmp(what[1], "deadlock") == 0) {
		pthread_create(&thread, NULL, cross, NULL);
		pthread_create(&thread, NULL, cross, &first);
		await(&taken[0]);
		await(&taken[1]);
		usleep(300000);
		_exit(0);
	} else if (strcmp(what[1], "orders") == 0) {
		two(nest);
	} else if (strcmp(what[1], "correct") == 0) {
		two(work);
	} else {
		pthread_create(&thread, NULL, serve, NULL);
		usleep(60000);
#if defined(CONDITION)
		TAKE(&first);
		jobs = 1;
		g_cond_signal(&cond);
		GIVE(&first);
#endif
		pthread_join(thread, NULL);
	}
	return 0;
}
