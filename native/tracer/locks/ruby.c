/* SPDX-License-Identifier: MIT */
/* ruby.c - Ruby's Mutex, which Ruby's Monitor also uses. */
/*
 * These functions differ from the functions of other libraries in two ways. First, Ruby leaves them by longjmp() when
 * it raises an exception or ends a thread. So rb_ensure() runs the end of a call. Second, they run under Ruby's
 * global lock: no other Ruby thread runs between a call and the code right after it. So a release is reported after
 * it succeeded, and a hook knows before a call whether the lock is free.
 *
 * When a thread ends, Ruby releases the thread's locks without a call that has a hook. So the lock is reported as
 * robust.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lock_state.h"
#include "lock_types.h"
#include "real_lock.h"

typedef unsigned long value;
typedef value of_one_fn(value self);
typedef value of_two_fn(value self, value other);
typedef value zalloc_fn(value class, size_t size, const char *const *type);
typedef value ensure_fn(value (*body)(value), value data, value (*after)(value), value after_data);

#define FALSE_VALUE 0ul
#define NIL_BITS 0xcul /* nil is 8, since Ruby 3.2 it is 4 */

/* struct RTypedData of Ruby's headers: an object with typed data. */
struct typed_object {
	value flags, class, type, flag;
	const void *data;
};
#define FLAG_OF_TYPED 1ul /* the data lie outside of the object */

/* ------------------------------------------------------------ functions of Ruby */

typedef const void *ractor_key;

struct ruby {
	ensure_fn *ensure;
	of_one_fn *is_locked;
	value (*scheduler)(void); /* NULL before Ruby 3.1 */
	bool (*find_value)(ractor_key key, value *of_ractor);
	ractor_key of_first; /* key of a value that only the first ractor has; NULL before Ruby 3.3 */
};

/* Since Ruby 3.3 a Ruby thread may move to another kernel thread: outside the first ractor always, in it only on request. */
static bool all_threads_move(void)
{
	const char *setting = getenv("RUBY_MN_THREADS");

	return setting && atoi(setting) > 0;
}

/* Give the calling ractor, the first ractor, a value of its own. May allocate. */
static bool mark_first(struct ruby *ruby, void *near)
{
	ractor_key (*new_key)(void);
	void (*set)(ractor_key key, value of_ractor);

	*(void **)&new_key = ptt_lock_found_beside(near, "rb_ractor_local_storage_value_newkey");
	*(void **)&set = ptt_lock_found_beside(near, "rb_ractor_local_storage_value_set");
	*(void **)&ruby->find_value = ptt_lock_found_beside(near, "rb_ractor_local_storage_value_lookup");
	if (!new_key || !set || !ruby->find_value)
		return false;
	ruby->of_first = new_key();
	set(ruby->of_first, FALSE_VALUE);
	return true;
}

/* Return: 1; -1 if Ruby lacks a function; 0 if only a call by the first thread can tell. */
static int look_for_ruby(struct ruby *ruby, void *near)
{
	bool may_move = ptt_lock_found_beside(near, "rb_internal_thread_specific_key_create");

	if (may_move && all_threads_move())
		return -1;
	if (may_move && ptt_tid() != (uint32_t)getpid())
		return 0;
	*(void **)&ruby->ensure = ptt_lock_found_beside(near, "rb_ensure");
	*(void **)&ruby->is_locked = ptt_lock_found_beside(near, "rb_mutex_locked_p");
	*(void **)&ruby->scheduler = ptt_lock_found_beside(near, "rb_fiber_scheduler_current");
	if (!ruby->ensure || !ruby->is_locked || (may_move && !mark_first(ruby, near)))
		return -1;
	return 1;
}

/*
 * Find Ruby's functions, once: a process has one Ruby. Takes the dynamic linker's lock at the first call.
 * Return: false if Ruby lacks a function, or if the calling Ruby thread may move to another kernel thread.
 */
