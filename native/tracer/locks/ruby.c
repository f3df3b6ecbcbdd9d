/* SPDX-License-Identifier: MIT */
/* ruby.c - Ruby's Mutex, which is also inside its Monitor. */
/*
 * Two things make these functions different from the functions of other libraries. They are left by a jump where Ruby raises an
 * exception or ends a thread, so what has to be done at the end of a call is left to rb_ensure(), which Ruby has for that. And they run
 * under Ruby's global lock: what a hook does right after a call, it does before any other thread of Ruby's can do anything. So a
 * release is reported when it is known to have been accepted, and whether a lock is free is known before it is asked for.
 *
 * Ruby releases what a thread has when it ends, without a call that could be seen: to readers of a trace such a lock is robust.
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

/* What Ruby's headers compile into extensions: an object with data of a type. */
struct typed_object {
	value flags, class, type, flag;
	const void *data;
};
#define FLAG_OF_TYPED 1ul /* the data lie outside of the object */

/* ------------------------------------------------------------ what Ruby has to ask it */

typedef const void *ractor_key;

struct ruby {
	ensure_fn *ensure;
	of_one_fn *is_locked;
	value (*scheduler)(void); /* NULL where there is none: before Ruby 3.1 */
	bool (*find_value)(ractor_key key, value *found);
	ractor_key of_first; /* a value that only the first ractor has; NULL before Ruby 3.3 */
};

/* Since Ruby 3.3 a thread of Ruby may go on in another thread of the kernel: always outside of the first ractor, else if asked for. */
static bool all_threads_move(void)
{
	const char *asked = getenv("RUBY_MN_THREADS");

	return asked && atoi(asked) > 0;
}

/* Give the ractor that calls, which is the first one, a value of its own. It may allocate. */
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

/* Return: 1, -1 if what is needed is not there, or 0 where the answer has to wait for a call by the first thread. */
static int look_for_ruby(struct ruby *found, void *near)
{
	bool may_move = ptt_lock_found_beside(near, "rb_internal_thread_specific_key_create");

	if (may_move && all_threads_move())
		return -1;
	if (may_move && ptt_tid() != (uint32_t)getpid())
		return 0;
	*(void **)&found->ensure = ptt_lock_found_beside(near, "rb_ensure");
	*(void **)&found->is_locked = ptt_lock_found_beside(near, "rb_mutex_locked_p");
	*(void **)&found->scheduler = ptt_lock_found_beside(near, "rb_fiber_scheduler_current");
	if (!found->ensure || !found->is_locked || (may_move && !mark_first(found, near)))
		return -1;
	return 1;
}

/*
 * Found once, and the same for all: a process has one Ruby. Takes the dynamic linker's lock at the first call.
 * Return: false if what is needed is not there, or the calling thread of Ruby may go on in another thread of the kernel.
 */
static bool find_ruby(struct ruby *ruby, void *near)
{
	static struct ruby found;
	static int state;
	value ignored;
	int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE); /* acquire: pairs with the release below */

	if (unlikely(!now)) {
		now = look_for_ruby(&found, near);
		__atomic_store_n(&state, now, __ATOMIC_RELEASE);
	}
	if (now <= 0)
		return false;
	*ruby = found;
	return !ruby->of_first || ruby->find_value(ruby->of_first, &ignored);
}

/* Fibers of a thread take turns while a fiber waits: what the thread waits for says nothing then. */
static bool has_scheduler(const struct ruby *ruby)
{
	return ruby->scheduler && (ruby->scheduler() & ~NIL_BITS) != 0;
}

/* ------------------------------------------------------------ what the thread has */

/*
 * Locks whose taking the thread has reported. What does not fit in is not reported, and neither is its release; the same goes for
 * what was taken before the tracer saw it.
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

/* Who reported last that it took a lock: another lock may have taken the place. Relaxed, all: under Ruby's lock, or a guess. */
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

/* The object's data stay where they are when the object is moved. */
static const void *data_of(value self)
{
	const struct typed_object *object = (const void *)self;

	return object->flag == FLAG_OF_TYPED ? object->data : (const void *)self;
}

static struct ptt_lock_used used(uint32_t number, value self, void *site)
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

/* Keep a lock that was taken, and say whether there was room. A lock that Ruby has released since, with its thread, is free now. */
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

/* ------------------------------------------------------------ calls that Ruby may leave by a jump */

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

/* Called by Ruby when the call is over, by return or by a jump. */
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
	locked = ruby.is_locked(self) != FALSE_VALUE; /* raises an exception where it is no Mutex */
	call.lock = used(PTT_LOCK_NUMBER_RB_MUTEX_LOCK, self, site);
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
	lock = used(PTT_LOCK_NUMBER_RB_MUTEX_TRYLOCK, self, site);
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
	/* the lock was reported, whatever the thread is in: a handler of a signal of Ruby's runs in the midst of a wait */
	lock = used(PTT_LOCK_NUMBER_RB_MUTEX_UNLOCK, self, site);
	report_free(&lock);
	return result;
}

/*
 * The release of the lock is seen, as other releases are. Ruby takes the lock back by a function of its own, even when it leaves by a
 * jump.
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
	call.lock = used(PTT_LOCK_NUMBER_RB_MUTEX_SLEEP, self, site);
	call.had = place_of(call.lock.object) != NULL;
	call.waits = has_scheduler(&ruby); /* which does not take it back where it raises */
	return ruby.ensure(sleep_and_take, (value)&call, slept, (value)&call);
}

/* ------------------------------------------------------------ beginning */

/* The garbage collector gives what a Mutex was to another one: each is told to be new. */
static COLD void report_init(value self, void *site)
{
	struct ptt_lock_used lock = used(PTT_LOCK_NUMBER_RB_DATA_TYPED_OBJECT_ZALLOC, self, site);

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
	/* the first word of a type is its name, which types of extensions do without */
	if (*type && strcmp(*type, "mutex") == 0 && is_traced())
		report_init(made, site);
	return made;
}
