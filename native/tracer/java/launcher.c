/* SPDX-License-Identifier: MIT */
/* launcher.c - gives the agent (native/java) to Java virtual machines that the process starts. */
/*
 * The commands of a JDK, `java` and others, call JLI_Launch() of their library. The arguments are final: they include
 * arguments from files and from the environment. So a machine gets its agent even if scripts start it. The machine
 * prints no message, as it would for an option in its environment. A program that is linked with a machine's library
 * calls JNI_CreateJavaVM(). The commands get the address of that function from the library, past this hook.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler.h"

#define AGENT "libpttjava.so"
#define OF_COMMANDS "-J" /* prefix of options for the machine in all commands except `java` */

typedef int launch(int argc, char **argv, int jargc, const char **jargv, int appclassc, const char **appclassv,
		   const char *full_version, const char *version, const char *program, const char *launcher,
		   unsigned char java_args, unsigned char wildcards, unsigned char windows, int ergonomics);

EXPORT launch JLI_Launch;

/* JavaVMOption and JavaVMInitArgs of <jni.h>. */
struct machine_option {
	char *text;
	void *more;
};

struct machine_arguments {
	int32_t version, count;
	struct machine_option *options;
	unsigned char ignores;
};

EXPORT int32_t JNI_CreateJavaVM(void **machine, void **env, void *arguments);

/*
 * Does an argument forbid the agent? A machine that writes an archive of its classes refuses to run with an agent. A
 * machine may also have the agent already.
 */
static bool forbids(const char *word)
{
	static const char *const archives[] = {
		"-Xshare:dump", "-XX:ArchiveClassesAtExit", "-XX:+AutoCreateSharedArchive", "-XX:AOTMode=record",
		"-XX:AOTMode=create", "-XX:AOTCacheOutput",
	};
	size_t i;

	for (i = 0; i < sizeof(archives) / sizeof(*archives); i++)
		if (strstr(word, archives[i]))
			return true;
	return strstr(word, AGENT);
}

static bool forbidden_by_environment(void)
{
	static const char *const variables[] = {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"};
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *value = getenv(variables[i]);

		if (value && forbids(value))
			return true;
	}
	return false;
}

/*
 * Make the option that loads the agent. The machine takes the text before the first equals sign as the path. Return:
 * false: no agent.
 */
static bool make_option(char *option, size_t size, bool of_command)
{
	char path[PATH_MAX], depth[8];
	int n;

	if (!__nptl_trace_enabled || !ptt_tracing_option("java", depth, sizeof(depth)) ||
	    !ptt_path_beside_us(AGENT, path, sizeof(path)) || strchr(path, '='))
		return false;
	n = snprintf(option, size, "%s-agentpath:%s=%s", of_command ? OF_COMMANDS : "", path, depth);
	return n > 0 && (size_t)n < size;
}

/* Java 8, with the version 1.8, lacks the interface that the agent uses. */
static bool takes_agent(int argc, char **argv, const char *version)
{
	int i;

	for (i = 0; i < argc; i++)
		if (forbids(argv[i]))
			return false;
	return argc > 0 && version && strncmp(version, "1.", 2) != 0 && !forbidden_by_environment();
}

EXPORT int JLI_Launch(int argc, char **argv, int jargc, const char **jargv, int appclassc, const char **appclassv,
		      const char *full_version, const char *version, const char *program, const char *launcher,
		      unsigned char java_args, unsigned char wildcards, unsigned char windows, int ergonomics)
{
	launch *real = (launch *)dlsym(RTLD_NEXT, "JLI_Launch");
	char option[PATH_MAX + 64];

	if (!real)
		return 1;
	if (takes_agent(argc, argv, full_version) && make_option(option, sizeof(option), java_args)) {
		char **longer = alloca(((size_t)argc + 2) * sizeof(*longer));

		longer[0] = argv[0];
		longer[1] = option;
		memcpy(longer + 2, argv + 1, (size_t)argc * sizeof(*longer)); /* includes the final NULL */
		argv = longer;
		argc++;
	}
	return real(argc, argv, jargc, jargv, appclassc, appclassv, full_version, version, program, launcher, java_args,
		    wildcards, windows, ergonomics);
}

/* JVM_DefineModule: Java 9 or later. */
static bool machine_takes_agent(const struct machine_arguments *arguments)
{
	int32_t i;

	for (i = 0; i < arguments->count; i++)
		if (!arguments->options[i].text || forbids(arguments->options[i].text))
			return false;
	return dlsym(RTLD_NEXT, "JVM_DefineModule") && !forbidden_by_environment();
}

EXPORT int32_t JNI_CreateJavaVM(void **machine, void **env, void *arguments)
{
	int32_t (*real)(void **, void **, void *) = (int32_t(*)(void **, void **, void *))dlsym(RTLD_NEXT, "JNI_CreateJavaVM");
	struct machine_arguments more;
	char option[PATH_MAX + 64];

	if (!real)
		return -1;
	if (!arguments || !machine_takes_agent(arguments) || !make_option(option, sizeof(option), false))
		return real(machine, env, arguments);
	memcpy(&more, arguments, sizeof(more));
	{
		struct machine_option *longer = alloca(((size_t)more.count + 1) * sizeof(*longer));

		if (more.count)
			memcpy(longer, more.options, (size_t)more.count * sizeof(*longer));
		longer[more.count++] = (struct machine_option){.text = option};
		more.options = longer;
	}
	return real(machine, env, &more);
}
