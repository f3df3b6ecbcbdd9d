/* SPDX-License-Identifier: MIT */
/* versions.c - functions that glibc has twice, told apart by symbol version: the older ones. */
/*
 * Programs linked since glibc 2.3.2 ask for pthread_cond_*@GLIBC_2.3.2: those get the hooks. The older functions, which
 * only x86-64 still has, take a pointer to a condition of another shape: programs that ask for GLIBC_2.2.5 are passed on
 * to them untraced. Where there is one layout only, the hooks have the plain name.
 *
 * posix_spawn changed in glibc 2.15; both of it are traced (hook_process.c).
 */
#include <dlfcn.h>

#include "process.h"

#if defined(__x86_64__)

void *ptt_old_function(const char *name)
{
	return dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5");
}

typedef int old_function(void *cond, void *second, const void *third);

/* The old functions of one, two or three arguments alike: spare ones are not looked at. */
#define OLD(name)                                                                                \
	EXPORT int ptt_old_cond_##name(void *cond, void *second, const void *third);             \
	EXPORT int ptt_old_cond_##name(void *cond, void *second, const void *third)              \
	{                                                                                        \
		static old_function *real;                                                       \
                                                                                                 \
		if (!real)                                                                       \
			*(void **)&real = ptt_old_function("pthread_cond_" #name);         \
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