static bool find_ruby(struct ruby *ruby, void *near)
{
	static struct ruby functions;
	static int state;
	value ignored;
	int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE); /* acquire: pairs with the release below */

	if (unlikely(!now)) {
		now = look_for_ruby(&functions, near);
		__atomic_store_n(&state, now, __ATOMIC_RELEASE);
	}
	if (now <= 0)
		return false;
	*ruby = functions;
	return !ruby->of_first || ruby->find_value(ruby->of_first, &ignored);
}

/* With a scheduler, other fibers of the thread run while a fiber waits, so the wait of the thread says nothing. */
static bool has_scheduler(const struct ruby *ruby)
{
	return ruby->scheduler && (ruby->scheduler() & ~NIL_BITS) != 0;
}

/* ------------------------------------------------------------ locks of the thread */

/*
 * The locks that the thread has reported as taken. If the array is full, neither the taking nor the release of a lock
 * is reported. The release of a lock that was taken before the recording is not reported either.
 */
#define HELD_MAX 8u

static __thread const void *held[HELD_MAX] INITIAL_EXEC;

static const void **place_of(const void *object)
{
	for (uint32_t i = 0; i < HELD_MAX; i++)
		if (held[i] == object)
			return &held[i];
	return NULL;
}

/*
 * The last thread that reported taking a lock; another lock may have taken the entry. Relaxed, all: under Ruby's
 * lock, or a guess.
 */
#define TAKERS_BITS 8
static struct {
	const void *object;
	uint32_t tid;
} takers[1u << TAKERS_BITS];

static void note_taker(const void *object)
{
	uint64_t at = PTT_LOCK_HASH(object, TAKERS_BITS);

	__atomic_store_n(&takers[at].object, object, __ATOMIC_RELAXED);
	__atomic_store_n(&takers[at].tid, ptt_tid(), __ATOMIC_RELAXED);
}

static bool took_it_last(const void *object)
{
	uint64_t at = PTT_LOCK_HASH(object, TAKERS_BITS);

	return __atomic_load_n(&takers[at].object, __ATOMIC_RELAXED) == object &&
	       __atomic_load_n(&takers[at].tid, __ATOMIC_RELAXED) == ptt_tid();
}

/* ------------------------------------------------------------ reports */

/* The address of the object's data does not change when the garbage collector moves the object. */
static const void *data_of(value self)
{
	const struct typed_object *object = (const void *)self;

	return object->flag == FLAG_OF_TYPED ? object->data : (const void *)self;
}

static struct ptt_lock_used use_of(uint32_t number, value self, void *site)
{
	return (struct ptt_lock_used){.function = &ptt_lock_functions[number], .object = data_of(self), .site = site};
}

static void report_free(const struct ptt_lock_used *lock)
{
	const void **place = place_of(lock->object);

	if (!place)
		return;
	*place = NULL;
	ptt_lock_of_call = PTT_LOCK_WORD(lock->object, PTT_OTHER_PRIVATE);
	ptt_report_lock_free(lock);
	ptt_lock_of_call = 0;
}

/*
 * Note a taken lock. If the thread still has it noted, Ruby has released it meanwhile: report that. Return: false if
 * the array is full.
 */
static bool keep(const struct ptt_lock_used *lock)
{
	const void **place = place_of(lock->object);

	if (place && took_it_last(lock->object))
		report_free(lock);
	else if (!place)
		place = place_of(NULL);
	if (!place)
		return false;
	*place = lock->object;
	note_taker(lock->object);
	ptt_report_type_once(lock);
	return true;
}

static void report_taken(const struct ptt_lock_used *lock, bool tried)
{
	ptt_lock_of_call = PTT_LOCK_WORD(lock->object, PTT_OTHER_PRIVATE);
	if (!keep(lock))
		;
	else if (tried)
		ptt_report_lock_tried(lock);
	else
		ptt_report_lock_taken(lock);
	ptt_lock_of_call = 0;
}

/* ------------------------------------------------------------ calls that Ruby may leave by longjmp() */

struct call {
	struct ptt_lock_used lock;
	value self, other;
	of_one_fn *real;
	of_two_fn *real_of_two;
	uint32_t entered;
	bool waits, own, done, had;
	uint64_t began;
};

