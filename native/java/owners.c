/* SPDX-License-Identifier: MIT */
/* owners.c - which thread has a monitor. */
/*
 * To answer that, the machine stops all of its threads for a moment. So it is asked as long as that takes little of the time:
 * a first wait gets its owner, the ten thousandth of a second does not.
 */
#include "agent.h"

#include <time.h>

#define AT_ONCE_NS 20000000 /* this may be spent at any time, */
#define PART 100	    /* and from then on this part of the time */

static uint64_t began, spent; /* relaxed, both: more or less */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void forget(JNIEnv *jni, jthread *threads, jint count)
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
	forget(jni, usage.waiters, usage.waiter_count);
	forget(jni, usage.notify_waiters, usage.notify_waiter_count);
	return owner;
}

static bool may_ask(uint64_t now)
{
	uint64_t none = 0, first;

	__atomic_compare_exchange_n(&began, &none, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	first = __atomic_load_n(&began, __ATOMIC_RELAXED);
	return __atomic_load_n(&spent, __ATOMIC_RELAXED) < AT_ONCE_NS + (now - first) / PART;
}

uint32_t ja_owner(JNIEnv *jni, jobject object)
{
	uint64_t before = now_ns();
	uint32_t owner;

	if (!may_ask(before))
		return 0;
	owner = ask(jni, object);
	__atomic_fetch_add(&spent, now_ns() - before, __ATOMIC_RELAXED);
	return owner;
}
