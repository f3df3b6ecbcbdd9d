#!/bin/sh
# JVM TI (OpenJDK 17): a wait that the machine refuses has an event MonitorWait and no event MonitorWaited.
#
# Object.wait() throws IllegalMonitorStateException if the thread does not own the monitor. The specification
# of JVM TI sends MonitorWait "when a thread is about to wait" and MonitorWaited when a thread "finishes
# waiting". The machine sends MonitorWait before it checks the owner. An agent that pairs the two events
# believes that the thread waits from then on.
set -eu

tested=17.0.15
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

home=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
version=$("$home/bin/javac" -version 2>&1 | cut -d' ' -f2)
echo "version: OpenJDK $version (tested: OpenJDK $tested)"
if [ "$version" != "$tested" ]; then
	echo "this script knows OpenJDK $tested only"
	exit 1
fi

cat >"$folder/agent.c" <<'END'
#include <jvmti.h>
#include <stdio.h>

static void JNICALL waits(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jlong timeout)
{
	if (timeout == 4711)
		printf("MonitorWait;");
}

static void JNICALL waited(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jboolean timed_out)
{
	if (timed_out)
		printf("MonitorWaited;");
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	jvmtiCapabilities capabilities = {.can_generate_monitor_events = 1};
	jvmtiEventCallbacks callbacks = {.MonitorWait = waits, .MonitorWaited = waited};
	jvmtiEnv *jvmti;

	if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK)
		return JNI_ERR;
	(*jvmti)->AddCapabilities(jvmti, &capabilities);
	(*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks));
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_MONITOR_WAIT, NULL);
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_MONITOR_WAITED, NULL);
	return JNI_OK;
}
END
cat >"$folder/Refused.java" <<'END'
public class Refused {
	public static void main(String[] arguments) throws InterruptedException {
		Object object = new Object();

		try {
			object.wait(4711);
		} catch (IllegalMonitorStateException expected) {
			System.exit(7);
		}
	}
}
END
cc -shared -fPIC -I"$home/include" -I"$home/include/linux" -o "$folder/agent.so" "$folder/agent.c"
"$home/bin/javac" -d "$folder" "$folder/Refused.java"

status=0
seen=$("$home/bin/java" -agentpath:"$folder/agent.so" -cp "$folder" Refused) || status=$?
echo "the call:  IllegalMonitorStateException (exit status $status)"
echo "expected:  no event, or MonitorWait;MonitorWaited;"
echo "seen:      $seen"

[ "$status" = 7 ] && [ "$seen" = "MonitorWait;" ] || exit 1
