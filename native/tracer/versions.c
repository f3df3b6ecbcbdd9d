/* SPDX-License-Identifier: MIT */
/* versions.c - the condition functions exist in two layouts, told apart by symbol version. */
/*
 * Programs linked since glibc 2.3.2 ask for pthread_cond_*@GLIBC_2.3.2: those get the hooks. The older functions, which
 * only x86-64 still has, take a pointer to a condition of another shape: programs that ask for GLIBC_2.2.5 are passed on
 * to them untraced. Where there is one layout only, the hooks have the plain name.
 */
#include <dlfcn.h>

#include "tracer.h"

#if defined(__x86_64__)

typedef int old_function(void *cond, void *second, const void *third);

/* The old functions of one, two or three arguments alike: spare ones are not looked at. */
#define OLD(name)                                                                                \
	EXPORT int ptt_old_cond_##name(void *cond, void *second, const void *third);             \
	EXPORT int ptt_old_cond_##name(void *cond, void *second, const void *third)              \
	{                                                                                        \
		static old_function *real;                                                       \
                                                                                                 \
		if (!real)                                                                       \
			*(void **)&real = dlvsym(RTLD_NEXT, "pthread_cond_" #name, "GLIBC_2.2.5"); \
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
