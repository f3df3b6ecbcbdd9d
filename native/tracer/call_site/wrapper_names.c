/* SPDX-License-Identifier: MIT */
/* wrapper_names.c - the functions, by name, that stand between a program and the thread library. */
/*
 * Where C++ is compiled without optimisation, or for debugging, all of a program's locks are taken in std::mutex::lock();
 * its threads are created in libstdc++ at any rate. Such functions belong to the language, not to the program. But a
 * template of the language may have the program's code put into it, as std::function's call of a lambda has; so a name in
 * namespace std is enough only where nothing is put into anything, and else only some names are.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "futex_names.h"
#include "wrapper_names.h"

/* Functions in namespaces std and __gnu_cxx, their const members, their lambdas. */
static const char *const of_the_language[] = {
	"_ZNSt", "_ZNKSt", "_ZSt", "_ZZNSt", "_ZZNKSt", "_ZZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx",
};

/*
 * Of these, how the names begin of those that do nothing but call the thread library, for locks of the language's own
 * types: whatever the compiler has put into them, it is not the program's code.
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

/* Other libraries in C++. */
static const char *const of_cxx[] = {
	"_ZN5boost5mutex", "_ZN5boost11timed_mutex", "_ZN5boost15recursive_mutex", "_ZN5boost21recursive_timed_mutex",
	"_ZN5boost12shared_mutex", "_ZN5boost11unique_lockINS_", "_ZN5boost11shared_lockINS_", "_ZN5boost10lock_guardINS_",
	"_ZN5boost18condition_variable", "_ZN5boost22condition_variable_any", "_ZN5boost5posix", "_ZN5boost6thread",
	"_ZN3tbb6detail2r115wait_on_address", "_ZN3tbb6detail2r117notify_by_address", "_ZN3tbb6detail2r121notify_by_address",
	"_ZN3tbb6detail2d15mutex", "_ZN3tbb6detail2d18rw_mutex",
	"_ZN7rocksdb4port5Mutex", "_ZN7rocksdb4port7RWMutex", "_ZN7rocksdb4port7CondVar",
	"_ZN7rocksdb17InstrumentedMutex", "_ZN7rocksdb21InstrumentedMutexLock", "_ZN7rocksdb19InstrumentedCondVar",
	"_ZN7rocksdb9MutexLock", "_ZN7rocksdb8ReadLock", "_ZN7rocksdb9WriteLock", "_ZN7leveldb4port",
	"_ZN7leveldb9MutexLock", "_ZN7mozilla6detail9MutexImpl", "_ZN7mozilla6detail21ConditionVariableImpl",
	"_ZN7mozilla6detail10RWLockImpl", "_ZN7mozilla16OffTheBooksMutex", "_ZN7mozilla18OffTheBooksCondVar",
	"_ZN2js5Mutex", "_ZN2js17ConditionVariable", "_ZN4base8internal8LockImpl", "_ZN4base4Lock",
	"_ZN4base8AutoLock", "_ZN4base17ConditionVariable", "_ZN4base13WaitableEvent",
	"_ZN4base8internal13SpinningMutex", "_ZN2v84base5Mutex", "_ZN2v84base14RecursiveMutex",
	"_ZN2v84base11SharedMutex", "_ZN2v84base17ConditionVariable", "_ZN2v84base9Semaphore",
	"_ZN4node16LibuvMutexTraits", "_ZN5mongo12latch_detail", "_ZN3osl5Mutex",
	"_ZN5boost12interprocess18interprocess_mutex", "_ZN5boost12interprocess28interprocess_recursive_mutex",
	"_ZN5boost12interprocess27interprocess_sharable_mutex", "_ZN5boost12interprocess22interprocess_condition",
	"_ZN5boost12interprocess22interprocess_semaphore", "_ZN5boost12interprocess11named_mutex",
	"_ZN5boost12interprocess15named_condition", "_ZN5boost12interprocess15named_semaphore",
	"_ZN5boost12interprocess9ipcdetail11posix_mutex", "_ZN5boost12interprocess9ipcdetail21posix_recursive_mutex",
	"_ZN5boost12interprocess9ipcdetail15posix_condition", "_ZN5boost12interprocess9ipcdetail15posix_semaphore",
	"_ZN6QMutex", "_ZN11QBasicMutex", "_ZN12QMutexLocker", "_ZN7QtFutex", "_ZN15QRecursiveMutex", "_ZN14QReadWriteLock", "_ZN11QReadLocker",
	"_ZN12QWriteLocker", "_ZN14QWaitCondition", "_ZN10QSemaphore", "_ZN7QThread4wait", "_ZN7QThread5start",
	"_ZN14TTASEventMutexI", "_ZN11PolicyMutexI", "_ZN8sux_lockI", "_ZN4absl5Mutex", "_ZN4absl7CondVar",
	"_ZN4absl13base_internal", "_ZN4absl24synchronization_internal",
	"_ZN4base8internal13BasicAutoLockI", "_ZN2v84base9LockGuardI", "_ZN4node9MutexBaseI",
	"_ZN4node21ConditionVariableBaseI", "_ZN3osl5GuardI", "_ZN5boost12interprocess11scoped_lockI",
	"_ZN5boost12interprocess13sharable_lockI", "_ZN5folly15SharedMutexImplI",
};