static value take(value data)
{
	struct call *call = (struct call *)data;
	value result = call->real(call->self);

	call->done = true;
	return result;
}

static void end_wait(const struct call *call)
{
	uint64_t ns = ptt_now_ns() - call->began;

	ptt_lock_of_call = PTT_LOCK_WORD(call->lock.object, PTT_OTHER_PRIVATE);
	if (!call->done || keep(&call->lock))
		ptt_report_lock_wait_end(&call->lock, call->done ? 0 : ECANCELED, ns);
	else
		REPORT_WITH(MUTEX, MUTEX_WAIT_END, mutex_wait_end, call->lock.object, call->lock.site, .result = 0, .wait_ns = ns);
	ptt_lock_of_call = 0;
}

/* Called by rb_ensure() at the end of the call, by return or by longjmp(). */
static value taken(value data)
{
	struct call *call = (struct call *)data;

	ptt_in_lock = call->entered;
	if (call->waits)
		end_wait(call);
	else if (call->done)
		report_taken(&call->lock, false);
	else if (call->own)
		REPORT_ERROR(MUTEX, call->lock.object, NPTL_EV_MUTEX_LOCK_IN, EDEADLK, call->lock.site);
	return FALSE_VALUE;
}

static void begin_wait(struct call *call)
{
	ptt_lock_of_call = PTT_LOCK_WORD(call->lock.object, PTT_OTHER_PRIVATE);
	ptt_report_type_once(&call->lock);
	ptt_report_lock_wait(&call->lock);
	ptt_lock_of_call = 0;
	call->began = ptt_now_ns();
}

static bool is_traced(void)
{
	return ptt_level(NPTL_DOMAIN_MUTEX) && !ptt_in_lock;
}

static value lock_among_fibers(const struct call *call)
{
	value result = call->real(call->self);

	report_taken(&call->lock, true);
	return result;
}

EXPORT value ptt_rb_mutex_lock(value self) __asm__("rb_mutex_lock");
EXPORT value ptt_rb_mutex_lock(value self)
{
	void *site = CALL_SITE;
	of_one_fn *real = (of_one_fn *)(void (*)(void))ptt_real_lock(PTT_LOCK_NUMBER_RB_MUTEX_LOCK, site);
	struct call call = {.self = self, .real = real, .entered = ptt_in_lock};
	struct ruby ruby;
	bool locked;

	if (unlikely(!real))
		return FALSE_VALUE;
	if (!is_traced() || !find_ruby(&ruby, (void *)real))
		return real(self);
	locked = ruby.is_locked(self) != FALSE_VALUE; /* raises an exception if @self is no Mutex */
	call.lock = use_of(PTT_LOCK_NUMBER_RB_MUTEX_LOCK, self, site);
	call.own = locked && place_of(call.lock.object) && took_it_last(call.lock.object);
	call.waits = locked && !call.own;
	if (locked && has_scheduler(&ruby))
		return lock_among_fibers(&call);
	if (call.waits)
		begin_wait(&call);
	ptt_in_lock++;
	return ruby.ensure(take, (value)&call, taken, (value)&call);
}

EXPORT value ptt_rb_mutex_trylock(value self) __asm__("rb_mutex_trylock");
EXPORT value ptt_rb_mutex_trylock(value self)
{
	void *site = CALL_SITE;
	of_one_fn *real = (of_one_fn *)(void (*)(void))ptt_real_lock(PTT_LOCK_NUMBER_RB_MUTEX_TRYLOCK, site);
	struct ptt_lock_used lock;
	struct ruby ruby;
	value result;

	if (unlikely(!real))
		return FALSE_VALUE;
	result = real(self);
	if (result == FALSE_VALUE || !is_traced() || !find_ruby(&ruby, (void *)real))
		return result;
	lock = use_of(PTT_LOCK_NUMBER_RB_MUTEX_TRYLOCK, self, site);
	report_taken(&lock, true);
	return result;
}

