/* SPDX-License-Identifier: MIT */
/* agent.h - what the parts of the agent share. A part may call the parts that stand before it here. */
#ifndef PTT_JAVA_AGENT_H
#define PTT_JAVA_AGENT_H

#include <jvmti.h>

#include "origin/java.h"

/* ---- classes.c ---- */

/* Set once, when the agent begins. */
extern jvmtiEnv *ja_jvmti;

/* ja_class_name - of a class, as a source has it, to be freed; NULL: it is not known. */
char *ja_class_name(jclass type);
/* ja_class_file - the source file of a class with the directory of its package, to be freed; never NULL but out of memory. */
char *ja_class_file(jclass type, const char *name);

/* ---- methods.c ---- */

/* ja_method - the name, file and lines of a method; NULL if they are not known, or if too many methods are known. Takes no lock. */
const struct ptt_java_method *ja_method(JNIEnv *jni, jmethodID method);

/*
 * ja_enters_at - the bytecode by which a thread that is at @at enters a monitor
 *
 * The interpreter is at the next bytecode already, which may belong to the next line.
 */
uint32_t ja_enters_at(const struct ptt_java_method *method, uint32_t at);

/* ---- objects.c ---- */

/* ja_number - gives @wait, which is of some kind, the number and the class of an object. Return: false if it can have none. */
bool ja_number(JNIEnv *jni, jobject object, struct ptt_java_wait *wait);

/* ---- threads.c ---- */

/* ja_thread_begin - so that others know the calling thread by @thread. */
void ja_thread_begin(jthread thread);
void ja_thread_end(jthread thread);
/* ja_id_of - what the kernel knows a thread by; 0 if that is not known. */
uint32_t ja_id_of(jthread thread);
/* ja_parked_for - so that others know what the calling thread is parked for. @object: its number */
void ja_parked_for(enum ptt_java_kind kind, uint64_t object);
void ja_parked_no_more(void);
/* ja_parked - puts into @wait kind and object that a thread is parked for. Return: false if it is not. */
bool ja_parked(jthread thread, struct ptt_java_wait *wait);

/* ja_threads_begin - there may be virtual threads from now on. */
void ja_threads_begin(JNIEnv *jni);
/*
 * ja_is_virtual - is @thread virtual? Such a thread may go on in another thread of the kernel, so nothing is reported of it. Remembers
 * it.
 */
bool ja_is_virtual(JNIEnv *jni, jthread thread);
/* ja_has_virtual - has there been any virtual thread so far? */
bool ja_has_virtual(void);

/* ---- waits.c ---- */

/* Set once, when the agent begins: the tracer, and the number of frames of each stack. */
extern const struct ptt_java_tracer *ja_tracer;
extern uint32_t ja_frames;

/* ja_thread_name - reports the calling thread's name, once, if the kernel's is shorter. ja_thread_rename - reports it in any case. */
void ja_thread_name(JNIEnv *jni, jthread thread);
void ja_thread_rename(JNIEnv *jni, jthread thread);
/*
 * ja_wait_begin - the calling thread begins to wait for an object
 * @owner: thread that has it, 0 if that is not known; @timeout_ns: 0 if there is no limit
 * Return: false if that is not reported, and nor is its end to be.
 */
bool ja_wait_begin(JNIEnv *jni, jthread thread, jobject object, enum ptt_java_kind kind, uint32_t owner, uint64_t timeout_ns);
/* ja_wake - the calling thread is about to wake a thread that waits. @wait says for what; the rest of it is filled in. */
void ja_wake(JNIEnv *jni, jthread thread, struct ptt_java_wait *wait);
/* ja_wait_end - the innermost wait of the calling thread is over; see waited() of struct ptt_java_tracer. */
void ja_wait_end(int result);
/* ja_wait_cancel - all waits of the calling thread are over. */
void ja_wait_cancel(void);
/* ja_waits_for - is the innermost wait of the calling thread of this kind? */
bool ja_waits_for(enum ptt_java_kind kind);

/* ---- monitors.c: events of the machine ---- */

/* ja_monitors_begin - the machine can be asked from now on whether a thread has a monitor. */
void ja_monitors_begin(JNIEnv *jni);
void JNICALL ja_contended_enter(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object);
void JNICALL ja_contended_entered(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object);
void JNICALL ja_monitor_wait(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jlong timeout_ms);
void JNICALL ja_monitor_waited(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jboolean timed_out);

/* ---- parks.c ---- */

/* ja_native_bound - the machine has found a native method. The agent takes over the methods that park and wake threads. */
void JNICALL ja_native_bound(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jmethodID method, void *address, void **instead);
/* ja_parks_begin - what there is to know of parked threads can be asked from now on. */
void ja_parks_begin(JNIEnv *jni);

#endif
