/* SPDX-License-Identifier: MIT */
/* thread.c - life of threads: creation, begin, end and names. */
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread.h"
#include "wait.h"

/* Bytes of a name that the program's language gives to a thread: see ptt_python_thread_name(). */
#define THREAD_NAME_ROOM 64

/* Data that the creator and the new thread exchange. The last user releases it. */
struct start {
	union {
		void *(*posix)(void *);
		int (*c11)(void *);
	} routine;
	void *arg;
	size_t room; /* bytes of its stack without the guard */
	pthread_t thread; /* set by the new thread */
	uint32_t creator;
	uint32_t serial;
	uint32_t users; /* 0: free */
	uint32_t name_size;
	char name[THREAD_NAME_ROOM];
};

/* Not from malloc(): an allocator may create threads while it holds its locks. */
#define START_COUNT 256
static struct start starts[START_COUNT];
static uint32_t start_hint;
static uint32_t created;

static pthread_key_t end_key;
static uint32_t have_end_key; /* 0 or 1; a word, because every processor can exchange a word */
static uint32_t end_key_users; /* threads in set_end_key() */
static bool attached; /* attached: threads may be older than the recording, so a first event is no begin */

static __thread struct {
	bool known; /* the begin is reported, the end is not */
	bool ended; /* the end is reported */
	bool leaves; /* pthread_exit() or thrd_exit() was called */
	bool inside; /* the thread library reports begin and end */
	bool cancelled;
	void *value; /* what the thread returns */
} self INITIAL_EXEC;

/* ------------------------------------------------------------ begin and end */

static void report_end(void)
{
	REPORT_WITH(THREAD, THREAD_END, thread_end, pthread_self(), NULL, .cancelled = self.cancelled,
		    .retval = (uintptr_t)self.value);
	self.known = false;
	self.ended = true;
}

/* ThreadSanitizer forgets the thread in the last round of destructors, so instrumented code must end before. */
#ifdef __SANITIZE_THREAD__
#define END_ROUNDS (PTHREAD_DESTRUCTOR_ITERATIONS - 1)
#else
#define END_ROUNDS PTHREAD_DESTRUCTOR_ITERATIONS
#endif

/* Another thread may delete the key at any time. Then its number may belong to the program, so set no value. */
static bool set_end_key(uintptr_t round)
{
	bool set;

	/* seq_cst, all: either this thread sees that the key is deleted, or give_end_key_up() sees this thread */
	__atomic_fetch_add(&end_key_users, 1, __ATOMIC_SEQ_CST);
	set = __atomic_load_n(&have_end_key, __ATOMIC_SEQ_CST) && pthread_setspecific(end_key, (void *)round) == 0;
	__atomic_fetch_sub(&end_key_users, 1, __ATOMIC_SEQ_CST);
	return set;
}

/* The program needs all keys, so delete ours. Then the end of a thread is reported when its routine ends. */
static bool give_end_key_up(void)
{
	if (!__atomic_exchange_n(&have_end_key, false, __ATOMIC_SEQ_CST))
		return false;
	while (__atomic_load_n(&end_key_users, __ATOMIC_SEQ_CST))
		sched_yield();
	pthread_key_delete(end_key);
	return true;
}

EXPORT UNWATCHED int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	int result = ptt_real.pthread_key_create(key, destructor);

	if (result == EAGAIN && give_end_key_up())
		result = ptt_real.pthread_key_create(key, destructor);
	return result;
}
ALIAS(__pthread_key_create, pthread_key_create);

EXPORT int tss_create(tss_t *key, tss_dtor_t destructor)
{
	int result = ptt_real.tss_create(key, destructor);

	if (result != thrd_success && give_end_key_up())
		result = ptt_real.tss_create(key, destructor);
	return result;
}

/*
 * Destructors of thread-specific data run last, in up to PTHREAD_DESTRUCTOR_ITERATIONS rounds, and may use locks
 * (POSIX, pthread_key_create()). This destructor requests another round until the last round. So the end is reported
 * after the events of the other destructors.
 */
static void thread_ends(void *round)
{
	uintptr_t next = (uintptr_t)round + 1;

	if (self.inside || (next <= END_ROUNDS && set_end_key(next)))
		return;
	if (self.known)
		report_end();
}

static void watch_end(void)
{
	self.known = true;
	set_end_key(1);
}

void ptt_start_threads(void)
{
	have_end_key = ptt_real.pthread_key_create(&end_key, thread_ends) == 0;
	watch_end();
}

/*
 * glibc keeps values of later keys in memory from malloc(). A hook must not call malloc(): malloc() itself may take a
 * traced lock.
 */
#define KEYS_WITHOUT_MALLOC 32

void ptt_start_threads_attached(void)
{
	attached = true;
	if (have_end_key || ptt_real.pthread_key_create(&end_key, thread_ends) != 0)
		return;
	if (end_key < KEYS_WITHOUT_MALLOC)
		__atomic_store_n(&have_end_key, true, __ATOMIC_SEQ_CST);
	else
		pthread_key_delete(end_key);
}

