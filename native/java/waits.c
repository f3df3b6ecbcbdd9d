/* SPDX-License-Identifier: MIT */
/* waits.c - reports waits and wake-ups of the calling thread to the tracer, with the thread's name and frames. */
#include "agent.h"

#include <errno.h>
#include <string.h>

#define KERNEL_NAME 15 /* bytes of a thread's name that the machine gives to the kernel */
#define NESTED 2       /* a thread that was notified may have to wait for the monitor */

const struct ptt_java_tracer *ja_tracer;
uint32_t ja_frames;

/* The waits of the calling thread, the outermost first. */
static __thread struct {
	uint32_t count;
	bool named;
	struct ptt_java_wait wait[NESTED];
} self;

/* ---- names ---- */

/* @always: report also a name that fits into the kernel's, because the kernel has another name */
static void report_name(JNIEnv *jni, jthread thread, bool always)
{
	jvmtiThreadInfo info;

	self.named = true;
	if ((*ja_jvmti)->GetThreadInfo(ja_jvmti, thread, &info) != JVMTI_ERROR_NONE)
		return;
	if (always || strlen(info.name) > KERNEL_NAME)
		ja_tracer->name(info.name);
	(*ja_jvmti)->Deallocate(ja_jvmti, (unsigned char *)info.name);
	if (info.thread_group)
		(*jni)->DeleteLocalRef(jni, info.thread_group);
	if (info.context_class_loader)
		(*jni)->DeleteLocalRef(jni, info.context_class_loader);
}

void ja_thread_name(JNIEnv *jni, jthread thread)
{
	if (!self.named)
		report_name(jni, thread, false);
}

void ja_thread_rename(JNIEnv *jni, jthread thread)
{
	report_name(jni, thread, true);
}

/* ---- waits ---- */

static void find_frames(JNIEnv *jni, jthread thread, struct ptt_java_wait *wait)
{
	jvmtiFrameInfo frame[PTT_JAVA_FRAMES];
	jint count = 0;

	wait->count = 0;
	wait->whole = false;
	if (!ja_frames || (*ja_jvmti)->GetStackTrace(ja_jvmti, thread, 0, (jint)ja_frames, frame, &count) != JVMTI_ERROR_NONE)
		return;
	for (jint i = 0; i < count; i++) {
		const struct ptt_java_method *method = ja_method(jni, frame[i].method);

		if (!method)
			return;
		wait->frame[wait->count++] = (struct ptt_java_frame){
			.method = method, .at = frame[i].location < 0 ? 0 : (uint32_t)frame[i].location,
		};
	}
	wait->whole = (uint32_t)count < ja_frames;
	if (wait->kind == PTT_JAVA_MONITOR && wait->count)
		wait->frame[0].at = ja_enters_at(wait->frame[0].method, wait->frame[0].at);
}

void ja_wait_end(int result)
{
	ja_tracer->waited(&self.wait[--self.count], result);
}

void ja_wait_cancel(void)
{
	while (self.count)
		ja_wait_end(ECANCELED);
}

bool ja_wait_begin(JNIEnv *jni, jthread thread, jobject object, enum ptt_java_kind kind, uint32_t owner, uint64_t timeout_ns)
{
	struct ptt_java_wait *wait = &self.wait[self.count];

	if (self.count == NESTED || ja_is_virtual(jni, thread))
		return false;
	wait->kind = kind;
	if (!ja_number(jni, object, wait))
		return false;
	ja_thread_name(jni, thread);
	wait->timeout_ns = timeout_ns;
	wait->owner = owner;
	find_frames(jni, thread, wait);
	self.count++;
	ja_tracer->wait(wait);
	if (kind == PTT_JAVA_LOCK || kind == PTT_JAVA_SYNC || kind == PTT_JAVA_PARK)
		ja_parked_for(kind, wait->object);
	return true;
}

void ja_wake(JNIEnv *jni, jthread thread, struct ptt_java_wait *wait)
{
	if (ja_is_virtual(jni, thread))
		return;
	wait->type = NULL;
	find_frames(jni, thread, wait);
	ja_tracer->wake(wait);
}

bool ja_waits_for(enum ptt_java_kind kind)
{
	return self.count && self.wait[self.count - 1].kind == kind;
}
