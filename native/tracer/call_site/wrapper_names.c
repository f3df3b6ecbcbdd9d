/* SPDX-License-Identifier: MIT */
/* wrapper_names.c - decides by name whether a function is a wrapper. */
/*
 * If C++ is compiled without optimisation, all locks of a program are taken in std::mutex::lock(). Threads are always
 * created in libstdc++. Such functions belong to the language, not to the program. But the compiler may inline code
 * of the program into a template of the language, as into std::function's call of a lambda. So a name in namespace
 * std suffices only in unoptimised code. In optimised code only some names suffice.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "futex_names.h"
#include "wrappers.h"
#include "wrapper_symbols.h"

/* Functions in namespaces std and __gnu_cxx, their const members, their lambdas. */
static const char *const of_the_language[] = {
	"_ZNSt", "_ZNKSt", "_ZSt", "_ZZNSt", "_ZZNKSt", "_ZZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx",
};

/*
 * Prefixes of functions that only call the thread library for types of the language. No code that the compiler
 * inlines into them is the program's code.
 */
static const char *const of_threads[] = {
	"_ZNSt5mutex", "_ZNSt12__mutex_base", "_ZNSt15recursive_mutex", "_ZNSt11timed_mutex", "_ZNSt21recursive_timed_mutex",
	"_ZNSt18__timed_mutex_impl", "_ZNSt12shared_mutex", "_ZNSt18shared_timed_mutex", "_ZNSt22__shared_mutex_pthread",
	"_ZNSt10lock_guardISt", "_ZNSt11unique_lockISt", "_ZNSt11scoped_lockIJSt", "_ZNSt11shared_lockISt",
	"_ZSt4lockISt", "_ZSt8try_lockISt", "_ZNSt8__detail11__lock_implISt", "_ZNSt8__detail15__try_lock_implISt",
	"_ZNSt18condition_variable", "_ZNSt9__condvar", "_ZNSt22condition_variable_any",
	"_ZNSt6threadC", "_ZNSt6threadD", "_ZNSt6threadaS", "_ZNSt6thread4join", "_ZNSt6thread6detach",
	"_ZNSt6thread15_M_start_thread", "_ZNSt7jthreadC", "_ZNSt7jthreadD", "_ZNSt7jthreadaS", "_ZNSt7jthread4join",
	"_ZNSt7jthread6detach", "_ZNSt7jthread9_S_create", "_ZNSt6vectorISt6thread", "_ZNSt6vectorISt7jthread",
	"_ZSt12construct_atISt6thread", "_ZSt12construct_atISt7jthread", "_ZNSt16allocator_traitsISaISt6thread",
	"_ZNSt16allocator_traitsISaISt7jthread", "_ZN9__gnu_cxx13new_allocatorISt6thread",
	"_ZN9__gnu_cxx13new_allocatorISt7jthread", "_ZNSt15__new_allocatorISt6thread", "_ZNSt15__new_allocatorISt7jthread",
	"_ZSt9call_onceI", "_ZSt5asyncI", "_ZNSt14__basic_futureI", "_ZNKSt14__basic_futureI", "_ZNSt6futureI", "_ZNSt13shared_futureI",
	"_ZNSt7promiseI", "_ZNSt13__future_base13_State_baseV2", "_ZNSt13__future_base21_Async_state_commonV2",
	"_ZNSt18counting_semaphoreI", "_ZNSt20__platform_semaphore", "_ZNSt18__atomic_semaphore", "_ZNSt5latch",
	"_ZNSt16__semaphore_impl", "_ZNSt25__platform_semaphore_impl",
	"_ZNSt8__detail17__platform_notify", "_ZNSt8__detail13__notify_impl", "_ZSt23__atomic_notify_address", "_ZSt28__atomic_notify_address_bare",
};

/*
 * Prefixes of file names of libraries that call the thread library in many functions on behalf of others. In a
 * stripped library these functions have no names.
 */
static const char *const of_modules[] = {
	"libstdc++.so", "libc++.so", "libSDL2-", "libSDL2.so", "libSDL3.so", "libglib-2.0.so",
};

/*
 * Parts of names of Rust's standard library and of the crate parking_lot, in both manglings (RFC 2603 and legacy):
 * the identifiers stand one after the other.
 */
static const char *const of_rust[] = {
	"3std3sys4sync", "3std3sys4unix5locks", "3std3sys4unix5futex", "3std3sys3pal4unix5futex", "3std3sys3pal4unix4sync",
	"3std10sys_common7condvar", "3std10sys_common5mutex", "3std4sync7barrierN", "3std4sync7barrier7Barrier",
	"3std4sync7condvar", "3std4sync6poison7condvar", "3std4sync5mutex5Mutex", "3std4sync6poison5mutex5Mutex",
	"3std6thread4park", "3std6thread12park_timeout", "3std6thread6Thread4park", "3std6thread6Thread6unpark",
	"3std6thread7current4park", "3std6thread6thread6Thread", "3std6thread10JoinHandle", "3std6thread9JoinInner",
	"3std6thread9functions4park", "3std6thread9functions12park_timeout", "3std3sys6thread4unix", "3std3sys4unix6thread",
	"3std3sys3pal4unix6thread", "3std6thread7Builder", "3std6thread5spawn", "3std6thread9functions5spawn",
	"3std6thread9lifecycle", "11parking_lot", "16parking_lot_core", "8lock_api",
};

