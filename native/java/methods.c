/* SPDX-License-Identifier: MIT */
/* methods.c - methods that were met in stacks, each described once. */
/* The table only grows; an entry is put there whole, so that reading takes no lock. */
#include "agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT (1u << 15)
#define PROBES 32u
#define MONITORENTER 0xc2

struct known {
	struct ptt_java_method method;
	jmethodID id;
	unsigned char *code; /* NULL where it takes no monitor in it */
	jint size;
};

static struct known *known[COUNT]; /* release: pairs with the acquire of the threads that look */

static void free_method(struct known *one)
{
	if (!one)
		return;
	free((void *)(uintptr_t)one->method.name);
	free((void *)(uintptr_t)one->method.file);
	free((void *)(uintptr_t)one->method.lines);
	if (one->code)
		(*ja_jvmti)->Deallocate(ja_jvmti, one->code);
	free(one);
}

/* Without lines where the class was compiled without, or the method is native. */
static void describe_lines(jmethodID id, struct ptt_java_method *method)
{
	jvmtiLineNumberEntry *table;
	uint16_t *lines;
	jint count;

	if ((*ja_jvmti)->GetLineNumberTable(ja_jvmti, id, &count, &table) != JVMTI_ERROR_NONE)
		return;
	lines = malloc(((size_t)count + 1) * 2 * sizeof(*lines));
	for (jint i = 0; lines && i < count; i++) {
		lines[2 * i] = (uint16_t)table[i].start_location;
		lines[2 * i + 1] = (uint16_t)table[i].line_number;
	}
	method->lines = lines;
	method->line_count = lines ? (uint32_t)count : 0;
	(*ja_jvmti)->Deallocate(ja_jvmti, (unsigned char *)table);
}

static void keep_code(struct known *one)
{
	if ((*ja_jvmti)->GetBytecodes(ja_jvmti, one->id, &one->size, &one->code) != JVMTI_ERROR_NONE)
		one->code = NULL;
	if (!one->code || memchr(one->code, MONITORENTER, (size_t)one->size))
		return;
	(*ja_jvmti)->Deallocate(ja_jvmti, one->code);
	one->code = NULL;
}

/* Class and method, as in Account.transfer. */
static char *full_name(const char *type, const char *method)
{
	char *name = malloc(strlen(type) + strlen(method) + 2);

	if (name)
		sprintf(name, "%s.%s", type, method);
	return name;
}

static void describe_names(JNIEnv *jni, jmethodID id, struct ptt_java_method *method)
{
	jclass type;
	char *name, *of_class;

	if ((*ja_jvmti)->GetMethodDeclaringClass(ja_jvmti, id, &type) != JVMTI_ERROR_NONE)
		return;
	of_class = ja_class_name(type);
	if (of_class && (*ja_jvmti)->GetMethodName(ja_jvmti, id, &name, NULL, NULL) == JVMTI_ERROR_NONE) {
		method->name = full_name(of_class, name);
		method->file = ja_class_file(type, of_class);
		(*ja_jvmti)->Deallocate(ja_jvmti, (unsigned char *)name);
	}
	free(of_class);
	(*jni)->DeleteLocalRef(jni, type);
}

static struct known *describe(JNIEnv *jni, jmethodID id)
{
	struct known *one = calloc(1, sizeof(*one));

	if (!one)
		return NULL;
	one->id = id;
	describe_names(jni, id, &one->method);
	describe_lines(id, &one->method);
	keep_code(one);
	if (one->method.name && one->method.file)
		return one;
	free_method(one);
	return NULL;
}

uint32_t ja_enters_at(const struct ptt_java_method *method, uint32_t at)
{
	const struct known *one = (const struct known *)method;
	bool after = one->code && at > 0 && at < (uint32_t)one->size && one->code[at] != MONITORENTER &&
		     one->code[at - 1] == MONITORENTER;

	return after ? at - 1 : at;
}

const struct ptt_java_method *ja_method(JNIEnv *jni, jmethodID method)
{
	uint32_t at = (uint32_t)((uintptr_t)method * UINT64_C(0x9e3779b97f4a7c15) >> 49);
	struct known *own = NULL;

	for (uint32_t i = 0; i < PROBES; i++, at = (at + 1) % COUNT) {
		/* acquire: pairs with the release below */
		struct known *found = __atomic_load_n(&known[at], __ATOMIC_ACQUIRE);

		if (!found && !own)
			own = describe(jni, method);
		if (!found && !own)
			return NULL;
		/* release: what it points to is whole; acquire: another thread's is seen whole */
		if (!found && __atomic_compare_exchange_n(&known[at], &found, own, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return &own->method;
		if (found->id == method) {
			free_method(own);
			return &found->method;
		}
	}
	free_method(own);
	return NULL;
}
