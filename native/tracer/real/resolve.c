/* SPDX-License-Identifier: MIT */
/* resolve.c - finds the functions behind the hooks, once and before anybody needs them. */
#include <dlfcn.h>
#include <string.h>

#include "mutex.h"
#include "bodies.h"
#if PTT_UNWINDS
#include "wrappers.h"
#endif

/*
 * A function that this C library does not have: a program that looks for it at run time finds the hook, which answers as a
 * system without the function.
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
 * Until they are resolved the pointers lead to stubs that resolve and go on: constructors of other libraries, and
 * allocators that lock, may call before our constructor has run. The stub of a function that is not there stays.
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

static const void *module_of(void *function)
{
	Dl_info found;

	return dladdr(function, &found) ? found.dli_fbase : NULL;
}

/*
 * Not inlined and not a tail call: the dynamic linker takes the address that dlsym returns to for its caller, and a jump
 * would make it take somebody else's.
 *
 * Versions distinguish functions of the C library. A library in front of it, such as ThreadSanitizer, has one function
 * for all of them, and must not be passed by.
 */
static COLD void *find(const char *name, const char *version)
{
	void *found = dlsym(RTLD_NEXT, name), *versioned = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

	if (versioned && (!found || module_of(found) == module_of(versioned)))
		found = versioned;
	__asm__ volatile("" : "+r"(found));
	return found;
}

/*
 * Another preloaded library has a pthread_mutex_lock() of its own and no pthread_mutex_trylock(): it shall see each lock
 * as what it is. Where the mutex looks free it is asked for without trying; that may block for once unreported.
 */
int ptt_lock_if_free(pthread_mutex_t *mutex)
{
	return ptt_mutex_is_busy(mutex) ? EBUSY : ptt_real.pthread_mutex_lock(mutex);
}

int (*ptt_try_lock)(pthread_mutex_t *mutex) = early_pthread_mutex_trylock;

#if PTT_UNWINDS
static int find_nothing(void *address, struct dl_find_object *found)
{
	(void)address;
	(void)found;
	return -1;
}

int (*ptt_find_object)(void *address, struct dl_find_object *found) = find_nothing;

static void resolve_finder(void)
{
	void *found = find("_dl_find_object", NULL);

	if (found)
		*(void **)&ptt_find_object = found;
}
#else
static void resolve_finder(void)
{
}
#endif

/*
 * Before glibc 2.34 dlsym() itself begins with pthread_once(), before it could find that. Only the first thread resolves, so
 * that nobody waits for the routine. It creates a key, and to find the function for that takes dlsym() again, which then
 * does without one: so the routine counts as run before it is.
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
	void *found;

	ptt_real.pthread_once = once_while_resolving;
#define HOOK(type, name, params, args) VERSIONED(type, name, NULL, params, args)
#define VERSIONED(type, name, version, params, args)    \
	found = find(#name, version);                   \
	if (found)                                      \
		*(void **)&ptt_real.name = found;
#ifdef PTT_OLD_VERSION
#define OLD(type, name, params, args)                   \
	found = find(#name, PTT_OLD_VERSION);           \
	*(void **)&ptt_old.name = found ? found : (void *)ptt_real.name;
#else
#define OLD(type, name, params, args) ptt_old.name = ptt_real.name;
#endif
#include "hooks.def"
#undef HOOK
#undef VERSIONED
	resolve_finder();
	ptt_try_lock = ptt_real.pthread_mutex_trylock;
	if (module_of((void *)ptt_real.pthread_mutex_lock) != module_of((void *)ptt_real.pthread_mutex_trylock))
		ptt_try_lock = ptt_lock_if_free;
}
