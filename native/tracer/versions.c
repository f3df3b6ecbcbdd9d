/* SPDX-License-Identifier: MIT */
/* versions.c - functions that glibc has twice, told apart by symbol version: the older ones. */
/*
 * Programs linked since glibc 2.3.2 ask for pthread_cond_*@GLIBC_2.3.2: those get the hooks. The older functions, which
 * only x86-64 still has, take a pointer to a condition of another shape: programs that ask for GLIBC_2.2.5 are passed on
 * to them untraced. Where there is one layout only, the hooks have the plain name.
 *
 * A program built with a sanitizer names no version, for the sanitizer's functions have none; the dynamic linker then takes
 * it to the oldest that we have. Where such a function stands between us and the C library, what is asked for is the
 * present one.
 *
 * posix_spawn changed in glibc 2.15, pthread_kill in 2.34; both of each are traced (hook_process.c, hook_thread.c).
 */
#include <dlfcn.h>

#include "process.h"

#if defined(__x86_64__)

void *ptt_old_function(const char *name)
{
	return dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5");
}

typedef int old_function(void *cond, void *second, const void *third);

static const void *module_of(void *function)
{
	Dl_info found;

	return dladdr(function, &found) ? found.dli_fbase : NULL;
}

static COLD void *behind(const char *name, void *present)
{
	void *old = ptt_old_function(name), *next = dlsym(RTLD_NEXT, name);

	__asm__ volatile("" : "+r"(next));
	return next && old && module_of(next) != module_of(old) ? present : old;
}

/* The old functions of one, two or three arguments alike: spare ones are not looked at. */
#define OLD(name)                                                                                \
	extern int ptt_cond_##name(void *cond, void *second, const void *third);                 \
	EXPORT int ptt_old_cond_##name(void *cond, void *second, const void *third);             \
	EXPORT int ptt_old_cond_##name(void *cond, void *second, const void *third)              \
	{                                                                                        \
		static void *known;                                                              \
		/* relaxed: whoever does not see it finds the same */                            \
		void *found = __atomic_load_n(&known, __ATOMIC_RELAXED);                         \
		old_function *real;                                                              \
                                                                                                 \
		if (!found) {                                                                    \
			found = behind("pthread_cond_" #name, (void *)ptt_cond_##name);          \
			__atomic_store_n(&known, found, __ATOMIC_RELAXED);                       \
		}                                                                                \
		*(void **)&real = found;                                                         \
		return real ? real(cond, second, third) : ENOSYS;                                \
	}                                                                                        \
	__asm__(".symver ptt_old_cond_" #name ", pthread_cond_" #name "@GLIBC_2.2.5")

OLD(init);
OLD(destroy);
OLD(wait);
OLD(timedwait);
OLD(signal);
OLD(broadcast);

#endif
