/* SPDX-License-Identifier: MIT */
/* agent.c - libpttjava.so: asks a Java virtual machine for its threads' waits, and hands them to the tracer. */
/*
 * Loaded by -agentpath, with the number of frames that stacks are to have as its option. What it asks for costs compiled code
 * nothing: the machine calls it where a thread has to wait, and where a thread begins and ends.
 */
#include "agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_NAME 15 /* so many bytes of a name the machine itself gives to a thread */
#define NESTED 2       /* a thread that was notified may have to wait for the monitor */

jvmtiEnv *ja_jvmti;
static uint32_t depth;
static jclass virtual_thread; /* of Java 21 and later, or NULL */
static bool has_virtual;      /* relaxed: such threads use monitors, more or less since when */

/* What the calling thread waits for, the outermost first. */
static __thread struct {
	uint32_t count;
	bool named;
	struct ptt_java_wait wait[NESTED];
} self;

/* ---- names ---- */

/* A name that does not fit into the kernel's. @always: the kernel's is another one */
static void name_thread(JNIEnv *jni, jthread thread, bool always)
{
	jvmtiThreadInfo info;

	self.named = true;
	if ((*ja_jvmti)->GetThreadInfo(ja_jvmti, thread, &info) != JVMTI_ERROR_NONE)
		return;
	if (always || strlen(info.name) > KERNEL_NAME)
		__nptl_trace_java_name(info.name);
	(*ja_jvmti)->Deallocate(ja_jvmti, (unsigned char *)info.name);
	if (info.thread_group)
		(*jni)->DeleteLocalRef(jni, info.thread_group);
	if (info.context_class_loader)
		(*jni)->DeleteLocalRef(jni, info.context_class_loader);
}

/* ---- waits ---- */

static void find_frames(JNIEnv *jni, jthread thread, struct ptt_java_wait *wait)
{
	jvmtiFrameInfo frame[PTT_JAVA_FRAMES];
	jint count = 0;

	wait->count = 0;
	wait->whole = false;
	if (!depth || (*ja_jvmti)->GetStackTrace(ja_jvmti, thread, 0, (jint)depth, frame, &count) != JVMTI_ERROR_NONE)
		return;
	for (jint i = 0; i < count; i++) {
		const struct ptt_java_method *method = ja_method(jni, frame[i].method);

		if (!method)
			return;
		wait->frame[wait->count++] = (struct ptt_java_frame){
			.method = method, .at = frame[i].location < 0 ? 0 : (uint32_t)frame[i].location,
		};
	}
	wait->whole = (uint32_t)count < depth;
	if (wait->kind == PTT_JAVA_MONITOR && wait->count)
		wait->frame[0].at = ja_enters_at(wait->frame[0].method, wait->frame[0].at);
}

void ja_wait_end(int result)
{
	__nptl_trace_java_waited(&self.wait[--self.count], result);
}

bool ja_is_virtual(JNIEnv *jni, jthread thread)
{
	if (!virtual_thread || !(*jni)->IsInstanceOf(jni, thread, virtual_thread))
		return false;
	__atomic_store_n(&has_virtual, true, __ATOMIC_RELAXED);
	return true;
}

bool ja_wait_begin(JNIEnv *jni, jthread thread, jobject object, enum ptt_java_kind kind, uint32_t owner, uint64_t timeout_ns)
{
	struct ptt_java_wait *wait = &self.wait[self.count];

	if (self.count == NESTED || ja_is_virtual(jni, thread))
		return false;
	wait->kind = kind;
	if (!ja_number(jni, object, wait))
		return false;
	if (!self.named)
		name_thread(jni, thread, false);
	wait->timeout_ns = timeout_ns;
	wait->owner = owner;
	find_frames(jni, thread, wait);
	self.count++;
	__nptl_trace_java_wait(wait);
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
	__nptl_trace_java_wake(wait);
}

/* The innermost wait, if it is of that kind. */
static bool waits_for(enum ptt_java_kind kind)
{
	return self.count && self.wait[self.count - 1].kind == kind;
}

/* Where virtual threads have monitors, one whose owner is not known is not that of the thread which was seen to have it last. */
static void JNICALL contended_enter(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object)
{
	uint32_t owner;

	(void)jvmti;
	if (ja_is_virtual(jni, thread))
		return;
	owner = ja_owner(jni, object);
	ja_wait_begin(jni, thread, object,
		      owner || !__atomic_load_n(&has_virtual, __ATOMIC_RELAXED) ? PTT_JAVA_MONITOR : PTT_JAVA_VIRTUAL, owner, 0);
}