static struct start *take_start(void)
{
	/* relaxed: only a first place to look at */
	uint32_t i, at = __atomic_fetch_add(&start_hint, 1, __ATOMIC_RELAXED);
	struct start *page;

	for (i = 0; i < START_COUNT; i++) {
		struct start *start = &starts[(at + i) % START_COUNT];
		uint32_t unused = 0;

		/* acquire: pairs with the release in release_start() */
		if (__atomic_compare_exchange_n(&start->users, &unused, 2, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return start;
	}
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	page->users = 2;
	return page;
}

/* @users: the number of users that have finished */
static void release_start(struct start *start, uint32_t users)
{
	if (__atomic_sub_fetch(&start->users, users, __ATOMIC_ACQ_REL) == 0 &&
	    !(start >= starts && start < starts + START_COUNT))
		munmap(start, sizeof(*start));
}

/* The routine of a thread was left: by return, by exit, or else by cancellation. */
static void end_routine(bool *returned)
{
	if (!*returned && !self.leaves) {
		self.cancelled = true;
		self.value = PTHREAD_CANCELED;
	}
	/* relaxed: without the key, the thread ends here */
	if (!__atomic_load_n(&have_end_key, __ATOMIC_RELAXED) && self.known && !self.inside)
		report_end();
}

static void report_begin(void *routine, uint32_t creator, uint32_t serial)
{
	pthread_t thread = pthread_self();

	REPORT_WITH(THREAD, THREAD_BEGIN, thread_begin, thread, routine, .start_routine = ptt_ptr48(routine),
		    .creator = creator, .serial = serial);
	if (self.inside)
		REPORT_WITH(THREAD, THREAD_INIT, thread_init, thread, routine, .start_routine = ptt_ptr48(routine));
}

/* In the new thread, before the routine of the program. Return: a copy of @shared. */
static struct start begin(struct start *shared)
{
	/* without the count of users, which the creator may be changing */
	struct start start = {
		.routine = shared->routine, .arg = shared->arg, .creator = shared->creator, .serial = shared->serial,
		.name_size = shared->name_size,
	};

	memcpy(start.name, shared->name, start.name_size);
	ptt_reach_begin(shared->room);
	/* release: pairs with the acquire in created_thread() */
	__atomic_store_n(&shared->thread, pthread_self(), __ATOMIC_RELEASE);
	release_start(shared, 1);
	watch_end();
	report_begin((void *)start.routine.posix, start.creator, start.serial);
	if (start.name_size && must_trace(THREAD, THREAD_NAME))
		ptt_report_name(pthread_self(), start.name, start.name_size, NULL);
	ptt_report_own_priority();
	return start;
}

static void *trampoline(void *shared)
{
	bool returned __attribute__((cleanup(end_routine))) = false;
	struct start start = begin(shared);

	self.value = start.routine.posix(start.arg);
	returned = true;
	return self.value;
}

static int c11_trampoline(void *shared)
{
	bool returned __attribute__((cleanup(end_routine))) = false;
	struct start start = begin(shared);
	int value = start.routine.c11(start.arg);

	self.value = (void *)(intptr_t)value;
	returned = true;
	return value;
}

/* The C library creates threads without a hook, as for SIGEV_THREAD: report the begin before the first event. */
void ptt_thread_enters(void)
{
	if (self.known || self.ended || self.inside)
		return;
	watch_end();
	if (!attached)
		report_begin(NULL, 0, 0);
}

/* ------------------------------------------------------------ reports of a trace-enabled thread library */

bool ptt_thread_is_known(void)
{
	return self.known;
}

/* A thread that the hooks created begins in its trampoline. Of other threads the creator is unknown. */
void ptt_thread_starts(void *routine)
{
	self.inside = true;
	if (routine == (void *)trampoline || routine == (void *)c11_trampoline)
		return;
	self.known = true;
	report_begin(routine, 0, 0);
}

void ptt_thread_dies(void)
{
	REPORT(THREAD, THREAD_STATE_DEAD, (void *)pthread_self(), NULL);
	report_end();
}

/* ------------------------------------------------------------ create */

/* Bytes of a new thread's stack without the guard. The functions of the C library read only its own memory. */
static size_t room_of(const pthread_attr_t *attr)
{
	size_t size = 0, guard = 0;
	pthread_attr_t defaults;

	if (!attr && pthread_attr_init(&defaults) != 0)
		return 0;
	pthread_attr_getstacksize(attr ? attr : &defaults, &size);
	pthread_attr_getguardsize(attr ? attr : &defaults, &guard);
	if (!attr)
		pthread_attr_destroy(&defaults);
	return size > guard ? size - guard : 0;
}

/* The data for a thread that is about to be created; NULL: out of memory. */
static struct start *prepare(const pthread_attr_t *attr, void *arg)
{
	struct start *start = take_start();

	if (!start)
		return NULL;
	start->arg = arg;
	start->room = room_of(attr);
	start->thread = 0;
	start->name_size = (uint32_t)ptt_python_thread_name(start->name, sizeof(start->name));
	start->creator = ptt_tid();
	/* relaxed: only a unique number */
	start->serial = __atomic_add_fetch(&created, 1, __ATOMIC_RELAXED);
	return start;
}

/*
 * Report a creation. The real function filled in *@thread before the new thread ran, so the program may have changed
 * *@thread since. Read it only if the new thread has not yet set start->thread.
 */
static pthread_t created_thread(struct start *start, const pthread_t *thread, bool detached, void *site)
{
	/* acquire: pairs with the release in begin() */
	pthread_t made = __atomic_load_n(&start->thread, __ATOMIC_ACQUIRE);

	if (!made)
		made = *thread;
	REPORT_WITH(THREAD, NEW_THREAD_CREATED, new_thread_created, made, site,
		    .start_routine = ptt_ptr48((void *)start->routine.posix), .detached = detached,
			  .serial = start->serial);
	release_start(start, 1);
	return made;
}

static int create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *arg, pthread_t *made,
		  void *site)
{
	struct start *start = prepare(attr, arg);
	int detached = PTHREAD_CREATE_JOINABLE, result;

	if (!start)
		return ptt_real.pthread_create(thread, attr, routine, arg);
	start->routine.posix = routine;
	if (attr)
		pthread_attr_getdetachstate(attr, &detached);
	result = ptt_real.pthread_create(thread, attr, trampoline, start);
	if (result) {
		release_start(start, 2);
		REPORT_ERROR(THREAD, 0, NPTL_EV_THREAD_CREATE_IN, result, site);
		return result;
	}
	*made = created_thread(start, thread, detached == PTHREAD_CREATE_DETACHED, site);
	return 0;
}

int ptt_create_c11(thrd_t *thread, thrd_start_t routine, void *arg, void *site)
{
	struct start *start = prepare(NULL, arg);
	int result;

	if (!start)
		return ptt_real.thrd_create(thread, routine, arg);
	start->routine.c11 = routine;
	result = ptt_real.thrd_create(thread, c11_trampoline, start);
	if (result == thrd_success) {
		created_thread(start, thread, false, site);
	} else {
		release_start(start, 2);
		REPORT_ERROR(THREAD, 0, NPTL_EV_THREAD_CREATE_IN, result == thrd_nomem ? ENOMEM : EAGAIN, site);
	}
	return result;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *arg)
{
	void *site = CALL_SITE;
	pthread_t made = 0;
	int result;

	if (!__nptl_trace_enabled)
		return ptt_real.pthread_create(thread, attr, routine, arg);
	REPORT_WITH(THREAD, THREAD_CREATE_IN, thread_create_in, 0, site,
		    .start_routine = ptt_ptr48((void *)routine), .attr = (uintptr_t)attr);
	result = create(thread, attr, routine, arg, &made, site);
	REPORT_RESULT(THREAD, THREAD_CREATE_OUT, made, result, site);
	return result;
}

/* ------------------------------------------------------------ exit */

void ptt_thread_leaves(void *value)
{
	self.leaves = true;
	self.value = value;
}

EXPORT void pthread_exit(void *value)
{
	/* noreturn: AddressSanitizer then forgets this frame; the destructors use its memory */
	void (*leave)(void *) __attribute__((noreturn));

	ptt_thread_leaves(value);
	REPORT_WITH(THREAD, THREAD_EXIT_IN, thread_exit_in, pthread_self(), CALL_SITE, .retval = (uintptr_t)value);
	leave = (__typeof__(leave))ptt_real.pthread_exit;
	leave(value);
}

/* ------------------------------------------------------------ join */

void ptt_report_name(pthread_t thread, const char *name, size_t length, void *site)
{
	union {
		struct nptl_trace_thread_name event;
		char bytes[sizeof(struct nptl_trace_thread_name) + PTT_NAME_MAX];
	} param;

	memset(&param, 0, sizeof(param));
	param.event.object = (void *)thread;
	param.event.site = site;
	param.event.name_pieces = (uint32_t)PTT_PIECES(length);
	memcpy(param.event.name, name, length);
	ptt_send(NPTL_DOMAIN_THREAD, NPTL_EV_THREAD_NAME, &param, sizeof(param.event) + length);
}

EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	void *site = CALL_SITE;
	int result;

	REPORT(THREAD, THREAD_SETNAME_IN, (void *)thread, site);
	result = ptt_real.pthread_setname_np(thread, name);
	if (result == 0 && must_trace(THREAD, THREAD_NAME))
		ptt_report_name(thread, name, strnlen(name, PTT_KERNEL_NAME), site);
	REPORT_RESULT(THREAD, THREAD_SETNAME_OUT, thread, result, site);
	return result;
}
