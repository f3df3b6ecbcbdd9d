/* SPDX-License-Identifier: MIT */
/* classes.c - the names of classes and of their source files. */
#include "agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

jvmtiEnv *ja_jvmti;

static const char *primitive_name(char type)
{
	switch (type) {
	case 'Z': return "boolean";
	case 'B': return "byte";
	case 'C': return "char";
	case 'S': return "short";
	case 'I': return "int";
	case 'J': return "long";
	case 'F': return "float";
	default: return "double";
	}
}

/* @signature: of a class, as Ljava/lang/Object; or of an array, as [[I (JVM specification, 4.3.2) */
static char *readable_name(const char *signature)
{
	size_t dimensions = strspn(signature, "["), length;
	const char *type = signature + dimensions;
	char *name;

	if (*type == 'L')
		length = strcspn(++type, ";");
	else
		length = strlen(type = primitive_name(*type));
	name = malloc(length + 2 * dimensions + 1);
	if (!name)
		return NULL;
	for (size_t i = 0; i < length; i++)
		name[i] = type[i] == '/' ? '.' : type[i];
	for (size_t i = 0; i < dimensions; i++)
		memcpy(name + length + 2 * i, "[]", 2);
	name[length + 2 * dimensions] = '\0';
	return name;
}

char *ja_class_name(jclass type)
{
	char *signature, *name;

	if ((*ja_jvmti)->GetClassSignature(ja_jvmti, type, &signature, NULL) != JVMTI_ERROR_NONE)
		return NULL;
	name = readable_name(signature);
	(*ja_jvmti)->Deallocate(ja_jvmti, (unsigned char *)signature);
	return name;
}

char *ja_class_file(jclass type, const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t package = dot ? (size_t)(dot - name) + 1 : 0;
	char *file = NULL, *path;

	if ((*ja_jvmti)->GetSourceFileName(ja_jvmti, type, &file) != JVMTI_ERROR_NONE)
		file = NULL;
	path = malloc(package + (file ? strlen(file) : 0) + 1);
	if (path) {
		for (size_t i = 0; i < package; i++)
			path[i] = name[i] == '.' ? '/' : name[i];
		strcpy(path + package, file ? file : "");
	}
	(*ja_jvmti)->Deallocate(ja_jvmti, (unsigned char *)file);
	return path;
}