/* Libraries and programs in C whose code never calls the thread library elsewhere. */
static const char *const of_c[] = {
	"uv_mutex_", "uv_rwlock_", "uv_cond_", "uv_sem_", "uv_barrier_", "uv_once", "uv_thread_",
	"apr_thread_mutex_", "apr_thread_rwlock_", "apr_thread_cond_", "CRYPTO_THREAD_", "g_mutex_", "g_rec_mutex_",
	"g_rw_lock_", "g_cond_", "g_thread_new", "g_thread_join", "SDL_LockMutex", "SDL_TryLockMutex", "SDL_UnlockMutex",
	"SDL_Cond", "SDL_Sem", "SDL_CreateThread", "SDL_WaitThread", "PR_Lock", "PR_Unlock", "PR_EnterMonitor",
	"PR_ExitMonitor", "PR_WaitCondVar", "PR_NotifyCondVar", "PR_NotifyAllCondVar", "PGSemaphore", "LWLock",
	"uv__custom_sem_", "uv__sem_",
	"apr_proc_mutex_", "apr_global_mutex_", "PR_Wait", "pt_TimedWait", "pt_PostNotifies",
	"SDL_WaitSemaphore", "SDL_WaitCondition", "SDL_SignalCondition", "SDL_SYS_", "AbslInternal", "inline_mysql_",
	"my_mutex_", "my_rw_", "safe_mutex_", "safe_cond_", "psi_mutex_", "psi_cond_", "psi_rwlock_", "pthreadMutex",
	"sqlite3_mutex_", "Lck_", "ngx_thread_mutex_", "ngx_thread_cond_", "ngx_shmtx_", "erts_mtx_", "ethr_",
	"ossl_crypto_", "isc_mutex_", "isc_condition_", "isc_rwlock_", "pa_mutex_", "pa_cond_", "pa_semaphore_",
	"vlc_mutex_", "vlc_cond_", "vlc_sem_", "strict_pthread_", "ff_mutex_", "ff_cond_", "caml_plat_", "mono_os_",
	"mono_coop_", "rb_native_", "tsrm_mutex_", "qemu_mutex_", "qemu_cond_", "qemu_sem_", "qemu_rec_mutex_",
};

/*
 * How the file names begin of libraries that call the thread library for others all over, in functions that have no name
 * once the library is stripped.
 */
static const char *const of_modules[] = {
	"libstdc++.so", "libc++.so", "libSDL2-", "libSDL2.so", "libSDL3.so", "libglib-2.0.so",
};

/* Of Rust's library and its package parking_lot, in either mangling: a name has its parts one after the other. */
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

/* Most names are known by their first letters; a call of a library's function would cost more than they do. */
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

/* libstdc++'s own layer, compiled into each module: _ZL20__gthread_mutex_lock…, _ZStL23__glibcxx_rwlock_unlock… */
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
 * Under many names: what makes the state of std::async(), but not what runs in its thread; and what calls member functions
 * of threads and futures once.
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
	/* a closure calls the program's code, or has it put into it */
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

/* Of the modules below: locks that have no other hooks wait in their own functions. */
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