EXPORT value ptt_rb_mutex_unlock(value self) __asm__("rb_mutex_unlock");
EXPORT value ptt_rb_mutex_unlock(value self)
{
	void *site = CALL_SITE;
	of_one_fn *real = (of_one_fn *)(void (*)(void))ptt_real_lock(PTT_LOCK_NUMBER_RB_MUTEX_UNLOCK, site);
	struct ptt_lock_used lock;
	value result;

	if (unlikely(!real))
		return FALSE_VALUE;
	result = real(self);
	/*
	 * whatever ptt_in_lock says: Ruby runs handlers of signals in the midst of a wait, and the lock may have been
	 * reported
	 */
	lock = use_of(PTT_LOCK_NUMBER_RB_MUTEX_UNLOCK, self, site);
	report_free(&lock);
	return result;
}

/*
 * rb_mutex_sleep() releases the lock through the hook of rb_mutex_unlock(). It takes the lock again by an internal
 * function, even if it leaves by longjmp().
 */
static value sleep_and_take(value data)
{
	struct call *call = (struct call *)data;
	value result = call->real_of_two(call->self, call->other);

	call->done = true;
	return result;
}

static value slept(value data)
{
	struct call *call = (struct call *)data;

	if (call->had && !place_of(call->lock.object) && (call->done || !call->waits))
		report_taken(&call->lock, false);
	return FALSE_VALUE;
}

EXPORT value ptt_rb_mutex_sleep(value self, value timeout) __asm__("rb_mutex_sleep");
EXPORT value ptt_rb_mutex_sleep(value self, value timeout)
{
	void *site = CALL_SITE;
	of_two_fn *real = (of_two_fn *)(void (*)(void))ptt_real_lock(PTT_LOCK_NUMBER_RB_MUTEX_SLEEP, site);
	struct call call = {.self = self, .other = timeout, .real_of_two = real};
	struct ruby ruby;

	if (unlikely(!real))
		return FALSE_VALUE;
	if (!is_traced() || !find_ruby(&ruby, (void *)real))
		return real(self, timeout);
	ruby.is_locked(self); /* as above */
	call.lock = use_of(PTT_LOCK_NUMBER_RB_MUTEX_SLEEP, self, site);
	call.had = place_of(call.lock.object) != NULL;
	call.waits = has_scheduler(&ruby); /* a scheduler does not take the lock again if it raises an exception */
	return ruby.ensure(sleep_and_take, (value)&call, slept, (value)&call);
}

/* ------------------------------------------------------------ new objects */

/* The garbage collector reuses the memory of a Mutex, so each Mutex is reported as new. */
static COLD void report_init(value self, void *site)
{
	struct ptt_lock_used lock = use_of(PTT_LOCK_NUMBER_RB_DATA_TYPED_OBJECT_ZALLOC, self, site);

	ptt_lock_of_call = PTT_LOCK_WORD(lock.object, PTT_OTHER_PRIVATE);
	REPORT_WITH(MUTEX, MUTEX_INIT, mutex_init, lock.object, site, .kind = PTHREAD_MUTEX_ERRORCHECK_NP, .robust = 1);
	ptt_report_type_anew(&lock);
	ptt_lock_of_call = 0;
}

EXPORT value ptt_rb_data_typed_object_zalloc(value class, size_t size, const char *const *type) __asm__("rb_data_typed_object_zalloc");
EXPORT value ptt_rb_data_typed_object_zalloc(value class, size_t size, const char *const *type)
{
	void *site = CALL_SITE;
	zalloc_fn *real = (zalloc_fn *)(void (*)(void))ptt_real_lock(PTT_LOCK_NUMBER_RB_DATA_TYPED_OBJECT_ZALLOC, site);
	value made;

	if (unlikely(!real))
		return FALSE_VALUE;
	made = real(class, size, type);
	/* the first word of a type is its name; types of extensions may have none */
	if (*type && strcmp(*type, "mutex") == 0 && is_traced())
		report_init(made, site);
	return made;
}
