/* SPDX-License-Identifier: MIT */
/* threads.c - the state of a thread that other threads ask for: its kernel id, the object it is parked for, whether it is virtual. */
/*
 * The machine keeps the entry with the thread (JVM TI, SetThreadLocalStorage). The entry of an ended thread goes to a
 * new thread and is never freed.
 */
#include "agent.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOTHING -1

struct entry {
	uint32_t id;
	int kind;	 /* of the object it is parked for, or NOTHING; release and acquire: orders the object */
	uint64_t object; /* the object's number; relaxed */
	struct entry *next;
};

static struct entry *free_list; /* entries of threads that have ended */
static uint32_t locked;		/* spin lock of the list */

static __thread struct entry *self;

static jclass virtual_thread; /* the class, in Java 21 and later, or NULL */
static bool has_virtual;      /* relaxed: no other data depends on it */

static void lock(void)
{
	while (__atomic_exchange_n(&locked, true, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&locked, false, __ATOMIC_RELEASE);
}

static struct entry *get_entry(void)
{
	struct entry *entry;

	lock();
	entry = free_list;
	free_list = entry ? entry->next : NULL;
	unlock();
	return entry ? entry : calloc(1, sizeof(*entry));
}

static struct entry *entry_of(jthread thread)
{
	void *entry = NULL;

	if (!thread || (*ja_jvmti)->GetThreadLocalStorage(ja_jvmti, thread, &entry) != JVMTI_ERROR_NONE)
		return NULL;
	return entry;
}

void ja_thread_begin(jthread thread)
{
	struct entry *entry = self ? self : get_entry();

	if (!entry)
		return;
	entry->id = (uint32_t)syscall(SYS_gettid);
	self = entry;
	ja_parked_no_more();
	(*ja_jvmti)->SetThreadLocalStorage(ja_jvmti, thread, entry);
}

void ja_thread_end(jthread thread)
{
	struct entry *entry = self;

	if (!entry)
		return;
	self = NULL;
	(*ja_jvmti)->SetThreadLocalStorage(ja_jvmti, thread, NULL);
	lock();
	entry->next = free_list;
	free_list = entry;
	unlock();
}

uint32_t ja_id_of(jthread thread)
{
	const struct entry *entry = entry_of(thread);

	return entry ? entry->id : 0;
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
	const struct entry *entry = entry_of(thread);
	int kind = entry ? __atomic_load_n(&entry->kind, __ATOMIC_ACQUIRE) : NOTHING;

	if (kind == NOTHING)
		return false;
	wait->kind = (enum ptt_java_kind)kind;
	wait->object = __atomic_load_n(&entry->object, __ATOMIC_RELAXED);
	return true;
}

/* ---- virtual threads ---- */

void ja_threads_begin(JNIEnv *jni)
{
	jclass type = (*jni)->FindClass(jni, "java/lang/BaseVirtualThread");

	if (type)
		virtual_thread = (*jni)->NewGlobalRef(jni, type);
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
