/* SPDX-License-Identifier: MIT */
/* resolve.c - finds the real functions behind the hooks, once, before the first use. */
#include <dlfcn.h>
#include <string.h>

#include "mutex.h"
#include "bodies.h"
#if PTT_UNWINDS
#include "wrappers.h"
#endif

/*
 * The result of a function that this C library lacks. A program that looks for it at run time finds the hook, and the
 * hook answers like a system without the function.
 */
static COLD long absent(const char *name)
{
	if (strncmp(name, "pthread_", strlen("pthread_")) == 0)
		return ENOSYS;
	if (strncmp(name, "thrd_", 5) == 0 || strncmp(name, "mtx_", 4) == 0 || strncmp(name, "cnd_", 4) == 0)
		return thrd_error;
	errno = ENOSYS;
	return -1;
}

/*
 * At first, the pointers lead to stubs that resolve all functions and call the real function. Constructors of other
 * libraries, and allocators with locks, may call a hook before our constructor has run. The stub of a missing
 * function stays.
 */
#define HOOK(type, name, params, args)                                                                  \
	static type early_##name params                                                                 \
	{                                                                                               \
		ptt_resolve();                                                                          \
		return ptt_real.name == early_##name ? (type)absent(#name) : ptt_real.name args;        \
	}
#define VERSIONED(type, name, version, params, args) HOOK(type, name, params, args)
#define OLD(type, name, params, args)        \
	static type early_old_##name params  \
	{                                    \
		ptt_resolve();               \
		return ptt_old.name args;    \
	}
#include "hooks.def"
#undef HOOK
#undef VERSIONED

#define HOOK(type, name, params, args) .name = early_##name,
#define VERSIONED(type, name, version, params, args) HOOK(type, name, params, args)
struct ptt_real ptt_real = {
#include "hooks.def"
};
#undef HOOK
#undef VERSIONED

#define HOOK(type, name, params, args)
#define VERSIONED(type, name, version, params, args)
#define OLD(type, name, params, args) .name = early_old_##name,
struct ptt_old ptt_old = {
#include "hooks.def"
};
#undef HOOK
#undef VERSIONED

const void *ptt_module_base(const void *function)
{
	Dl_info info;

	return dladdr(function, &info) ? info.dli_fbase : NULL;
}

/*
 * Not inlined, and no tail call: for RTLD_NEXT the dynamic linker takes the return address of dlsym() for the caller,
 * and a tail call would give it another module's address.
 *
 * Only the C library has several versions. A library in front of it, such as ThreadSanitizer, has one function for
 * all versions, and must not be bypassed.
 */
static COLD void *find(const char *name, const char *version)
{
	void *function = dlsym(RTLD_NEXT, name), *versioned = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

	if (versioned && (!function || ptt_module_base(function) == ptt_module_base(versioned)))
		function = versioned;
	__asm__ volatile("" : "+r"(function));
	return function;
}

/*
 * For a preloaded library that has pthread_mutex_lock() but not pthread_mutex_trylock(): it shall see each
 * acquisition as a lock. If the mutex looks free, lock it without a try; in rare cases this blocks unreported.
 */
int ptt_lock_if_free(pthread_mutex_t *mutex)
{
	return ptt_mutex_is_busy(mutex) ? EBUSY : ptt_real.pthread_mutex_lock(mutex);
}

int (*ptt_try_lock)(pthread_mutex_t *mutex) = early_pthread_mutex_trylock;

#if PTT_UNWINDS
static int find_nothing(void *address, struct dl_find_object *object)
{
	(void)address;
	(void)object;
	return -1;
}

int (*ptt_find_object)(void *address, struct dl_find_object *object) = find_nothing;

static void resolve_finder(void)
{
	void *function = find("_dl_find_object", NULL);

	if (function)
		*(void **)&ptt_find_object = function;
}
#else
static void resolve_finder(void)
{
}
#endif

/*
 * pthread_once() during ptt_resolve(). Before glibc 2.34 dlsym() itself calls pthread_once(), which is not found yet.
 * Only the first thread resolves, so no other thread waits for the routine. The routine creates a key. To find that
 * function it calls dlsym() again, and the inner dlsym() must skip the routine. So the control word says that the
 * routine has run before it runs.
 */
static int once_while_resolving(pthread_once_t *control, void (*routine)(void))
{
	if (!(*control & PTT_ONCE_DONE)) {
		*control = PTT_ONCE_DONE;
		routine();
	}
	return 0;
}

void ptt_resolve(void)
{
	void *function;

	ptt_real.pthread_once = once_while_resolving;
#define HOOK(type, name, params, args) VERSIONED(type, name, NULL, params, args)
#define VERSIONED(type, name, version, params, args)    \
	function = find(#name, version);                \
	if (function)                                   \
		*(void **)&ptt_real.name = function;
#ifdef PTT_OLD_VERSION
#define OLD(type, name, params, args)                   \
	function = find(#name, PTT_OLD_VERSION);        \
	*(void **)&ptt_old.name = function ? function : (void *)ptt_real.name;
#else
#define OLD(type, name, params, args) ptt_old.name = ptt_real.name;
#endif
#include "hooks.def"
#undef HOOK
#undef VERSIONED
	resolve_finder();
	ptt_try_lock = ptt_real.pthread_mutex_trylock;
	if (ptt_module_base((void *)ptt_real.pthread_mutex_lock) != ptt_module_base((void *)ptt_real.pthread_mutex_trylock))
		ptt_try_lock = ptt_lock_if_free;
}
