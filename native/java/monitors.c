/* SPDX-License-Identifier: MIT */
/* monitors.c - waits to enter monitors and waits in Object.wait(), as the machine reports them, and the owners of monitors. */
/*
 * The machine stops all its threads for a moment to find the owner of a monitor. So the agent limits the time that it
 * spends on this question: the first wait gets its owner, the ten thousandth wait of a second does not.
 */
#include "agent.h"

#include <errno.h>
#include <time.h>

#define AT_ONCE_NS 20000000 /* this time may be spent at once */
#define PART 100	    /* and 1/PART of the time since the first question */

static uint64_t began, spent; /* ns. relaxed: approximate figures suffice */

static jclass thread_class;
static jmethodID holds_lock; /* of thread_class; release and acquire: orders it behind thread_class */

static void free_threads(JNIEnv *jni, jthread *threads, jint count)
{
	for (jint i = 0; i < count; i++)
		(*jni)->DeleteLocalRef(jni, threads[i]);
	(*ja_jvmti)->Deallocate(ja_jvmti, (unsigned char *)threads);
}

static uint32_t ask(JNIEnv *jni, jobject object)
{
	jvmtiMonitorUsage usage;
	uint32_t owner;

	if ((*ja_jvmti)->GetObjectMonitorUsage(ja_jvmti, object, &usage) != JVMTI_ERROR_NONE)
		return 0;
	owner = usage.owner && !ja_is_virtual(jni, usage.owner) ? ja_id_of(usage.owner) : 0;
	if (usage.owner)
		(*jni)->DeleteLocalRef(jni, usage.owner);
	free_threads(jni, usage.waiters, usage.waiter_count);
	free_threads(jni, usage.notify_waiters, usage.notify_waiter_count);
	return owner;
}

static bool may_ask(uint64_t now)
{
	uint64_t none = 0, first;

	__atomic_compare_exchange_n(&began, &none, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	first = __atomic_load_n(&began, __ATOMIC_RELAXED);
	return __atomic_load_n(&spent, __ATOMIC_RELAXED) < AT_ONCE_NS + (now - first) / PART;
}

/* The kernel id of the owner of a monitor; 0 if it is unknown, or if the question would cost too much now. */
static uint32_t owner_of(JNIEnv *jni, jobject object)
{
	uint64_t before = ja_clock_ns(CLOCK_MONOTONIC);
	uint32_t owner;

	if (!may_ask(before))
		return 0;
	owner = ask(jni, object);
	__atomic_fetch_add(&spent, ja_clock_ns(CLOCK_MONOTONIC) - before, __ATOMIC_RELAXED);
	return owner;
}

/* Does the calling thread have the monitor of @object? True if unknown. */
static bool holds(JNIEnv *jni, jobject object)
{
	jmethodID method = __atomic_load_n(&holds_lock, __ATOMIC_ACQUIRE);
	bool held = !method || (*jni)->CallStaticBooleanMethod(jni, thread_class, method, object);

	if (!(*jni)->ExceptionCheck(jni))
		return held;
	(*jni)->ExceptionClear(jni); /* the stack was too small for the call */
	return true;
}

void ja_monitors_begin(JNIEnv *jni)
{
	jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
	jmethodID method = class ? (*jni)->GetStaticMethodID(jni, class, "holdsLock", "(Ljava/lang/Object;)Z") : NULL;

	if ((*jni)->ExceptionCheck(jni))
		(*jni)->ExceptionClear(jni);
	if (!method)
		return;
	thread_class = (*jni)->NewGlobalRef(jni, class);
	/* release: pairs with the acquire in holds(); thread_class is set */
	__atomic_store_n(&holds_lock, method, __ATOMIC_RELEASE);
}

/* ---- events of the machine ---- */

/*
 * If virtual threads use monitors, the owner of a monitor may be unknown, and need not be the last owner that was
 * reported.
 */
void JNICALL ja_contended_enter(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object)
{
	uint32_t owner;

	(void)jvmti;
	if (ja_is_virtual(jni, thread))
		return;
	owner = owner_of(jni, object);
	ja_wait_begin(jni, thread, object,
		      owner || !ja_has_virtual() ? PTT_JAVA_MONITOR : PTT_JAVA_VIRTUAL, owner, 0);
}

void JNICALL ja_contended_entered(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object)
{
	(void)jvmti;
	(void)object;
	if (!ja_is_virtual(jni, thread) && (ja_waits_for(PTT_JAVA_MONITOR) || ja_waits_for(PTT_JAVA_VIRTUAL)))
		ja_wait_end(0);
}

void JNICALL ja_monitor_wait(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jlong timeout_ms)
{
	(void)jvmti;
	/* if the thread does not hold the monitor, the machine reports the wait, and then refuses it without a report of its end */
	if (ja_is_virtual(jni, thread) || !holds(jni, object))
		return;
	ja_wait_begin(jni, thread, object, PTT_JAVA_NOTIFY, 0, (uint64_t)timeout_ms * 1000000);
}

void JNICALL ja_monitor_waited(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jboolean timed_out)
{
	(void)jvmti;
	(void)object;
	if (!ja_is_virtual(jni, thread) && ja_waits_for(PTT_JAVA_NOTIFY))
		ja_wait_end(timed_out ? ETIMEDOUT : 0);
}
