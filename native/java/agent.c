/* SPDX-License-Identifier: MIT */
/* agent.c - libpttjava.so: receives the waits of threads from a Java virtual machine (JVM TI), and passes them to the tracer. */
/*
 * The option -agentpath loads the agent; the agent's own option is the number of frames of stacks. The agent costs
 * compiled code nothing: the machine calls it only when a thread has to wait, begins or ends.
 */
#include "agent.h"

#include <dlfcn.h>
#include <stdlib.h>

static void JNICALL thread_start(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	(void)jvmti;
	(void)jni;
	ja_thread_begin(thread);
}

static void JNICALL thread_end(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	(void)jvmti;
	ja_wait_cancel();
	ja_thread_name(jni, thread);
	ja_thread_end(thread);
}

static void JNICALL machine_begins(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	(void)jvmti;
	ja_threads_begin(jni);
	ja_monitors_begin(jni);
	ja_parks_begin(jni);
	ja_thread_begin(thread);
	ja_thread_rename(jni, thread); /* in the kernel the thread still has the launcher's name */
}

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
		/* the machine binds the methods that park and wake very early */
		.can_generate_native_method_bind_events = 1, .can_generate_early_vmstart = 1,
	};
	const jvmtiEventCallbacks callbacks = {
		.VMInit = machine_begins, .ThreadStart = thread_start, .ThreadEnd = thread_end,
		.MonitorContendedEnter = ja_contended_enter, .MonitorContendedEntered = ja_contended_entered,
		.MonitorWait = ja_monitor_wait, .MonitorWaited = ja_monitor_waited,
		.NativeMethodBind = ja_native_bound,
	};
	bool done = (*ja_jvmti)->AddCapabilities(ja_jvmti, &capabilities) == JVMTI_ERROR_NONE &&
		    (*ja_jvmti)->SetEventCallbacks(ja_jvmti, &callbacks, sizeof(callbacks)) == JVMTI_ERROR_NONE;

	for (size_t i = 0; done && i < sizeof(wanted) / sizeof(*wanted); i++)
		done = (*ja_jvmti)->SetEventNotificationMode(ja_jvmti, JVMTI_ENABLE, wanted[i], NULL) == JVMTI_ERROR_NONE;
	return done;
}

/* Always returns JNI_OK: the machine ends if an agent returns an error. */
JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	uint32_t frames = options ? (uint32_t)strtoul(options, NULL, 10) : 0;

	(void)reserved;
	ja_frames = frames < PTT_JAVA_FRAMES ? frames : PTT_JAVA_FRAMES;
	ja_tracer = dlsym(RTLD_DEFAULT, PTT_JAVA_TRACER);
	if (!ja_tracer || (*vm)->GetEnv(vm, (void **)&ja_jvmti, JVMTI_VERSION_1_2) != JNI_OK)
		return JNI_OK;
	enable();
	return JNI_OK;
}
