/* SPDX-License-Identifier: MIT */
/* agent.h - what the parts of the agent share: the machine, and what is known of methods, objects and owners. */
#ifndef PTT_JAVA_AGENT_H
#define PTT_JAVA_AGENT_H

#include <jvmti.h>

#include "origin/java.h"

extern jvmtiEnv *ja_jvmti;

/* ---- texts.c ---- */

/* ja_class_name - of a class, as a source has it, to be freed; NULL: it is not known. */
char *ja_class_name(jclass type);
/* ja_class_file - the source file of a class with the directory of its package, to be freed; never NULL but out of memory. */
char *ja_class_file(jclass type, const char *name);

/* ---- methods.c ---- */

/* ja_method - what is known of a method; NULL if nothing is, or too many are. Takes no lock. */
const struct ptt_java_method *ja_method(JNIEnv *jni, jmethodID method);

/* ---- objects.c ---- */

/* ja_number - gives @wait, which is of some kind, the number and the class of an object. Return: false if it can have none. */
bool ja_number(JNIEnv *jni, jobject object, struct ptt_java_wait *wait);

/* ---- owners.c ---- */

/* ja_owner_begin - so that others know the calling thread by @thread. */
void ja_owner_begin(jthread thread);
/* ja_owner - the kernel's id of the thread that has a monitor; 0 if it is not known, or to ask now would cost too much. */
uint32_t ja_owner(JNIEnv *jni, jobject object);

#endif
