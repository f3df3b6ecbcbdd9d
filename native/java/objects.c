/* SPDX-License-Identifier: MIT */
/* objects.c - numbers of objects that threads have waited for, which stay the same where the objects are moved. */
/* The machine keeps the number with the object, as its tag. Numbers of objects that are gone are not used again. */
#include "agent.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 8192u /* so many objects have a name */

static const char *names[NAMED_MAX]; /* of classes, by number; release: pairs with the acquire */
static uint8_t known[NAMED_MAX];     /* by number: a bit for each kind of wait whose type was reported; relaxed */
static uint64_t given;		      /* the last number */
static bool giving;		      /* a thread is about to give one */

/* A lock of java.util.concurrent has what it is made of in a class inside its own. */
static char *shorten(char *name)
{
	static const char *const inner[] = {"$NonfairSync", "$FairSync", "$Sync"};
	char *end = name && strncmp(name, "java.util.concurrent.", strlen("java.util.concurrent.")) == 0 ? strrchr(name, '$') : NULL;

	for (size_t i = 0; end && i < sizeof(inner) / sizeof(*inner); i++)
		if (strcmp(end, inner[i]) == 0)
			*end = '\0';
	return name;
}

/* A class stands for itself, as in Account.class: its static methods are synchronized by it. */
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

/* Of the many objects that have no name it is reported each time. */
static bool is_fresh(jlong number, enum ptt_java_kind kind)
{
	uint8_t bit = (uint8_t)(1u << kind);

	if (number >= NAMED_MAX || __atomic_load_n(&known[number], __ATOMIC_RELAXED) & bit)
		return number >= NAMED_MAX;
	__atomic_fetch_or(&known[number], bit, __ATOMIC_RELAXED);
	return true;
}

/* Where two threads come at once, one number is given. Return: whether the object had none. */
static bool give(jobject object, jlong *number)
{
	bool fresh = false;

	/* acquire, release: one after the other */
	while (__atomic_exchange_n(&giving, true, __ATOMIC_ACQUIRE))
		sched_yield();
	if ((*ja_jvmti)->GetTag(ja_jvmti, object, number) != JVMTI_ERROR_NONE)
		*number = 0;
	else if (!*number && (*ja_jvmti)->SetTag(ja_jvmti, object, (jlong)(given + 1)) == JVMTI_ERROR_NONE) {
		*number = (jlong)++given;
		fresh = true;
	}
	__atomic_store_n(&giving, false, __ATOMIC_RELEASE);
	return fresh;
}

bool ja_number(JNIEnv *jni, jobject object, struct ptt_java_wait *wait)
{
	jlong number = 0;
	bool first = false;

	if ((*ja_jvmti)->GetTag(ja_jvmti, object, &number) != JVMTI_ERROR_NONE)
		return false;
	if (!number)
		first = give(object, &number);
	if (first && number < NAMED_MAX)
		/* release: pairs with the acquire below */
		__atomic_store_n(&names[number], name_of(jni, object), __ATOMIC_RELEASE);
	wait->object = (uint64_t)number;
	wait->fresh = is_fresh(number, wait->kind);
	wait->type = number < NAMED_MAX ? __atomic_load_n(&names[number], __ATOMIC_ACQUIRE) : NULL;
	return number != 0;
}