static void JNICALL contended_entered(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object)
{
	(void)jvmti;
	(void)object;
	if (!ja_is_virtual(jni, thread) && (waits_for(PTT_JAVA_MONITOR) || waits_for(PTT_JAVA_VIRTUAL)))
		ja_wait_end(0);
}

static void JNICALL monitor_wait(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jlong timeout_ms)
{
	(void)jvmti;
	/* one that was refused, since the thread did not have the monitor, has no end */
	while (self.count && !ja_is_virtual(jni, thread))
		ja_wait_end(ECANCELED);
	ja_wait_begin(jni, thread, object, PTT_JAVA_NOTIFY, 0, (uint64_t)timeout_ms * 1000000);
}

static void JNICALL monitor_waited(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jboolean timed_out)
{
	(void)jvmti;
	(void)object;
	if (!ja_is_virtual(jni, thread) && waits_for(PTT_JAVA_NOTIFY))
		ja_wait_end(timed_out ? ETIMEDOUT : 0);
}

/* ---- beginnings and ends ---- */

static void JNICALL thread_start(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	(void)jvmti;
	(void)jni;
	ja_thread_begin(thread);
}

static void JNICALL thread_end(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	(void)jvmti;
	while (self.count)
		ja_wait_end(ECANCELED);
	if (!self.named)
		name_thread(jni, thread, false);
	ja_thread_end(thread);
}

static void JNICALL machine_begins(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	jclass found = (*jni)->FindClass(jni, "java/lang/BaseVirtualThread");

	(void)jvmti;
	if (found)
		virtual_thread = (*jni)->NewGlobalRef(jni, found);
	else
		(*jni)->ExceptionClear(jni);
	ja_parks_begin(jni);
	ja_thread_begin(thread);
	name_thread(jni, thread, true); /* the launcher has named it after itself */
}

/* ---- start ---- */

static bool enable(void)
{
	static const jvmtiEvent wanted[] = {
		JVMTI_EVENT_VM_INIT, JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END,
		JVMTI_EVENT_MONITOR_CONTENDED_ENTER, JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
		JVMTI_EVENT_MONITOR_WAIT, JVMTI_EVENT_MONITOR_WAITED, JVMTI_EVENT_NATIVE_METHOD_BIND,
	};
	const jvmtiCapabilities capabilities = {
		.can_generate_monitor_events = 1, .can_get_monitor_info = 1, .can_tag_objects = 1,
		.can_get_source_file_name = 1, .can_get_line_numbers = 1, .can_get_bytecodes = 1,
		/* the methods that park and wake are bound very early, and are known by their names */
		.can_generate_native_method_bind_events = 1, .can_generate_early_vmstart = 1,
	};
	const jvmtiEventCallbacks callbacks = {
		.VMInit = machine_begins, .ThreadStart = thread_start, .ThreadEnd = thread_end,
		.MonitorContendedEnter = contended_enter, .MonitorContendedEntered = contended_entered,
		.MonitorWait = monitor_wait, .MonitorWaited = monitor_waited,
		.NativeMethodBind = ja_native_bound,
	};
	bool done = (*ja_jvmti)->AddCapabilities(ja_jvmti, &capabilities) == JVMTI_ERROR_NONE &&
		    (*ja_jvmti)->SetEventCallbacks(ja_jvmti, &callbacks, sizeof(callbacks)) == JVMTI_ERROR_NONE;

	for (size_t i = 0; done && i < sizeof(wanted) / sizeof(*wanted); i++)
		done = (*ja_jvmti)->SetEventNotificationMode(ja_jvmti, JVMTI_ENABLE, wanted[i], NULL) == JVMTI_ERROR_NONE;
	return done;
}

/* The machine goes on without an agent that returns an error only by ending: so there is none. */
JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	uint32_t frames = options ? (uint32_t)strtoul(options, NULL, 10) : 0;

	(void)reserved;
	depth = frames < PTT_JAVA_FRAMES ? frames : PTT_JAVA_FRAMES;
	if (!__nptl_trace_java_wait || (*vm)->GetEnv(vm, (void **)&ja_jvmti, JVMTI_VERSION_1_2) != JNI_OK)
		return JNI_OK;
	enable();
	return JNI_OK;
}
