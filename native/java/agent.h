/* SPDX-License-Identifier: MIT */
/* agent.h - the functions of each part of the agent. A part may call only the parts above it in this list. */
#ifndef PTT_JAVA_AGENT_H
#define PTT_JAVA_AGENT_H

#include <jvmti.h>

#include <time.h>

#include "origin/java.h"

/* ja_clock_ns - the time by a clock, in ns. */
static inline uint64_t ja_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- classes.c ---- */

/* The agent's environment; set once, in Agent_OnLoad(). */
extern jvmtiEnv *ja_jvmti;

/* ja_class_name - the name of a class as in source code. The caller frees it. NULL: unknown. */
char *ja_class_name(jclass type);
/*
 * ja_class_file - the path of the source file: directory of the package, and file. The caller frees it. NULL: out of
 * memory.
 */
char *ja_class_file(jclass type, const char *name);

/* ---- methods.c ---- */

/* ja_method - the name, file and lines of a method; NULL if they are unknown, or if the table is full. Takes no lock. */
const struct ptt_java_method *ja_method(JNIEnv *jni, jmethodID method);

/*
 * ja_enters_at - the bytecode that enters a monitor, for a thread at bytecode @at. The interpreter is at the next
 * bytecode already, and the next bytecode may belong to the next line.
 */
uint32_t ja_enters_at(const struct ptt_java_method *method, uint32_t at);

/* ---- objects.c ---- */

/*
 * ja_number - fill in number and class of an object in @wait; @wait->kind is set. Return: false if the object cannot
 * have a number.
 */
bool ja_number(JNIEnv *jni, jobject object, struct ptt_java_wait *wait);

/* ---- threads.c ---- */

/* ja_thread_begin - register the calling thread, so that other threads find it by @thread. */
void ja_thread_begin(jthread thread);
void ja_thread_end(jthread thread);
/* ja_id_of - kernel id of a thread; 0: unknown. */
uint32_t ja_id_of(jthread thread);
/* ja_parked_for - register the object that the calling thread parks for, by its number. */
void ja_parked_for(enum ptt_java_kind kind, uint64_t object);
void ja_parked_no_more(void);
/* ja_parked - fill in kind and object that a thread is parked for. Return: false if the thread is not parked. */
bool ja_parked(jthread thread, struct ptt_java_wait *wait);

/* ja_threads_begin - look up the class of virtual threads. */
void ja_threads_begin(JNIEnv *jni);
/*
 * ja_is_virtual - is @thread virtual? The agent reports no virtual thread, because it may continue in another kernel
 * thread. Remembers that the process has virtual threads.
 */
bool ja_is_virtual(JNIEnv *jni, jthread thread);
/* ja_has_virtual - has there been any virtual thread so far? */
bool ja_has_virtual(void);

/* ---- waits.c ---- */

/* Set once, when the agent begins: the tracer, and the frames of a reported stack, at most. */
extern const struct ptt_java_tracer *ja_tracer;
extern uint32_t ja_frames;

/*
 * ja_thread_name - report the calling thread's name once, if the kernel's name is shorter. ja_thread_rename - report
 * it always.
 */
void ja_thread_name(JNIEnv *jni, jthread thread);
void ja_thread_rename(JNIEnv *jni, jthread thread);
/*
 * ja_wait_begin - the calling thread begins to wait for an object
 * @owner: kernel id of the thread that has the object, 0 if unknown; @timeout_ns: 0 if there is no limit
 * Return: false if the wait is not reported; then do not report its end either.
 */
bool ja_wait_begin(JNIEnv *jni, jthread thread, jobject object, enum ptt_java_kind kind, uint32_t owner, uint64_t timeout_ns);
/* ja_wake - the calling thread is about to wake a thread. @wait has kind and object; the function fills in the rest. */
void ja_wake(JNIEnv *jni, jthread thread, struct ptt_java_wait *wait);
/* ja_wait_end - the innermost wait of the calling thread is over; see waited() of struct ptt_java_tracer. */
void ja_wait_end(int result);
/* ja_wait_cancel - all waits of the calling thread are over. */
void ja_wait_cancel(void);
/* ja_waits_for - is the innermost wait of the calling thread of this kind? */
bool ja_waits_for(enum ptt_java_kind kind);

/* ---- monitors.c: events of the machine ---- */

/* ja_monitors_begin - look up Thread.holdsLock(). */
void ja_monitors_begin(JNIEnv *jni);
void JNICALL ja_contended_enter(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object);
void JNICALL ja_contended_entered(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object);
void JNICALL ja_monitor_wait(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jlong timeout_ms);
void JNICALL ja_monitor_waited(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jboolean timed_out);

/* ---- parks.c ---- */

/* ja_native_bound - the machine binds a native method. The agent replaces the methods that park and wake threads. */
void JNICALL ja_native_bound(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jmethodID method, void *address, void **instead);
/* ja_parks_begin - look up the fields that say what a thread is parked for, and who owns it. */
void ja_parks_begin(JNIEnv *jni);

#endif