/* Most names differ in the first letters, so a call of strncmp() would cost more. */
static inline bool begins_with(const char *name, const char *beginning)
{
	while (*beginning && *name == *beginning) {
		name++;
		beginning++;
	}
	return !*beginning;
}

static bool begins_with_any(const char *name, const char *const *beginning, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (begins_with(name, beginning[i]))
			return true;
	return false;
}
#define BEGINS_WITH_ANY(name, list) begins_with_any(name, list, sizeof(list) / sizeof((list)[0]))

/*
 * libstdc++'s layer over the thread library, compiled into each module: _ZL20__gthread_mutex_lock…,
 * _ZStL23__glibcxx_rwlock_unlock…
 */
static bool is_layer(const char *name)
{
	if (!begins_with(name, "_ZL") && !begins_with(name, "_ZStL"))
		return false;
	name = strchr(name, 'L') + 1;
	while (*name >= '0' && *name <= '9')
		name++;
	return begins_with(name, "__gthr") || begins_with(name, "__glibcxx_rwlock");
}

/*
 * Functions with many names. They make the state of std::async(), but not its thread's function, or call member
 * functions of threads and futures once.
 */
static bool is_of_futures(const char *name)
{
	return (strstr(name, "_Async_state_impl") && !strstr(name, "_M_run") && !begins_with(name, "_ZZ")) ||
	       strstr(name, "MSt6threadFvv") || strstr(name, "MNSt13__future_base");
}

static bool is_of_rust(const char *name)
{
	size_t i;

	if (!begins_with(name, "_ZN3std") && !begins_with(name, "_R") && !begins_with(name, "_ZN11parking_lot") &&
	    !begins_with(name, "_ZN16parking_lot_core") && !begins_with(name, "_ZN8lock_api"))
		return false;
	/* a closure is the program's code, or calls it */
	if (strstr(name, "closure") || begins_with(name, "_RNC") || begins_with(name, "_RINC"))
		return false;
	for (i = 0; i < sizeof(of_rust) / sizeof(of_rust[0]); i++)
		if (strstr(name, of_rust[i]))
			return true;
	return false;
}

bool ptt_foreign_module(const char *path)
{
	const char *name = strrchr(path, '/');

	return begins_with(name ? name + 1 : path, "libffi.so");
}

/* In these modules, locks without other hooks wait in functions of their own. */
bool ptt_futex_module(const char *path)
{
	const char *name = strrchr(path, '/');

	return begins_with(name ? name + 1 : path, "libglib-2.0.so") || begins_with(name ? name + 1 : path, "libstdc++.so");
}

bool ptt_wrapper_module(const char *path)
{
	const char *name = strrchr(path, '/');

	return BEGINS_WITH_ANY(name ? name + 1 : path, of_modules);
}

static bool fits(const char *name, const struct futex_name *pattern)
{
	size_t i;

	if (!begins_with(name, pattern->piece[0]))
		return false;
	name += strlen(pattern->piece[0]);
	for (i = 1; pattern->piece[i]; i++) {
		name = strstr(name, pattern->piece[i]);
		if (!name)
			return false;
		name += strlen(pattern->piece[i]);
	}
	return true;
}

uint8_t ptt_futex_of_name(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(futex_names) / sizeof(futex_names[0]); i++)
		if (fits(name, &futex_names[i]))
			return futex_names[i].kind;
	return 0;
}

bool ptt_futex_is_outer(uint8_t kind)
{
	return futex_outer[kind];
}

enum ptt_kind_of_name ptt_wrapper_name(const char *name)
{
	if (ptt_futex_of_name(name) || is_of_rust(name))
		return PTT_NAME_OF_WRAPPER;
	if (name[0] != '_' || name[1] != 'Z')
		return BEGINS_WITH_ANY(name, of_c) ? PTT_NAME_OF_WRAPPER : PTT_NAME_OF_PROGRAM;
	if (is_layer(name) || BEGINS_WITH_ANY(name, of_cxx))
		return PTT_NAME_OF_WRAPPER;
	if (!BEGINS_WITH_ANY(name, of_the_language))
		return PTT_NAME_OF_PROGRAM;
	return BEGINS_WITH_ANY(name, of_threads) || is_of_futures(name) ? PTT_NAME_OF_WRAPPER : PTT_NAME_OF_LANGUAGE;
}
