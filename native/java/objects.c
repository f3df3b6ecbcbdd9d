/* SPDX-License-Identifier: MIT */
/* objects.c - numbers of the objects that threads waited for. The number stays when the machine moves the object. */
/* The machine keeps the number as the object's tag (JVM TI, SetTag). A number is never used again. */
#include "agent.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 8192u /* objects with a known class, at most */

static const char *names[NAMED_MAX]; /* of classes, by number; acquire and release in ja_number() */
/* by number: a bit for each kind of wait with a reported class; relaxed: a class may be reported twice */
static uint32_t reported[NAMED_MAX];
static uint64_t last_number; /* under the lock */
static uint32_t locked;	     /* spin lock of the numbers; a word: riscv64 has no exchange of bytes */

/* A lock of java.util.concurrent blocks on an object of an inner class: show the class of the lock. */
static char *shorten(char *name)
{
	static const char *const inner[] = {"$NonfairSync", "$FairSync", "$Sync"};
	char *end = name && strncmp(name, "java.util.concurrent.", strlen("java.util.concurrent.")) == 0 ? strrchr(name, '$') : NULL;

	for (size_t i = 0; end && i < sizeof(inner) / sizeof(*inner); i++)
		if (strcmp(end, inner[i]) == 0)
			*end = '\0';
	return name;
}

/* Static synchronized methods lock the class itself; its name is, for example, Account.class. */
static char *name_of(JNIEnv *jni, jobject object)
{
	jclass type = (*jni)->GetObjectClass(jni, object);
	jclass type_of_type = (*jni)->GetObjectClass(jni, type);
	bool is_class = (*jni)->IsSameObject(jni, type, type_of_type);
	char *name = ja_class_name(is_class ? object : type), *longer;

	(*jni)->DeleteLocalRef(jni, type_of_type);
	(*jni)->DeleteLocalRef(jni, type);
	longer = name && is_class ? realloc(name, strlen(name) + sizeof(".class")) : NULL;
	return longer ? strcat(longer, ".class") : shorten(name);
}

/* Is the class to be reported? For a number beyond NAMED_MAX, always. */
static bool is_fresh(jlong number, enum ptt_java_kind kind)
{
	uint32_t bit = 1u << kind;

	if (number >= NAMED_MAX || __atomic_load_n(&reported[number], __ATOMIC_RELAXED) & bit)
		return number >= NAMED_MAX;
	__atomic_fetch_or(&reported[number], bit, __ATOMIC_RELAXED);
	return true;
}

/* Give an object a number, also if two threads ask at once. Return: whether this call gave it. */
static bool give_number(jobject object, jlong *number)
{
	bool fresh = false;

	/* acquire and release: a lock */
	while (__atomic_exchange_n(&locked, true, __ATOMIC_ACQUIRE))
		sched_yield();
	if ((*ja_jvmti)->GetTag(ja_jvmti, object, number) != JVMTI_ERROR_NONE)
		*number = 0;
	else if (!*number && (*ja_jvmti)->SetTag(ja_jvmti, object, (jlong)(last_number + 1)) == JVMTI_ERROR_NONE) {
		*number = (jlong)++last_number;
		fresh = true;
	}
	__atomic_store_n(&locked, false, __ATOMIC_RELEASE);
	return fresh;
}

bool ja_number(JNIEnv *jni, jobject object, struct ptt_java_wait *wait)
{
	jlong number = 0;
	bool first = false;

	if ((*ja_jvmti)->GetTag(ja_jvmti, object, &number) != JVMTI_ERROR_NONE)
		return false;
	if (!number)
		first = give_number(object, &number);
	if (first && number < NAMED_MAX)
		/* release: pairs with the acquire below */
		__atomic_store_n(&names[number], name_of(jni, object), __ATOMIC_RELEASE);
	wait->object = (uint64_t)number;
	wait->fresh = is_fresh(number, wait->kind);
	wait->type = number < NAMED_MAX ? __atomic_load_n(&names[number], __ATOMIC_ACQUIRE) : NULL;
	return number != 0;
}
