/* SPDX-License-Identifier: MIT */
/* threads.c - what other threads may ask of a thread: its number in the kernel, what it is parked for, whether it is virtual. */
/* The machine keeps it with the thread. What a thread leaves behind is given to another one; it is never unmapped. */
#include "agent.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOTHING -1

struct known {
	uint32_t id;
	int kind;	 /* of what it is parked for, or NOTHING; release: pairs with the acquire where the object is read */
	uint64_t object; /* its number; relaxed */
	struct known *next;
};

static struct known *left; /* by threads that have ended */
static uint32_t taking;  /* a thread changes the list */

static __thread struct known *self;

static jclass virtual_thread; /* of Java 21 and later, or NULL */
static bool has_virtual;      /* relaxed: such threads use monitors, more or less since when */

static void lock(void)
{
	while (__atomic_exchange_n(&taking, true, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&taking, false, __ATOMIC_RELEASE);
}

static struct known *take(void)
{
	struct known *one;

	lock();
	one = left;
	left = one ? one->next : NULL;
	unlock();
	return one ? one : calloc(1, sizeof(*one));
}

static struct known *known_of(jthread thread)
{
	void *found = NULL;

	if (!thread || (*ja_jvmti)->GetThreadLocalStorage(ja_jvmti, thread, &found) != JVMTI_ERROR_NONE)
		return NULL;
	return found;
}

void ja_thread_begin(jthread thread)
{
	struct known *one = self ? self : take();

	if (!one)
		return;
	one->id = (uint32_t)syscall(SYS_gettid);
	self = one;
	ja_parked_no_more();
	(*ja_jvmti)->SetThreadLocalStorage(ja_jvmti, thread, one);
}

void ja_thread_end(jthread thread)
{
	struct known *one = self;

	if (!one)
		return;
	self = NULL;
	(*ja_jvmti)->SetThreadLocalStorage(ja_jvmti, thread, NULL);
	lock();
	one->next = left;
	left = one;
	unlock();
}

uint32_t ja_id_of(jthread thread)
{
	const struct known *one = known_of(thread);

	return one ? one->id : 0;
}

void ja_parked_for(enum ptt_java_kind kind, uint64_t object)
{
	if (!self)
		return;
	__atomic_store_n(&self->object, object, __ATOMIC_RELAXED);
	__atomic_store_n(&self->kind, (int)kind, __ATOMIC_RELEASE);
}

void ja_parked_no_more(void)
{
	if (self)
		__atomic_store_n(&self->kind, NOTHING, __ATOMIC_RELEASE);
}

bool ja_parked(jthread thread, struct ptt_java_wait *wait)
{
	const struct known *one = known_of(thread);
	int kind = one ? __atomic_load_n(&one->kind, __ATOMIC_ACQUIRE) : NOTHING;

	if (kind == NOTHING)
		return false;
	wait->kind = (enum ptt_java_kind)kind;
	wait->object = __atomic_load_n(&one->object, __ATOMIC_RELAXED);
	return true;
}

/* ---- virtual threads ---- */

void ja_threads_begin(JNIEnv *jni)
{
	jclass found = (*jni)->FindClass(jni, "java/lang/BaseVirtualThread");

	if (found)
		virtual_thread = (*jni)->NewGlobalRef(jni, found);
	else
		(*jni)->ExceptionClear(jni);
}

bool ja_is_virtual(JNIEnv *jni, jthread thread)
{
	if (!virtual_thread || !(*jni)->IsInstanceOf(jni, thread, virtual_thread))
		return false;
	__atomic_store_n(&has_virtual, true, __ATOMIC_RELAXED);
	return true;
}

bool ja_has_virtual(void)
{
	return __atomic_load_n(&has_virtual, __ATOMIC_RELAXED);
}
