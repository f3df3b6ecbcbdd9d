/* SPDX-License-Identifier: MIT */
/* parks.c - threads that java.util.concurrent parks: the object they wait for, its owner, and the thread that wakes them. */
/*
 * The machine has no event for parking. But the methods that park and wake a thread are native, and an agent may
 * replace a native method when the machine binds it (JVM TI, NativeMethodBind). A field of the thread's object
 * (parkBlocker) refers to the lock, and a field of the lock (exclusiveOwnerThread) to its owner. Threads that do not
 * park pay nothing.
 */
#include "agent.h"

#include <errno.h>
#include <string.h>
#include <time.h>

typedef void JNICALL park_fn(JNIEnv *jni, jobject unsafe, jboolean absolute, jlong time);
typedef void JNICALL unpark_fn(JNIEnv *jni, jobject unsafe, jobject thread);

static park_fn *real_park;
static unpark_fn *real_unpark;
static jclass ownable; /* AbstractOwnableSynchronizer; NULL while the machine starts */
static jfieldID blocker_field, owner_field;

/* The timeout in ns; 0: none. @time: ns from now, or, if @absolute, ms since 1970 */
static uint64_t limit_of(bool absolute, jlong time)
{
	uint64_t now;

	if (!absolute || time <= 0)
		return time > 0 ? (uint64_t)time : 0;
	now = ja_clock_ns(CLOCK_REALTIME);
	return (uint64_t)time * 1000000 > now ? (uint64_t)time * 1000000 - now : 1;
}

/* Begin a wait for the lock that parks the thread, or else for the thread itself. Return: did the wait begin? */
static bool begin(JNIEnv *jni, jthread thread, uint64_t limit)
{
	jobject blocker = (*jni)->GetObjectField(jni, thread, blocker_field);
	bool has_owner = blocker && (*jni)->IsInstanceOf(jni, blocker, ownable), begun;
	jthread owner = has_owner ? (*jni)->GetObjectField(jni, blocker, owner_field) : NULL;
	bool owned = owner && !ja_is_virtual(jni, owner);
	enum ptt_java_kind kind = owned ? PTT_JAVA_LOCK : has_owner ? PTT_JAVA_SYNC : PTT_JAVA_PARK;

	begun = ja_wait_begin(jni, thread, blocker ? blocker : thread, kind, owned ? ja_id_of(owner) : 0, limit);
	(*jni)->DeleteLocalRef(jni, owner);
	(*jni)->DeleteLocalRef(jni, blocker);
	return begun;
}

/* The calling thread; NULL while the machine starts. */
static jthread current(void)
{
	jthread thread = NULL;

	/* acquire: pairs with the release in ja_parks_begin() */
	if (__atomic_load_n(&ownable, __ATOMIC_ACQUIRE))
		(*ja_jvmti)->GetCurrentThread(ja_jvmti, &thread);
	return thread;
}

static void JNICALL park(JNIEnv *jni, jobject unsafe, jboolean absolute, jlong time)
{
	jthread thread = current();
	uint64_t began, limit;

	if (!thread) {
		real_park(jni, unsafe, absolute, time);
		return;
	}
	limit = limit_of(absolute, time);
	began = ja_clock_ns(CLOCK_MONOTONIC);
	if (!begin(jni, thread, limit)) {
		real_park(jni, unsafe, absolute, time);
	} else {
		real_park(jni, unsafe, absolute, time);
		ja_parked_no_more();
		ja_wait_end(limit && ja_clock_ns(CLOCK_MONOTONIC) - began >= limit ? ETIMEDOUT : 0);
	}
	(*jni)->DeleteLocalRef(jni, thread);
}

static void JNICALL unpark(JNIEnv *jni, jobject unsafe, jobject thread)
{
	struct ptt_java_wait wait;
	jthread caller = ja_parked(thread, &wait) ? current() : NULL;

	if (caller) {
		ja_wake(jni, caller, &wait);
		(*jni)->DeleteLocalRef(jni, caller);
	}
	real_unpark(jni, unsafe, thread);
}

void JNICALL ja_native_bound(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jmethodID method, void *address, void **instead)
{
	char *name, *signature;

	(void)jni;
	(void)thread;
	if ((*jvmti)->GetMethodName(jvmti, method, &name, &signature, NULL) != JVMTI_ERROR_NONE)
		return;
	if (!real_park && !strcmp(name, "park") && !strcmp(signature, "(ZJ)V")) {
		real_park = (park_fn *)address;
		*instead = (void *)park;
	} else if (!real_unpark && !strcmp(name, "unpark") && !strcmp(signature, "(Ljava/lang/Object;)V")) {
		real_unpark = (unpark_fn *)address;
		*instead = (void *)unpark;
	}
	if (real_park && real_unpark)
		(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_NATIVE_METHOD_BIND, NULL);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)name);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
}

void ja_parks_begin(JNIEnv *jni)
{
	jclass thread = (*jni)->FindClass(jni, "java/lang/Thread");
	jclass synchronizer = (*jni)->FindClass(jni, "java/util/concurrent/locks/AbstractOwnableSynchronizer");

	if (thread && synchronizer) {
		blocker_field = (*jni)->GetFieldID(jni, thread, "parkBlocker", "Ljava/lang/Object;");
		owner_field = (*jni)->GetFieldID(jni, synchronizer, "exclusiveOwnerThread", "Ljava/lang/Thread;");
	}
	if ((*jni)->ExceptionCheck(jni))
		(*jni)->ExceptionClear(jni);
	if (blocker_field && owner_field)
		/* release: pairs with the acquire in current(); the fields are set */
		__atomic_store_n(&ownable, (*jni)->NewGlobalRef(jni, synchronizer), __ATOMIC_RELEASE);
}
