/* SPDX-License-Identifier: MIT */
/* methods.c - the methods of stacks, in a table. The table only grows, and its entries are complete, so that reading takes no lock. */
#include "agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT (1u << 15)
#define PROBES 32u
#define MONITORENTER 0xc2

struct entry {
	struct ptt_java_method method;
	jmethodID id;
	unsigned char *code; /* bytecodes; NULL if the method contains no monitorenter */
	jint size;
};

static struct entry *entries[COUNT]; /* acquire and release in ja_method() */

static void free_entry(struct entry *entry)
{
	if (!entry)
		return;
	free((void *)(uintptr_t)entry->method.name);
	free((void *)(uintptr_t)entry->method.file);
	free((void *)(uintptr_t)entry->method.lines);
	if (entry->code)
		(*ja_jvmti)->Deallocate(ja_jvmti, entry->code);
	free(entry);
}

/* A native method has no lines, nor has a class compiled without them. */
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

static void keep_code(struct entry *entry)
{
	if ((*ja_jvmti)->GetBytecodes(ja_jvmti, entry->id, &entry->size, &entry->code) != JVMTI_ERROR_NONE)
		entry->code = NULL;
	if (!entry->code || memchr(entry->code, MONITORENTER, (size_t)entry->size))
		return;
	(*ja_jvmti)->Deallocate(ja_jvmti, entry->code);
	entry->code = NULL;
}

/* The name has class and method, as in Account.transfer. */
static void describe_names(JNIEnv *jni, jmethodID id, struct ptt_java_method *method)
{
	jclass type;
	char *name, *full, *of_class;

	if ((*ja_jvmti)->GetMethodDeclaringClass(ja_jvmti, id, &type) != JVMTI_ERROR_NONE)
		return;
	of_class = ja_class_name(type);
	if (of_class && (*ja_jvmti)->GetMethodName(ja_jvmti, id, &name, NULL, NULL) == JVMTI_ERROR_NONE) {
		full = malloc(strlen(of_class) + strlen(name) + 2);
		if (full)
			sprintf(full, "%s.%s", of_class, name);
		method->name = full;
		method->file = ja_class_file(type, of_class);
		(*ja_jvmti)->Deallocate(ja_jvmti, (unsigned char *)name);
	}
	free(of_class);
	(*jni)->DeleteLocalRef(jni, type);
}

static struct entry *describe(JNIEnv *jni, jmethodID id)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->id = id;
	describe_names(jni, id, &entry->method);
	describe_lines(id, &entry->method);
	keep_code(entry);
	if (entry->method.name && entry->method.file)
		return entry;
	free_entry(entry);
	return NULL;
}

uint32_t ja_enters_at(const struct ptt_java_method *method, uint32_t at)
{
	const struct entry *entry = (const struct entry *)method;
	bool after = entry->code && at > 0 && at < (uint32_t)entry->size && entry->code[at] != MONITORENTER &&
		     entry->code[at - 1] == MONITORENTER;

	return after ? at - 1 : at;
}

const struct ptt_java_method *ja_method(JNIEnv *jni, jmethodID method)
{
	uint32_t at = (uint32_t)((uintptr_t)method * UINT64_C(0x9e3779b97f4a7c15) >> 49);
	struct entry *fresh = NULL;

	for (uint32_t i = 0; i < PROBES; i++, at = (at + 1) % COUNT) {
		/* acquire: pairs with the release below */
		struct entry *entry = __atomic_load_n(&entries[at], __ATOMIC_ACQUIRE);

		if (!entry && !fresh)
			fresh = describe(jni, method);
		if (!entry && !fresh)
			return NULL;
		/* release: publishes a complete entry; acquire: another thread's entry is complete */
		if (!entry && __atomic_compare_exchange_n(&entries[at], &entry, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return &fresh->method;
		if (entry->id == method) {
			free_entry(fresh);
			return &entry->method;
		}
	}
	free_entry(fresh);
	return NULL;
}
